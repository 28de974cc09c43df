"""``demo``: the whole chain on one small problem, with everything printed."""

import time
from pathlib import Path

import numpy as np

from ..api import Problem, choose_config, emulate
from ..reference import exact
from ..toolchain import compile_kernel
from .emulate import random_inputs
from .text import progress_bar, region_table


def run(arguments) -> int:
    """Compile, report, emulate, check, draw; exit status 1 if the answer is wrong."""
    seq = max(1, arguments.seq)
    problem = Problem(1, 4, 2, seq, seq, 128, 128, "bfloat16", causal=True)
    choice = choose_config(problem)
    cfg = choice.config
    print(f"attention: {problem}\n")
    print(f"{cfg!r}\n  " + "\n  ".join(choice.why) + "\n")
    print(region_table("shared memory", cfg.smem_map(), "bytes"))
    print(region_table("tensor memory", cfg.tmem_map(), "columns"))
    start = time.perf_counter()
    kernel = compile_kernel(cfg, causal=True)
    print(
        f"\ncompiled in {time.perf_counter() - start:.2f} s: {len(kernel.ptx.splitlines())} lines of PTX; {kernel.resources}"
    )
    q, k, v = random_inputs(problem)
    print("\nrunning the PTX in the emulator")
    result = emulate(kernel, q, k, v, trace=True, progress=progress_bar)
    print(f"  {result.stats}")
    want, want_lse = exact(q, k, v, causal=True)
    error = float(np.abs(result.o.astype(np.float64) - want).max())
    lse_error = float(np.abs(result.lse - want_lse).max())
    right = error < 0.02 and lse_error < 1e-4
    print(f"\nagainst float64: O {error:.2e}, LSE {lse_error:.2e}: {'right' if right else 'WRONG'}")
    _pictures(cfg, result, Path(arguments.out))
    return 0 if right else 1


def _pictures(cfg, result, folder: Path) -> None:
    try:
        from ..viz import save_maps, save_timeline
    except ImportError:
        print("no pictures: pip install 'fa4_numba[viz]'")
        return
    paths = [*save_maps(cfg, folder), save_timeline(result.timeline, folder / "timeline.png")]
    print("pictures: " + ", ".join(str(path) for path in paths))
