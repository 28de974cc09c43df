"""flash-attn-4's own functions on the emulator, against float64, under every schedule.

They need torch and CuTe DSL, in an environment of their own: ``tests/peers/make_env.sh fa4`` makes it.
"""

import warnings
from importlib.util import find_spec

import pytest

if find_spec("cutlass") is None:
    pytest.skip("run tests/peers/make_env.sh fa4, then pytest with its python", allow_module_level=True)

with warnings.catch_warnings():  # CuTe DSL and torch deprecate things while they are imported
    warnings.simplefilter("ignore")
    from cases_fa4 import CASES
from harness import SCHEDULES, run  # noqa: E402

pytestmark = [pytest.mark.peers_fa4, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_float64_under_every_schedule(case):
    for schedule in SCHEDULES:
        result = run(case, schedule, "cutlass")
        assert not result.failure, f"{schedule}: {result.failure}"
        errors = [(c.error, c.tolerance) for c in result.comparisons]
        assert result.holds, f"{schedule}: (error, tolerance) {errors}"
