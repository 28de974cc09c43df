"""The timing model: exact where a chain or a unit decides, unchanged results, and close to what a GPU measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.hopper import probes
from bench.hopper.emulate import machine_of
from bench.hopper.text import HEADER
from fa4_numba.api import Problem, choose_config
from fa4_numba.cli.emulate import random_inputs
from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.emulator.timing.grid import ctas_per_sm, kernel_time
from fa4_numba.errors import Deadlock, LaunchError
from fa4_numba.launch.emulate import prepare
from fa4_numba.toolchain import compile_kernel
from fa4_numba.viz import draw_model_timeline

MEASURED = json.loads((Path(__file__).parents[2] / "bench/data/hopper_times.json").read_text())["probes"]
REGISTERS = """.reg .b32 %r<16>; .reg .f32 %f<24>; .reg .b64 %d<8>; .reg .pred %p<8>;
ld.param.u64 %d0, [out]; mov.u32 %r0, smem; mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid;
mov.f32 %f20, 0f3F000000; cvt.rn.f32.u32 %f0, %r1;
"""


def kernel(body: str) -> str:
    return f"{HEADER}.visible .entry k(.param .u64 out) {{\n{REGISTERS}{body}\nret;\n}}"


def run(body: str, threads: int = 32, **options) -> Machine:
    """Run one CTA of a kernel by the model's clock."""
    memory, out = GlobalMemory(), np.zeros(1024, np.uint64)
    options = {"schedule": "model"} | options
    args = (memory.bind(out, "out", writable=True),)
    machine = Machine(kernel(body), (1, 1, 1), (threads, 1, 1), args, memory, 4096, **options)
    machine.run()
    machine.out = out
    return machine


def loop(body: str, n: int) -> str:
    return (
        f"mov.u32 %r9, {n};\nLOOP:\n{body}\nadd.s32 %r9, %r9, -1;\nsetp.ne.s32 %p0, %r9, 0;\n@%p0 bra LOOP;\n"
    )


@pytest.mark.parametrize("engine", ["interpreter", "compiled"])
def test_a_chain_takes_its_latencies(engine):
    """32 dependent multiply-adds of 4 cycles each; the last overlaps with the branch's 10: measured, 135 an iteration."""
    chain = "fma.rn.f32 %f0, %f0, %f20, %f20;\n" * 32
    few, many = (run(loop(chain, n), engine=engine).timing.cycles for n in (10, 30))
    assert (many - few) / 20 == 135


def test_the_clock_register_counts_the_models_cycles():
    chain = "fma.rn.f32 %f0, %f0, %f20, %f20;\n" * 100
    machine = run(
        f"mov.u64 %d1, %clock64;\n{chain}mov.u64 %d2, %clock64; sub.s64 %d2, %d2, %d1; st.global.u64 [%d0], %d2;"
    )
    assert 397 <= int(machine.out[0]) <= 401


def test_warps_of_one_scheduler_share_its_slots():
    """Eight warps, two a scheduler: independent multiply-adds take twice as long as four warps'."""
    body = loop("".join(f"fma.rn.f32 %f{i}, %f{i}, %f20, %f20;\n" for i in range(16)) * 8, 50)
    four, eight = (run(body, threads).timing.cycles for threads in (128, 256))
    assert 1.8 < eight / four < 2.0


def test_exponentials_are_limited_by_their_unit():
    """512 threads: 16 results a cycle and SM."""
    machine = run(loop("".join(f"ex2.approx.ftz.f32 %f{i}, %f{i};\n" for i in range(16)), 100), 512)
    assert machine.timing.cycles >= 512 * 16 * 100 / 16
    assert machine.timing.utilisation()["MUFU"] > 0.97


def test_multiplies_are_limited_by_the_tensor_core():
    """Two warpgroups of wgmma m64n256k16: nearly 4096 floating-point operations a cycle."""
    probe = next(p for p in probes.probes() if p.name == "wgmma SS n256 batch 8 groups 2")
    case = next(c for c in probes.cases() if c.name == probe.name)
    machine, _ = machine_of(case, HEADER + probes._kernel(probe), 20, schedule="model")
    machine.run()
    busy = machine.timing.utilisation()["tensor core"]
    assert 0.9 < busy <= 1.0
    assert machine.timing.cycles >= 20 * 16 * 64 * 256 * 16 * 2 / 4096


def test_a_wait_names_who_ended_it():
    """Warp 0 waits as long as warp 1's chain takes."""
    body = f"""
    mbarrier.init.shared::cta.b64 [%r0], 1; bar.sync 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra WAIT;
    {"fma.rn.f32 %f0, %f0, %f20, %f20;" * 500}
    cvt.rzi.s32.f32 %r3, %f0; setp.eq.s32 %p2, %r3, 12345; @%p2 st.global.u32 [%d0], %r3;
    setp.eq.u32 %p3, %r2, 0; @%p3 mbarrier.arrive.shared::cta.b64 _, [%r0]; bra END;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r0], 0; @!%p4 bra WAIT;
    END:"""
    body = body.replace("mbarrier.init", "setp.eq.u32 %p5, %r1, 0; @%p5 mbarrier.init", 1)
    machine = run(body, 64, shared_names={0: "done"})
    (wait,) = (wait for wait in machine.timing.last.waits if wait.what == "done")
    cycles = wait.until - wait.start
    assert (wait.warp.index, wait.whom.index) == (0, 1)
    assert 1950 < cycles < 2150
    trace = json.loads(machine.timing.perfetto())["traceEvents"]
    assert any(e["name"].startswith("wait done") and abs(e["dur"] - cycles) < 1 for e in trace)


