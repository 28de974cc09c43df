"""Emulator speed: warp- and lane-instructions per second, and seconds per FA4 tile (256 queries x 128 keys).

Protocol: kernels are compiled first; every shape runs twice and the faster run counts; one core (BLAS threads off).
Run: ``python bench/emulator_speed.py``.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

from fa4_numba.api import Problem, choose_config, emulate  # noqa: E402
from fa4_numba.cli.emulate import random_inputs  # noqa: E402
from fa4_numba.toolchain import compile_kernel  # noqa: E402

SHAPES = [
    (1, 2, 1, 512, 512, 128),
    (1, 1, 1, 256, 2048, 128),
    (1, 1, 1, 2048, 2048, 128),
    (1, 1, 1, 2048, 2048, 64),
]


def main():
    print(
        f"{'B Hq Hkv Sq Sk d':<28} {'k warp-instr/s':>15} {'M lane-instr/s':>15} {'ms/tile':>8} {'seconds':>8}"
    )
    for shape in SHAPES:
        batch, heads, kv_heads, seq_q, seq_k, dim = shape
        problem = Problem(batch, heads, kv_heads, seq_q, seq_k, dim, dim, "bfloat16")
        kernel = compile_kernel(choose_config(problem).config)
        stats = min(
            (emulate(kernel, *random_inputs(problem)).stats for _ in range(2)), key=lambda s: s.seconds
        )
        tiles = stats.ctas * -(-seq_k // kernel.config.BN)
        rate, lanes = stats.warp_instructions / stats.seconds, stats.lane_instructions / stats.seconds
        print(
            f"{' '.join(map(str, shape)):<28} {rate / 1e3:>15.0f} {lanes / 1e6:>15.1f} "
            f"{stats.seconds / tiles * 1e3:>8.1f} {stats.seconds:>8.2f}"
        )


if __name__ == "__main__":
    main()
