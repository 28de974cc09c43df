"""``emulate``: run a compiled kernel in the emulator and keep everything that can be looked at."""

from ..errors import ArrayError
from .arrays import to_host
from .attention import positive_scale
from .checks import check_problem
from .nonfinite import contained


def emulate(kernel, q, k, v, *, scale=None, schedule="eager", trace=False, progress=None):
    """Run ``kernel`` on ``(B, S, H, D)`` arrays in the emulator.

    Parameters
    ----------
    kernel : CompiledKernel
        From :func:`fa4_numba.compile_kernel`; its config must fit the arrays.
    q, k, v, scale
        As for :func:`fa4_numba.attention`.
    schedule : str
        "eager", "late" or "random:SEED".
    trace : bool
        Record the timeline.
    progress : callable
        ``progress(ctas_done, ctas)``.

    Returns
    -------
    EmulationRun
        ``o``, ``lse``, ``stats``, ``timeline`` and the ``machine`` itself.
    """
    from ..launch.emulate import run

    arrays = [to_host(name, value).numpy for name, value in (("q", q), ("k", k), ("v", v))]
    problem = check_problem(*arrays, causal=kernel.causal, scale=scale, layout="bshd")
    cfg = kernel.config
    if problem.empty:
        raise ArrayError(
            "emulate() needs non-empty arrays; attention() returns the right shape without a launch"
        )
    if problem.dtype != cfg.qkv_dtype:
        raise ArrayError(f"the arrays are {problem.dtype}, the kernel was compiled for {cfg.qkv_dtype}")
    if problem.num_q_heads != problem.num_kv_heads * cfg.group:
        raise ArrayError(
            f"{problem.num_q_heads} query and {problem.num_kv_heads} key/value heads do not make the kernel's group {cfg.group}"
        )
    if problem.qk_dim > cfg.padded_qk_depth or problem.v_dim > cfg.padded_ov_depth:
        raise ArrayError(
            f"head dimensions {problem.qk_dim} and {problem.v_dim} exceed the kernel's "
            f"{cfg.padded_qk_depth} and {cfg.padded_ov_depth}"
        )
    arrays[0], positive = positive_scale(arrays[0], problem.effective_scale)
    arrays[2], complete = contained(arrays[2], problem.causal)
    result = run(kernel, *arrays, scale=positive, schedule=schedule, trace=trace, progress=progress)
    complete(result.o)
    return result
