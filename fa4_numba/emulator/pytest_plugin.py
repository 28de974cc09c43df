"""A pytest fixture that runs a kernel under several schedules and fails on hazards.

pytest_plugins = ["fa4_numba.emulator.pytest_plugin"]      # in conftest.py

def test_my_kernel(checked_run):
    out = np.zeros(64, np.float32)
    def launch(schedule):
        memory = GlobalMemory()
        args = (memory.bind(out, "out", writable=True),)
        return Machine(ptx, grid=(1, 1, 1), block=(64, 1, 1), args=args, memory=memory,
                       schedule=schedule, check=True)
    checked_run(launch, lambda: (out == 1).all())
"""

import pytest

SCHEDULES = ("eager", "late", "random:1", "random:2", "random:3")


@pytest.fixture
def checked_run():
    """Return ``run(launch, right=None, schedules=SCHEDULES)``.

    ``launch(schedule)`` makes a :class:`~fa4_numba.emulator.Machine` with ``check=True``; it is run to the end under
    every schedule. The test fails on a deadlock, fault or hazard of severity "error", and where ``right()`` is false;
    hazards of severity "warning" become ``HazardWarning``. Returns the last machine.
    """

    def run(launch, right=None, schedules=SCHEDULES):
        machine = None
        for schedule in schedules:
            machine = launch(schedule)
            if machine.checker is None:
                pytest.fail("launch() must make the Machine with check=True")
            machine.run()
            machine.checker.verdict()
            if right is not None and not right():
                pytest.fail(f"wrong results under the schedule {schedule}")
        return machine

    return run