def test_a_deadlock_is_still_reported():
    body = """setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared::cta.b64 [%r0], 1;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r0], 0; @!%p2 bra W;"""
    with pytest.raises(Deadlock, match="warp 0 .*waits for parity 0"):
        run(body)


def test_there_is_no_timing_without_a_clock_and_no_clock_without_numbers():
    with pytest.raises(LaunchError, match="schedule='model'"):
        _ = run("", schedule="eager").timing
    with pytest.raises(LaunchError, match="sm_80.*model:sm_90"):
        run("", schedule="model:sm_80")


@pytest.fixture(scope="module")
def attention():
    """Our kernel, 256 queries and 1024 keys: (eager, model) outputs and the machine with the clock."""
    problem = Problem(1, 1, 1, 256, 1024, 128, 128, "bfloat16")
    compiled = compile_kernel(choose_config(problem).config)
    outputs = {}
    for schedule in ("eager", "model"):
        machine, o, lse = prepare(compiled, *random_inputs(problem), scale=128**-0.5, schedule=schedule)
        machine.run()
        outputs[schedule] = o, lse
    return outputs, machine


def test_the_clock_changes_no_result(attention):
    outputs, _ = attention
    for plain, timed in zip(outputs["eager"], outputs["model"]):
        assert plain.tobytes() == timed.tobytes()


def test_our_kernel_keeps_the_units_busy(attention):
    """The limits hold, and the roles that should wait do: the first results of the tensor core, then softmax."""
    timing = attention[1].timing
    multiplies = 2 * 2 * 256 * 1024 * 128 / 8192  # cycles that the tensor core needs
    assert multiplies < timing.cycles < 2 * multiplies
    use = timing.utilisation()
    assert use["tensor core"] == pytest.approx(multiplies / timing.cycles, rel=0.02)
    assert all(0 <= part <= 1 for part in use.values())
    waited = {(role, whom) for role, _, whom, _, cycles in timing.waiting() if cycles > 200}
    assert {("softmax0", "tensor core"), ("mma", "softmax0"), ("correction", "softmax1")} <= waited


def test_softmax_issue_slots_are_those_of_the_machine_code(attention):
    """``bench/softmax_slots.py`` counts 506 slots of machine code per 128-key tile and warp."""
    roles = attention[1].timing.roles()
    per_tile = roles["softmax0"]["issue slots"] / 8
    assert 506 * 0.9 < per_tile < 506 * 1.15  # with the prologue and epilogue


def test_the_picture_has_a_row_per_role_and_unit(attention):
    axes = draw_model_timeline(attention[1].timing).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert {"softmax0", "softmax1", "correction", "mma", "load", "tensor core", "TMA load"} <= {*names}
    assert "model" in axes.get_xlabel()


def test_a_grid_takes_waves(attention):
    machine = attention[1]
    assert ctas_per_sm(machine) == 1
    time = kernel_time(machine)
    assert (time.waves, time.bound) == (1, "SM")
    assert time.cycles == pytest.approx(machine.timing.cycles)


@pytest.mark.parametrize(
    "name, tolerance",
    [
        ("chain ex2.f32", 0.01),
        ("chain add.s32", 0.02),  # pairs become one instruction
        ("wide lop3.b32 x16", 0.02),
        ("wide fma+ex2 x16", 0.02),
        ("ld.shared.v4.b32 x16", 0.01),
        ("chain ld.shared", 0.01),
        ("chain ld.global L2", 0.01),
        ("mbarrier alone", 0.1),
        ("mbarrier ping-pong", 0.15),
        ("TMA load 1024 B x1", 0.1),
        ("TMA load 16384 B x8", 0.03),
        ("TMA store 16384 B x4 wait", 0.05),
        ("wgmma SS n128 batch 1 groups 1", 0.1),
        ("wgmma RS n128 batch 8 groups 2", 0.02),
    ],
)
def test_micro_kernels_take_what_a_gpu_measured(name, tolerance):
    probe = next(p for p in probes.probes() if p.name == name)
    case = next(c for c in probes.cases() if c.name == name)
    totals = []
    for n in (8, 24):
        machine, arrays = machine_of(case, HEADER + probes._kernel(probe), n, schedule="model")
        machine.run()
        totals.append(int(arrays["out"].view(np.uint64)[: 4 * probe.warps : 4].max()))
    assert (totals[1] - totals[0]) / 16 == pytest.approx(MEASURED[name], rel=tolerance)
