"""Schedules: delays, seeds, and the minimisation of a failing one."""

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.emulator.machine.schedule import Random
from fa4_numba.emulator.search import minimise, run_seeds
from fa4_numba.errors import LaunchError

# warp 1 reads what warp 0 wrote a while ago, with nothing that makes it wait
RACE = f"""{HEADER} .extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<4>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, smem; setp.lt.u32 %p1, %r1, 32;
@%p1 bra WRITE;
nanosleep.u32 1; nanosleep.u32 1; nanosleep.u32 1;
ld.shared.b32 %r3, [%r2]; st.global.b32 [%rd1], %r3; bra END;
WRITE: st.shared.b32 [%r2], 7;
END: ret; }}"""
SYNCHRONISED = RACE.replace("@%p1 bra WRITE;", "@%p1 bra WRITE; bar.sync 0;").replace(
    "[%r2], 7;", "[%r2], 7; bar.sync 0;"
)


def attempt(text: str):
    def run(schedule) -> str:
        memory, out = GlobalMemory(), np.zeros(1, np.uint32)
        args = (memory.bind(out, "out", writable=True),)
        Machine(text, (1, 1, 1), (64, 1, 1), args, memory, 1024, schedule=schedule).run()
        return "" if out[0] == 7 else f"out is {out[0]:#x}, not 7"

    return run


def test_random_seeds_find_a_race_and_it_is_made_small():
    done = []
    failures = run_seeds(attempt(RACE), range(20), lambda *progress: done.append(progress))
    assert done[-1] == (20, 20)
    assert 0 < len(failures) < 20
    least = minimise(attempt(RACE), failures[0])
    assert least.decisions == 1 and "not 7" in least.message
    assert attempt(RACE)(Random(least.schedule.seed, least.schedule.kept)) == least.message


def test_a_synchronised_program_survives_all_seeds():
    assert run_seeds(attempt(SYNCHRONISED), range(20)) == []


def test_a_delayed_role_comes_last():
    assert attempt(RACE)("eager") == ""
    assert attempt(RACE)("delay:warp 1") == ""
    assert "not 7" in attempt(RACE)("delay:warp 0")
    assert attempt(SYNCHRONISED)("delay:warp 0") == ""


@pytest.mark.parametrize("name", ["sometimes", "random:x", "delay:", "late:3"])
def test_unknown_schedules_are_refused(name):
    with pytest.raises(LaunchError, match="take 'eager', 'late', 'random:SEED'"):
        attempt(RACE)(name)
