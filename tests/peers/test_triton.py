"""Triton's and Gluon's kernels on the emulator, against float64, under every schedule.

Triton compiles them here, for a Blackwell GPU that this machine does not have; nothing of Triton's is kept.
"""

import os

import pytest

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns unless it is told
triton = pytest.importorskip("triton", reason="pip install -e '.[test]' brings Triton on Linux")

import cases_triton  # noqa: E402
from harness import SCHEDULES, run  # noqa: E402

pytestmark = pytest.mark.peers_triton
CASES = list(cases_triton.CASES)
if tuple(map(int, triton.__version__.split(".")[:2])) >= (
    3,
    9,
):  # Gluon of older versions spells things otherwise
    import cases_gluon

    CASES += cases_gluon.CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_numpy_under_every_schedule(case):
    for schedule in SCHEDULES:
        result = run(case, schedule, "triton")
        assert not result.failure, f"{schedule}: {result.failure}"
        errors = [(c.error, c.tolerance) for c in result.comparisons]
        assert result.holds, f"{schedule}: (error, tolerance) {errors}"
