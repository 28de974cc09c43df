"""Triton's kernels on the emulator, against float64, under every schedule."""

import pytest

pytest.importorskip("triton", reason="the peers' tests need triton: pip install -e .[test] on Linux")

from cases_triton import CASES  # noqa: E402
from harness import SCHEDULES, run  # noqa: E402

pytestmark = pytest.mark.peers_triton


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_numpy_under_every_schedule(case):
    for schedule in SCHEDULES:
        result = run(case, schedule, "triton")
        assert not result.failure, f"{schedule}: {result.failure}"
        errors = [(c.error, c.tolerance) for c in result.comparisons]
        assert result.holds, f"{schedule}: (error, tolerance) {errors}"
