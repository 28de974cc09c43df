"""Speed of the emulator: both engines side by side, cost per tile as the problem grows, several processes, checks.

Protocol: kernels are compiled first and machine code made; every row runs twice and the faster run counts; one core (BLAS
threads off), except the rows that say otherwise. Run: ``python bench/emulator_speed.py [--large] [--peer]``.

``--large``: also (1, 8, 8, 4096, 4096, 128) on all cores. ``--peer``: also flash-attn-4's forward kernel at
(1, 4, 4, 1024, 1024, 128), through its own ``flash_attn_func``; needs the environment of ``tests/peers/make_fa4_env.sh``.
"""

import os
import sys
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

SHAPES = [
    (1, 2, 1, 512, 512, 128),
    (1, 1, 1, 256, 2048, 128),
    (1, 4, 4, 1024, 1024, 128),
    (1, 1, 1, 2048, 2048, 64),
]
GROWTH = [(1, 1, 1, 256, keys, 128) for keys in (1024, 2048, 4096, 8192, 16384)]
HEAD = f"{'B Hq Hkv Sq Sk d':<24} {'how':<22} {'k warp-instr/s':>15} {'M lane-instr/s':>15} {'ms/tile':>8} {'seconds':>8}"


def row(shape, how: str, runs: int = 2, **options) -> float:
    """Print one row; return seconds."""
    from fa4_numba.api import Problem, choose_config
    from fa4_numba.cli.emulate import random_inputs
    from fa4_numba.launch.emulate import run
    from fa4_numba.toolchain import compile_kernel

    batch, heads, kv_heads, seq_q, seq_k, dim = shape
    problem = Problem(batch, heads, kv_heads, seq_q, seq_k, dim, dim, "bfloat16")
    kernel = compile_kernel(choose_config(problem).config)
    arrays = random_inputs(problem)
    options = {"scale": dim**-0.5, "workers": 1} | options
    stats = min((run(kernel, *arrays, **options).stats for _ in range(runs)), key=lambda s: s.seconds)
    tiles = stats.ctas * -(-seq_k // kernel.config.BN)
    rate, lanes = stats.warp_instructions / stats.seconds, stats.lane_instructions / stats.seconds
    print(
        f"{' '.join(map(str, shape)):<24} {how:<22} {rate / 1e3:>15.0f} {lanes / 1e6:>15.1f} "
        f"{stats.seconds / tiles * 1e3:>8.2f} {stats.seconds:>8.2f}",
        flush=True,
    )
    return stats.seconds


def machine_code() -> None:
    """Print how long the machine code of our kernel takes, cold and from the cache."""
    import tempfile

    from fa4_numba.api import Problem, choose_config
    from fa4_numba.cli.emulate import random_inputs
    from fa4_numba.launch.emulate import prepare
    from fa4_numba.toolchain import compile_kernel

    problem = Problem(1, 1, 1, 256, 256, 128, 128, "bfloat16")
    kernel = compile_kernel(choose_config(problem).config)
    before = os.environ.get("FA4_NUMBA_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FA4_NUMBA_CACHE"] = folder
        for how in ("cold", "cached"):
            start = time.perf_counter()
            machine, _, _ = prepare(kernel, *random_inputs(problem), scale=0.1)
            code = machine.program_code
            print(
                f"machine code, {how}: {code.seconds:.2f} s of {time.perf_counter() - start:.2f} s to load the kernel"
            )
    os.environ.pop("FA4_NUMBA_CACHE")
    if before is not None:
        os.environ["FA4_NUMBA_CACHE"] = before


def peer() -> None:
    """Print flash-attn-4's kernel, emulated in its own call."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "peers"))
    from fa4_numba.emulator.driver.cute import prepare_environment

    prepare_environment()
    import torch
    from flash_attn.cute import flash_attn_func

    from fa4_numba.emulator.driver import emulated_driver

    q, k, v = (torch.randn(1, 1024, 4, 128).to(torch.bfloat16) for _ in range(3))
    for _ in range(2):
        with emulated_driver(libraries=["cutlass"], workers=1) as log:
            flash_attn_func(q, k, v)
        print(f"flash-attn-4 1 4 4 1024 1024 128: {log[0].stats}", flush=True)


def main():
    print(HEAD)
    for shape in SHAPES:
        slow = row(shape, "interpreter", runs=1, engine="interpreter")
        fast = row(shape, "compiled", engine="compiled")
        print(f"{'':<24} compiled is {slow / fast:.0f} times as fast")
    row(SHAPES[0], "compiled, check=True", check=True)
    row(SHAPES[0], "compiled, random:1", schedule="random:1")
    for shape in GROWTH:
        row(shape, "compiled")
    machine_code()
    if "--large" in sys.argv:
        row((1, 8, 8, 4096, 4096, 128), f"{os.cpu_count()} processes", runs=1, workers=None)
    if "--peer" in sys.argv:
        peer()


if __name__ == "__main__":
    main()
