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


def test_a_failing_kernel_raises_through_tritons_own_call():
    """An address outside of every array: the library's call raises what the emulator found."""
    import kernels_triton
    import numpy as np

    from fa4_numba.emulator.driver import DeviceArray, emulated_driver
    from fa4_numba.errors import MemoryFault

    x, out = DeviceArray(np.zeros(100, np.float32)), DeviceArray(np.zeros(100, np.float32))
    with (
        emulated_driver(libraries=["triton"]) as log,
        pytest.raises(MemoryFault, match="begins 400 bytes before the end"),
    ):
        kernels_triton.vector_add[(1,)](x, x, out, 1000, BLOCK=1024)
    assert len(log) == 1 and log[0].stats is None


def test_launches_can_be_recorded_without_running(tmp_path):
    import kernels_triton
    import numpy as np

    from fa4_numba.emulator.driver import DeviceArray, Launch, emulated_driver

    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    with emulated_driver(libraries=["triton"], run=False, save_to=tmp_path) as log:
        kernels_triton.vector_add[(1,)](DeviceArray(x), DeviceArray(x), DeviceArray(out), 100, BLOCK=1024)
    assert not out.any() and log[0].stats is None
    again = Launch.load(tmp_path / "0_vector_add")
    again.run()
    assert any(
        (data.view(np.float32) == 2 * x).all()
        for data in again.memory.snapshot().values()
        if data.size == 400
    )


def test_the_previous_driver_comes_back():
    from triton.runtime import driver

    from fa4_numba.emulator.driver import emulated_driver

    before = driver._active
    with emulated_driver(libraries=["triton"]):
        assert driver._active is not before
    assert driver._active is before
