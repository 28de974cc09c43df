"""``ptx``, ``sass``, ``emulate``: look at the kernel and run it."""

from dataclasses import replace

import numpy as np

from ..api import Problem, choose_config
from ..api.attention import attention
from ..emulator.search import minimise, run_seeds
from ..errors import ArrayError
from ..reference import exact
from ..toolchain import compile_kernel
from .text import progress_bar


def _problem(a) -> Problem:
    if a.group < 1 or a.q_heads % a.group:
        raise ArrayError(f"--q-heads {a.q_heads} must be a multiple of --group {a.group}")
    v_dim = a.v_dim or a.qk_dim
    return Problem(1, a.q_heads, a.q_heads // a.group, 256, 256, a.qk_dim, v_dim, a.dtype, a.causal)


def show(arguments) -> int:
    """Print PTX or SASS."""
    kernel = compile_kernel(choose_config(_problem(arguments)).config, causal=arguments.causal)
    print(kernel.ptx if arguments.command == "ptx" else kernel.sass)
    return 0


def _load(path: str, dtype: str) -> np.ndarray:
    """Load an array; .npy files hold no bfloat16, so floats are converted to ``dtype``."""
    import ml_dtypes

    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ArrayError(f"{path}: cannot be read as a .npy file ({error})") from error
    if array.dtype.kind not in "fiu":
        raise ArrayError(f"{path} has dtype {array.dtype}: expected numbers")
    return array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype))


def random_inputs(problem: Problem, seed: int = 0):
    """Return q, k, v of standard normal values."""
    import ml_dtypes

    dtype = ml_dtypes.bfloat16 if problem.dtype == "bfloat16" else np.dtype(problem.dtype)
    rng = np.random.default_rng(seed)
    q_shape = (problem.batch, problem.seq_q, problem.num_q_heads, problem.qk_dim)
    kv = (problem.batch, problem.seq_k, problem.num_kv_heads)
    shapes = (q_shape, (*kv, problem.qk_dim), (*kv, problem.v_dim))
    return tuple(rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes)


def run(arguments) -> int:
    """Run the kernel in the emulator and print the error against float64."""
    if arguments.inputs:
        q, k, v = (_load(path, arguments.dtype) for path in arguments.inputs)
    else:
        sizes = {"batch": arguments.batch, "seq_q": arguments.seq_q, "seq_k": arguments.seq_k}
        q, k, v = random_inputs(replace(_problem(arguments), **sizes))
    options = {
        "backend": "emulator",
        "schedule": arguments.schedule,
        "progress": progress_bar,
        "return_lse": True,
        "check": arguments.check,
    }
    o, lse = attention(q, k, v, causal=arguments.causal, **options)
    want, want_lse = exact(q, k, v, causal=arguments.causal)
    with np.errstate(invalid="ignore"):
        error = np.abs(o.astype(np.float64) - want)
        lse_error = np.abs(np.where(lse == want_lse, 0, lse - want_lse))
    print(
        f"O {o.shape}: largest error against float64 {error.max(initial=0):.2e}; LSE {lse_error.max(initial=0):.2e}"
    )
    if arguments.check:
        print("hazards: none")
    if arguments.schedules:
        return _run_schedules(arguments.schedules, (q, k, v), arguments.causal, options, (o, lse))
    if arguments.output:
        np.save(arguments.output, o.astype(np.float32))
    return 0


def _run_schedules(count: int, arrays, causal: bool, options: dict, expected) -> int:
    """Run random schedules; every one must give the same bits."""

    def attempt(schedule) -> str:
        o, lse = attention(*arrays, causal=causal, **{**options, "schedule": schedule, "progress": None})
        for name, got, want in (("O", o, expected[0]), ("LSE", lse, expected[1])):
            differing = np.flatnonzero(got.view(np.uint8) != want.view(np.uint8))
            if differing.size:
                at = np.unravel_index(differing[0] // got.itemsize, got.shape)
                at = tuple(int(i) for i in at)
                return f"{name}{list(at)} is {got[at]}, not {want[at]}"
        return ""

    failures = run_seeds(
        attempt, range(count), lambda done, total: progress_bar(done, total, what="schedule")
    )
    if not failures:
        print(f"{count} random schedules: the same bits as {options['schedule']}")
        return 0
    least = minimise(attempt, failures[0])
    seeds = ", ".join(str(failure.schedule.seed) for failure in failures[:10])
    print(f"{len(failures)} of {count} random schedules fail (seeds {seeds})")
    print(f"seed {least.schedule.seed}, {least.decisions} random decisions are enough: {least.message}")
    return 1
