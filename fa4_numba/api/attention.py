"""``attention``: the call that users make."""

import numpy as np

from ..errors import UnsupportedError
from ..reference import online
from ..reference.problem import to_bhsd
from .arrays import to_host
from .checks import check_out, check_problem, refuse_later_options
from .device_arrays import is_on_device, view_of
from .device_arrays import run as run_on_device
from .dispatch import choose_backend
from .nonfinite import contained
from .problem import Problem, choose_config


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    scale=None,
    layout="bshd",
    backend="auto",
    return_lse=False,
    out=None,
    causal_align="bottom-right",
    schedule="eager",
    progress=None,
    check=False,
    **later,
):
    """Compute softmax(scale · q kᵀ) v.

    Parameters
    ----------
    q : array, ``(B, Sq, Hq, D)``
        numpy (ml_dtypes for bfloat16), or any host array that speaks DLPack. Never written.
    k, v : array, ``(B, Sk, Hkv, D)`` and ``(B, Sk, Hkv, Dv)``
        Hq must be a multiple of Hkv: query head h uses key/value head h // (Hq // Hkv).
    causal : bool
        Bottom-right aligned: query i sees keys ≤ i + Sk − Sq.
    scale : float
        Any real number; default 1 / sqrt(D).
    layout : str
        "bshd" (default) or "bhsd".
    backend : str
        "auto", "sm100" (Blackwell GPU), "emulator" (the sm_100a kernel on the CPU) or "reference" (numpy).
    return_lse : bool
        Also return the log-sum-exp of each row.
    out : ndarray
        Where to write O: of its shape and dtype.
    schedule, progress
        For the emulator: when asynchronous work lands ("eager", "late", "random:SEED", …), and a callback
        ``progress(done, total)``.
    check : bool
        For the emulator: also track hazards. Errors raise ``Hazard``, warnings are ``HazardWarning``.

    Returns
    -------
    o : array of q's kind and dtype, ``(B, Sq, Hq, Dv)`` in ``layout``
        A query that sees no key gives zeros.
    lse : float32 array, ``(B, Hq, Sq)``
        Natural logarithm, −inf for a query that sees no key. Only with ``return_lse``.

    Raises
    ------
    ArrayError
        For arguments that do not fit together; names the argument, what is allowed, and the fix.
    UnsupportedError
        For options or shapes that the backend does not serve yet.
    BackendError
        If the backend cannot run on this machine.
    """
    refuse_later_options(later)
    if any(map(is_on_device, (q, k, v))):
        if out is not None:
            raise UnsupportedError("out: not built yet for device arrays; leave it at None")
        o, lse = _on_device((q, k, v), causal, scale, layout, causal_align, backend)
        return (o, lse) if return_lse else o
    hosts = [to_host(name, value) for name, value in (("q", q), ("k", k), ("v", v))]
    arrays = [host.numpy for host in hosts]
    problem = check_problem(*arrays, causal=causal, scale=scale, layout=layout, causal_align=causal_align)
    choice = choose_backend(problem, backend)
    o_shape = (problem.batch, problem.seq_q, problem.num_q_heads, problem.v_dim)
    if layout == "bhsd":
        o_shape = tuple(o_shape[i] for i in (0, 2, 1, 3))
    if out is not None:
        check_out(out, o_shape, arrays[0].dtype)
    if problem.empty:
        o = np.zeros(o_shape, arrays[0].dtype)
        lse = np.full((problem.batch, problem.num_q_heads, problem.seq_q), -np.inf, np.float32)
    elif choice.backend == "reference":
        o, lse = _reference(arrays, problem, layout)
    else:
        o, lse = _kernel(choice.backend, arrays, problem, layout, schedule, progress, check)
    if out is not None:
        out[...] = o
        o = out
    else:
        o = hosts[0].back(np.ascontiguousarray(o))
    return (o, hosts[0].back(lse)) if return_lse else o


def _on_device(values, causal, scale, layout: str, causal_align: str, backend: str):
    """Run on arrays in GPU memory: only a GPU backend can."""
    views = [view_of(name, value) for name, value in zip("qkv", values)]
    problem = check_problem(*views, causal=causal, scale=scale, layout=layout, causal_align=causal_align)
    if backend not in ("auto", "sm100"):
        choose_backend(problem, backend)
        raise UnsupportedError(f"backend = {backend!r} takes host arrays: copy q, k and v to the host first")
    choose_backend(problem, "sm100")
    if problem.empty:
        raise UnsupportedError("empty device arrays are not built yet: call with host arrays")
    return run_on_device(values, views, problem, layout)


def _reference(arrays, problem: Problem, layout: str):
    """float32 blocks for 16- and 32-bit inputs; float64 inputs by definition."""
    if problem.dtype == "float64":
        from ..reference import exact

        o, lse = exact(*arrays, causal=problem.causal, scale=problem.scale, layout=layout)
        return o, lse.astype(np.float32)
    o, lse = online(*arrays, causal=problem.causal, scale=problem.scale, layout=layout)
    return o.astype(arrays[0].dtype), lse


def _kernel(backend: str, arrays, problem: Problem, layout: str, schedule: str, progress, check: bool):
    """Run the sm_100a kernel, in the emulator or on the GPU, on ``(B, S, H, D)`` views."""
    from ..toolchain import compile_kernel

    kernel = compile_kernel(choose_config(problem).config, causal=problem.causal)
    q, k, v = arrays if layout == "bshd" else (to_bhsd(x, "bshd") for x in arrays)
    q, scale = positive_scale(q, problem.effective_scale)
    v, complete = contained(v, problem.causal)
    if backend == "emulator":
        from ..launch.emulate import run

        result = run(kernel, q, k, v, scale=scale, schedule=schedule, progress=progress, check=check)
        if check:
            result.machine.checker.verdict()
        o, lse = result.o, result.lse
    else:
        from ..launch.gpu import run_on_gpu

        o, lse = run_on_gpu(kernel, q, k, v, scale=scale)
    o = complete(o)
    return (o if layout == "bshd" else o.transpose(0, 2, 1, 3)), lse


def positive_scale(q: np.ndarray, scale: float):
    """Return (q, scale) with the same scores and scale > 0: the kernel takes the maximum before scaling."""
    if scale > 0:
        return q, scale
    if scale < 0:
        return -q, -scale
    return q * q.dtype.type(0), 1.0  # NaN stays NaN
