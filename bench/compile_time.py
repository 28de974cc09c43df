"""Compile time: ``compile_kernel`` cold (empty cache, fresh process) and warm (cached, fresh process, then again).

Run: ``python bench/compile_time.py``.
"""

import os
import subprocess
import sys
import tempfile

CODE = """
import time
from fa4_numba import FA4Config, compile_kernel
cfg = FA4Config(num_q_heads=1, group=1, qk_depth=128, ov_depth=128)
for _ in range(2):
    start = time.perf_counter()
    compile_kernel(cfg, causal=True)
    print(f"{(time.perf_counter() - start) * 1e3:.1f}")
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, FA4_NUMBA_CACHE=folder)
        times = []
        for _ in range(2):
            result = subprocess.run(
                [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
            )
            times += [float(t) for t in result.stdout.split()]
    print(
        f"cold {times[0] / 1e3:.2f} s; warm, first call of a process {times[2]:.1f} ms; warm, later {times[3]:.1f} ms"
    )


if __name__ == "__main__":
    main()
