"""Mutants of a peer's kernel, Triton's warp-specialised attention: ``python -m tests.mutation.peer_kernel [per_kind]``."""

import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from fa4_numba.emulator.driver import emulated_driver

from .run import equal, report, run_all

sys.path.append(str(Path(__file__).parent.parent / "peers"))
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns unless it is told
CASE = "attention d64 full warp-specialised"
MAX_STEPS = 10**6


@cache
def _recorded():
    """Return the launch as Triton makes it, not run, and the writable arrays' contents before and after a run."""
    import triton  # noqa: F401
    from cases_triton import CASES

    case = next(case for case in CASES if str(case) == CASE)
    with emulated_driver(libraries=["triton"], run=False) as log:
        case.run()
    recorded = replace(log[0], grid=(1, 1, 1))  # one CTA is enough: all roles and rings are in it
    before = recorded.memory.snapshot()
    recorded.run(check=True)
    after = recorded.memory.snapshot()
    return recorded, before, after


def launch(ptx: str, schedule: str):
    """Return (machine, function that says whether its results are those of the unmutated kernel)."""
    recorded, before, after = _recorded()
    recorded.memory.restore(before)
    machine = replace(recorded, ptx=ptx).machine(schedule=schedule, check=True, max_steps=MAX_STEPS)

    def right() -> bool:
        now = recorded.memory.snapshot()
        return all(equal(now[address], after[address]) for address in after)

    return machine, right


def main():
    per_kind = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    report(run_all(launch, _recorded()[0].ptx, per_kind, progress=True))


if __name__ == "__main__":
    main()
