"""Mutants of our own kernel: ``python -m tests.mutation.own_kernel [per_kind]``."""

import sys
from dataclasses import replace
from functools import cache

from fa4_numba.api import Problem, choose_config
from fa4_numba.cli.emulate import random_inputs
from fa4_numba.launch import emulate
from fa4_numba.toolchain import compile_kernel

from .run import equal, report, run_all

PROBLEM = Problem(1, 1, 1, 256, 1100, 128, 128, "bfloat16", causal=False)  # three laps of every ring
MAX_STEPS = 10**6


@cache
def _kernel():
    return compile_kernel(choose_config(PROBLEM).config)


@cache
def _expected():
    run = emulate.run(_kernel(), *random_inputs(PROBLEM), scale=0.1, check=True)
    return run.o, run.lse


def launch(ptx: str, schedule: str):
    """Return (machine, function that says whether its results are those of the unmutated kernel)."""
    expected = _expected()
    kernel = replace(_kernel(), ptx=ptx)
    machine, o, lse = emulate.prepare(
        kernel, *random_inputs(PROBLEM), scale=0.1, schedule=schedule, check=True, max_steps=MAX_STEPS
    )
    return machine, lambda: equal(o, expected[0]) and equal(lse, expected[1])


def main():
    per_kind = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    report(run_all(launch, _kernel().ptx, per_kind, progress=True))


if __name__ == "__main__":
    main()
