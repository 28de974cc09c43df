"""Hazards: a clean program, and the same with one line changed for each kind that the checks know."""

from pathlib import Path

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.emulator.checks import FIXES, HazardWarning, Severity
from fa4_numba.errors import Hazard
from fa4_numba.layout import Swizzle, TensorMapSpec

SIZE = 64 * 4
PROGRAM = f"""{HEADER} .extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .align 64 .b8 m0[128], .param .align 64 .b8 m1[128]) {{
.reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<8>;
mov.b64 %rd1, m0; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, m1; cvta.param.u64 %rd2, %rd2;
mov.u32 %r1, smem; mov.u32 %r2, %tid.x; setp.ne.s32 %p1, %r2, 0;
add.s32 %r4, %r1, 8192; shl.b32 %r5, %r2, 2; add.s32 %r5, %r5, %r1; xor.b32 %r6, %r5, 128;
@!%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
@!%p1 fence.mbarrier_init.release.cluster;
bar.sync 0; // after init
@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {SIZE};
@!%p1 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{0}}], [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
ld.shared.b32 %r7, [%r6]; // the other warp's word
bar.sync 0; // all have read
add.s32 %r7, %r7, 1; st.shared.b32 [%r5], %r7;
fence.proxy.async.shared::cta;
bar.sync 0; // all have written
@!%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd2, {{0}}], [%r1];
@!%p1 cp.async.bulk.commit_group;
@!%p1 cp.async.bulk.wait_group.read 0;
bar.sync 0; // the store has read
st.shared.b32 [%r5], 0;
bar.sync 0; // the end
@!%p1 mbarrier.inval.shared::cta.b64 [%r4];
ret; }}"""


def run(text: str, schedule: str = "eager") -> tuple[Machine, np.ndarray]:
    memory = GlobalMemory()
    source, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    specs = [
        TensorMapSpec("uint32", memory.bind(array, name, writable=True), (64,), (), (64,), Swizzle.NONE)
        for name, array in (("source", source), ("out", out))
    ]
    machine = Machine(text, (1, 1, 1), (64, 1, 1), specs, memory, 16384, schedule=schedule, check=True)
    machine.run()
    return machine, out


@pytest.mark.parametrize("schedule", ["eager", "late", "random:1", "random:2"])
def test_the_clean_program_has_no_hazard(schedule):
    machine, out = run(PROGRAM, schedule)
    assert [str(report) for report in machine.checker.reports] == []
    assert (out == (np.arange(64) ^ 32) + 1).all()


PLANTED = {
    "read before landed": ("W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;", "setp.eq.s32 %p2, 0, 0; W:"),
    "write under a reader": ("bar.sync 0; // all have read", ""),
    "missing proxy fence": ("fence.proxy.async.shared::cta;", ""),
    "unordered read": ("bar.sync 0; // all have written", ""),
    "bulk store's source": ("@!%p1 cp.async.bulk.wait_group.read 0;", ""),
    "exit under a bulk store": ("@!%p1 cp.async.bulk.commit_group;", ""),
    "two writes": ("st.shared.b32 [%r5], 0;", "st.shared.b32 [%r1], %r2;"),
    "uninitialised": ("ld.shared.b32 %r7, [%r6];", "ld.shared.b32 %r7, [%r6+1024];"),
    "barrier not initialised yet": ("bar.sync 0; // after init", ""),
    "invalidated in flight": ("@!%p1 mbarrier.inval", "@!%p1 mbarrier.expect_tx.shared::cta.b64 [%r4], 16; @!%p1 mbarrier.inval"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_hazard_is_named(kind):
    old, new = PLANTED[kind]
    assert PROGRAM.count(old) == 1
    text = PROGRAM.replace(old, new)
    if kind == "barrier not initialised yet":  # without the barrier the machine faults unless warp 0 is first
        text = text.replace("@!%p1 mbarrier.arrive", "bar.warp.sync 0xffffffff; @!%p1 mbarrier.arrive")
    machine, _ = run(text)
    found = {report.kind for report in machine.checker.reports}
    assert kind in found, f"found {found or 'nothing'}"
    report = next(report for report in machine.checker.reports if report.kind == kind)
    severity, _, fix = FIXES[kind]
    text = str(report)
    assert severity.name.lower() in text and fix in text and "PTX line" in text and "warp" in text


def test_the_verdict_raises_errors_and_warns_of_warnings():
    machine, _ = run(PROGRAM.replace(*PLANTED["missing proxy fence"]))
    with pytest.raises(Hazard, match="missing proxy fence"):
        machine.checker.verdict()
    machine, _ = run(PROGRAM.replace(*PLANTED["uninitialised"]))
    assert machine.checker.of(Severity.ERROR) == []
    with pytest.warns(HazardWarning, match="uninitialised"):
        machine.checker.verdict()


def test_bank_conflicts_are_counted():
    machine, _ = run(PROGRAM)
    assert sum(extra for _, extra in machine.checker.conflicts.values()) == 0
    text = PROGRAM.replace(
        "ld.shared.b32 %r7, [%r6];",
        "ld.shared.b32 %r7, [%r6]; and.b32 %r8, %r2, 1; shl.b32 %r8, %r8, 7; add.s32 %r8, %r8, %r1; ld.shared.b32 %r9, [%r8];",
    )
    machine, _ = run(text)
    assert (
        sum(extra for _, extra in machine.checker.conflicts.values()) == 2
    )  # one more wavefront in each warp


def test_threads_that_write_the_same_value_do_not_race():
    machine, _ = run(PROGRAM.replace("st.shared.b32 [%r5], 0;", "st.shared.b32 [%r1], 7;"))
    assert [r.kind for r in machine.checker.reports] == []


def test_the_fixture_for_other_peoples_kernels(checked_run):
    memory, out = GlobalMemory(), np.zeros(64, np.uint32)
    source = np.arange(64, dtype=np.uint32)
    specs = [
        TensorMapSpec("uint32", memory.bind(array, name, writable=True), (64,), (), (64,), Swizzle.NONE)
        for name, array in (("source", source), ("out", out))
    ]

    def launch(text):
        return lambda schedule: Machine(
            text, (1, 1, 1), (64, 1, 1), specs, memory, 16384, schedule=schedule, check=True
        )

    checked_run(launch(PROGRAM), lambda: (out == (np.arange(64) ^ 32) + 1).all())
    with pytest.raises(Hazard, match="missing proxy fence"):
        checked_run(launch(PROGRAM.replace(*PLANTED["missing proxy fence"])))
    with pytest.raises(pytest.fail.Exception, match="wrong results"):
        checked_run(launch(PROGRAM), lambda: False)


def test_the_docs_list_every_kind():
    text = (Path(__file__).parents[2] / "docs" / "hazards.md").read_text()
    for kind, (severity, wrong, fix) in FIXES.items():
        assert f"| {kind} | {severity.name.lower()} | {wrong} | {fix} |" in text
