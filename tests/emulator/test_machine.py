"""Machine semantics: divergence, barriers, TMA, tensor memory, schedules, and what goes wrong."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest
from programs import HEADER, run_lanewise

from fa4_numba.emulator import GlobalMemory, Machine, parse
from fa4_numba.errors import (
    Deadlock,
    Fa4Error,
    Hazard,
    LaunchError,
    MemoryFault,
    PtxSyntaxError,
    StepLimit,
    UnknownInstructionError,
)
from fa4_numba.layout import InstrDesc, Major, SmemDesc, Swizzle, TensorMapSpec

SCHEDULES = ["eager", "late", "random:3", "random:4"]


def kernel(body, params="", shared=".extern .shared .align 1024 .b8 smem[];", threads=128):
    return f"""{HEADER}
{shared}
.visible .entry k({params}) .maxntid {threads} {{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<8>;
{body}
ret;
}}"""


def test_diverged_lanes_meet_again():
    body = """setp.lt.u32 %p1, %a32, 10; @%p1 bra SMALL; mul.lo.s32 %d32, %a32, 2; bra MEET;
    SMALL: setp.lt.u32 %p2, %a32, 5; @!%p2 bra MIDDLE; mov.u32 %d32, 1000; bra MEET;
    MIDDLE: add.s32 %d32, %a32, 500;
    MEET: add.s32 %d32, %d32, 1;"""
    lanes = np.arange(32, dtype=np.uint32)
    want = np.where(lanes < 5, 1001, np.where(lanes < 10, lanes + 501, lanes * 2 + 1))
    assert (run_lanewise(body, lanes) == want).all()


def test_lanes_loop_as_often_as_they_like():
    body = """mov.u32 %d32, 0; mov.u32 %r2, 0;
    LOOP: setp.ge.u32 %p1, %r2, %a32; @%p1 bra DONE; add.s32 %r2, %r2, 1; add.s32 %d32, %d32, %r2; bra LOOP;
    DONE: """
    lanes = np.arange(32, dtype=np.uint32)
    assert (run_lanewise(body, lanes) == lanes * (lanes + 1) // 2).all()


PING_PONG = """
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, smem; add.s32 %r4, %r3, 8;
setp.ne.s32 %p1, %r1, 0; @%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 32; mbarrier.init.shared::cta.b64 [%r4], 32;
READY: bar.sync 0; mov.u32 %r5, 0; ld.param.u64 %rd1, [out];
setp.eq.s32 %p2, %r2, 1; @%p2 bra CONSUME;
setp.ne.s32 %p2, %r2, 0; @%p2 bra END;
PRODUCE: and.b32 %r6, %r5, 1; xor.b32 %r7, %r6, 1;
P_WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], %r7; @!%p3 bra P_WAIT;
st.shared.b32 [%r3+16], %r5; mbarrier.arrive.shared::cta.b64 _, [%r3];
add.s32 %r5, %r5, 1; setp.lt.s32 %p4, %r5, 5; @%p4 bra PRODUCE; bra END;
CONSUME: and.b32 %r6, %r5, 1;
C_WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r6; @!%p3 bra C_WAIT;
ld.shared.b32 %r8, [%r3+16]; mul.wide.s32 %rd2, %r5, 4; add.s64 %rd2, %rd1, %rd2; st.global.b32 [%rd2], %r8;
mbarrier.arrive.shared::cta.b64 _, [%r4];
add.s32 %r5, %r5, 1; setp.lt.s32 %p4, %r5, 5; @%p4 bra CONSUME;
END:"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_mbarriers_hand_values_over_in_order(schedule):
    memory, out = GlobalMemory(), np.zeros(5, np.int32)
    args = (memory.bind(out, "out", writable=True),)
    text = kernel(PING_PONG, ".param .u64 out")
    Machine(text, (1, 1, 1), (128, 1, 1), args, memory, 64, schedule=schedule).run()
    assert out.tolist() == [0, 1, 2, 3, 4]


def test_a_deadlock_says_who_waits_for_what():
    text = kernel(PING_PONG.replace("[%r4], 32", "[%r4], 33"), ".param .u64 out")
    memory, out = GlobalMemory(), np.zeros(5, np.int32)
    machine = Machine(
        text,
        (1, 1, 1),
        (128, 1, 1),
        (memory.bind(out, "o", writable=True),),
        memory,
        64,
        shared_names={8: "slot_empty"},
    )
    with pytest.raises(Deadlock) as caught:
        machine.run()
    message = str(caught.value)
    assert "warp 0" in message and "slot_empty" in message and "32 of 33 arrivals" in message
    assert "parity 0" in message and "P_WAIT" not in message and "mbarrier.try_wait" in message


@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_tma_round_trip_clips_and_fills(swizzle, schedule):
    """Load a box that sticks out of the tensor, store it elsewhere: inside equal, outside zero, beyond untouched."""
    source = np.arange(10 * 64, dtype=np.uint16).reshape(10, 64)
    target = np.full((8, 64), 7, np.uint16)
    memory = GlobalMemory()
    box = (swizzle.span_bytes // 2, 8)
    maps = [
        TensorMapSpec("uint16", memory.bind(a, n, writable=True), a.shape[::-1], (128,), box, swizzle)
        for a, n in ((source, "source"), (target, "target"))
    ]
    body = """mov.u32 %r1, smem; add.s32 %r2, %r1, 4096; mov.u32 %r3, %tid.x;
    setp.ne.s32 %p1, %r3, 0; @%p1 bra END;
    mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], BYTES;
    mov.b64 %rd1, src; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, dst; cvta.param.u64 %rd2, %rd2;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {0, 4}], [%r2];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra W;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, 3}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
    END:""".replace("BYTES", str(maps[0].box_bytes))
    text = kernel(body, ".param .align 64 .b8 src[128], .param .align 64 .b8 dst[128]")
    machine = Machine(text, (1, 1, 1), (32, 1, 1), tuple(maps), memory, 8192, schedule=schedule)
    machine.run()
    want = np.full((8, 64), 7, np.uint16)
    moved = np.zeros((8, box[0]), np.uint16)
    moved[:6] = source[4:, : box[0]]
    want[3:, : box[0]] = moved[:5]
    assert (target == want).all()
    shared = machine.read_shared(0, maps[0].box_bytes).view(np.uint16)
    if swizzle is Swizzle.NONE:
        assert (shared.reshape(8, -1) == moved).all()


def mma_kernel(instr, a_desc, b_desc, steps, from_tmem):
    a = "[%r5]" if from_tmem else "%rd1"
    advance = "add.s32 %r5, %r5, 8;" if from_tmem else f"add.s64 %rd1, %rd1, {a_desc[1] >> 4};"
    loop = "".join(
        f"setp.ne.b32 %p1, {int(i > 0)}, 0; tcgen05.mma.cta_group::1.kind::f16 [%r4], {a}, %rd2, {instr}, %p1;"
        f"{advance} add.s64 %rd2, %rd2, {b_desc[1] >> 4};"
        for i in range(steps)
    )
    return kernel(
        f"""mov.u32 %r1, smem; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; setp.ne.s32 %p2, %r3, 0; @%p2 bra END;
    add.s32 %r6, %r1, 98304; add.s32 %r7, %r1, 98312;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 512; ld.shared.b32 %r4, [%r7]; add.s32 %r5, %r4, 256;
    setp.ne.s32 %p3, %r2, 0; @%p3 bra WAIT;
    mbarrier.init.shared::cta.b64 [%r6], 1;
    mov.b64 %rd1, {a_desc[0]}; mov.b64 %rd2, {b_desc[0]};
    {loop}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra W;
    WAIT: END:"""
    )


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("from_tmem", [False, True])
@pytest.mark.parametrize("n, b_major", [(128, Major.K), (64, Major.MN), (128, Major.MN)])
def test_mma_against_numpy(n, b_major, from_tmem, schedule):
    """D[128, n] = A[128, 64]·B[n, 64]ᵀ with f16 operands written where the descriptors say."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((n, 64)).astype(np.float16)
    start_a, start_b = 1024, 1024 + 32768
    k_major = lambda start: SmemDesc(start, 0, 1024, Swizzle.B128)
    if b_major is Major.K:
        desc_b, step_b = k_major(start_b), 32
    else:
        desc_b, step_b = SmemDesc(start_b, 64 * 128, 1024, Swizzle.B128), 16 * 128
    instr = InstrDesc("f16", 128, n, "f16", "f16", b_major=b_major).pack()
    text = mma_kernel(instr, (k_major(start_a).pack(), 32), (desc_b.pack(), step_b), 4, from_tmem)
    machine = Machine(text, (1, 1, 1), (32, 1, 1), (), GlobalMemory(), 100 * 1024, schedule=schedule)
    data = np.zeros(98304, np.uint8)

    def put(matrix, start, major):
        for row in range(matrix.shape[0]):
            for k in range(64):
                if major is Major.K:
                    at = start - 1024 + row * 128 + ((2 * k // 16) ^ (row % 8)) * 16 + 2 * k % 16
                else:
                    chunk, column = divmod(2 * row, 128)
                    at = (
                        start
                        - 1024
                        + chunk * 64 * 128
                        + k * 128
                        + ((column // 16) ^ (k % 8)) * 16
                        + column % 16
                    )
                data[at : at + 2] = matrix[row, k : k + 1].view(np.uint8)

    put(a, start_a, Major.K)
    put(b, start_b, b_major)

    machine.start()
    machine.write_shared(0, data.tobytes())
    machine.write_tmem(256, a.view(np.uint32))
    machine.run()
    got = machine.read_tmem(0, n).view(np.float32)
    want = a.astype(np.float32) @ b.astype(np.float32).T
    assert np.abs(got - want).max() < 1e-4


def test_tensor_memory_is_checked():
    alloc = "mov.u32 %r1, smem; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32; ld.shared.b32 %r2, [%r1];"
    run = lambda body: Machine(kernel(alloc + body), (1, 1, 1), (32, 1, 1), (), GlobalMemory(), 64).run()
    with pytest.raises(MemoryFault, match="columns 32-63 are not allocated"):
        run(
            "add.s32 %r2, %r2, 32; tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
            + ", ".join(f"%r{i}" for i in range(4, 36))
            + "}, [%r2];"
        )
    with pytest.raises(MemoryFault, match="lanes from 0"):
        run("add.s32 %r2, %r2, 2097152; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2];")
    with pytest.raises(Hazard, match="not allocated so"):
        run("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;")


def test_faults_name_the_place():
    memory, small = GlobalMemory(), np.zeros(4, np.int32)
    args = (memory.bind(small, "small", writable=True),)
    body = "ld.param.u64 %rd1, [out]; st.global.b32 [%rd1+16], 5;"
    with pytest.raises(MemoryFault, match="'small'.*0 bytes past the end"):
        Machine(kernel(body, ".param .u64 out"), (1, 1, 1), (32, 1, 1), args, memory).run()
    with pytest.raises(MemoryFault, match="outside of the"):
        Machine(
            kernel("mov.u32 %r1, smem; st.shared.b32 [%r1+64], 5;"), (1, 1, 1), (32, 1, 1), (), memory, 64
        ).run()
    with pytest.raises(MemoryFault, match="not a multiple of 4"):
        Machine(
            kernel("mov.u32 %r1, smem; st.shared.b32 [%r1+2], 5;"), (1, 1, 1), (32, 1, 1), (), memory, 64
        ).run()
    with pytest.raises(Hazard, match="no mbarrier"):
        Machine(
            kernel("mov.u32 %r1, smem; mbarrier.arrive.shared::cta.b64 _, [%r1];"),
            (1, 1, 1),
            (32, 1, 1),
            (),
            memory,
            64,
        ).run()


def test_stepping_hooks_and_breakpoints():
    memory, out = GlobalMemory(), np.zeros(5, np.int32)
    args = (memory.bind(out, "out", writable=True),)
    machine = Machine(kernel(PING_PONG, ".param .u64 out"), (1, 1, 1), (128, 1, 1), args, memory, 64)
    seen = []
    hook = machine.hook(lambda m: seen.append(m.executed))
    machine.run_until(lambda m: out[2] != 0)
    assert out.tolist() in ([0, 1, 2, 0, 0], [0, 1, 2, 3, 0]) and len(seen) > 3 and seen == sorted(seen)
    assert machine.read_shared(16, 4).view(np.int32)[0] >= 2
    assert machine.registers(1)[:, 0].size > 8
    hook.remove()
    count = len(seen)
    while machine.step():
        pass
    assert len(seen) == count and out.tolist() == [0, 1, 2, 3, 4]
    assert machine.step() is False


@pytest.mark.parametrize("schedule", ["eager", "random:9"])
def test_a_checkpoint_is_the_same_state_again(schedule):
    memory, out = GlobalMemory(), np.full(5, -1, np.int32)
    args = (memory.bind(out, "out", writable=True),)
    machine = Machine(
        kernel(PING_PONG, ".param .u64 out"), (1, 1, 1), (128, 1, 1), args, memory, 64, schedule=schedule
    )
    machine.run_until(lambda m: out[1] != -1)
    mark, then = (
        machine.checkpoint(),
        (out.copy(), machine.registers(1), machine.read_shared(0, 64), machine.executed),
    )
    machine.run()
    assert out.tolist() == [0, 1, 2, 3, 4]
    machine.restore(mark)
    now = (out.copy(), machine.registers(1), machine.read_shared(0, 64), machine.executed)
    assert all(np.array_equal(a, b) for a, b in zip(then, now))
    machine.run()
    assert out.tolist() == [0, 1, 2, 3, 4]


def test_single_steps_flush_like_runs():
    """step() must set up the same arithmetic as run()."""
    memory, out = GlobalMemory(), np.ones(1, np.float32)
    args = (memory.bind(out, "out", writable=True),)
    body = """.reg .f32 %f1; mov.f32 %f1, 0f00800000; mul.rn.ftz.f32 %f1, %f1, 0f3F000000;
    ld.param.u64 %rd1, [out]; st.global.f32 [%rd1], %f1;"""
    machine = Machine(kernel(body, ".param .u64 out"), (1, 1, 1), (32, 1, 1), args, memory)
    while machine.step():
        pass
    assert out[0] == 0
    with np.errstate(all="ignore"):
        assert np.float32(2.0**-126) * np.float32(0.5) != 0  # and leave the mode as it was


def test_perfetto_export():
    import json

    from fa4_numba.emulator import Event, perfetto_json

    events = [
        Event(0, (0, 0, 0), "softmax0 w0", "wait S"),
        Event(5, (0, 0, 0), "softmax0 w0", "softmax"),
        Event(6, (0, 0, 0), "MMA", "P V"),
    ]
    trace = json.loads(perfetto_json(events))["traceEvents"]
    assert sorted((t["tid"], t["name"], t["ts"], t["dur"]) for t in trace) == [
        ("MMA", "P V", 6, 1),
        ("softmax0 w0", "softmax", 5, 2),
        ("softmax0 w0", "wait S", 0, 5),
    ]


def test_endless_loops_end():
    with pytest.raises(StepLimit, match="endless"):
        Machine(
            kernel("L: add.s32 %r1, %r1, 1; bra L;"),
            (1, 1, 1),
            (32, 1, 1),
            (),
            GlobalMemory(),
            max_steps=10**6,
        ).run()


def test_register_budgets_must_fit_the_pool():
    body = "setmaxnreg.inc.sync.aligned.u32 {};"
    Machine(kernel(body.format(128), threads=512), (1, 1, 1), (512, 1, 1), (), GlobalMemory()).run()
    with pytest.raises(Deadlock, match="registers"):
        Machine(kernel(body.format(192), threads=512), (1, 1, 1), (512, 1, 1), (), GlobalMemory()).run()


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"grid": (0, 1, 1)}, LaunchError, "grid"),
        ({"block": (2048, 1, 1)}, LaunchError, "threads"),
        ({"dynamic_smem_bytes": 1 << 30}, LaunchError, "shared memory"),
        ({"cluster": (2, 1, 1)}, LaunchError, "cluster"),
        ({"args": (1, 2)}, LaunchError, "arguments"),
        ({"entry": "nope"}, LaunchError, "nope"),
        ({"schedule": "soon"}, LaunchError, "soon"),
    ],
)
def test_launch_errors(change, error, message):
    arguments = {"grid": (1, 1, 1), "block": (32, 1, 1)} | change
    with pytest.raises(error, match=message):
        Machine(kernel(""), **arguments)


def test_unknown_instructions_are_found_at_load_time():
    with pytest.raises(UnknownInstructionError, match=r"'frobnicate.f32' is not implemented"):
        Machine(kernel("frobnicate.f32 %r1, %r2;"), (1, 1, 1), (32, 1, 1))


def test_damaged_ptx_gives_only_our_errors():
    text = kernel(PING_PONG, ".param .u64 out")
    rng = np.random.default_rng(0)
    for _ in range(150):
        cut = text[: rng.integers(0, len(text))] if rng.random() < 0.5 else text
        at = int(rng.integers(0, max(1, len(cut))))
        broken = cut[:at] + chr(int(rng.integers(32, 127))) + cut[at + 1 :]
        with contextlib.suppress(Fa4Error):
            Machine(broken, (1, 1, 1), (128, 1, 1), (1 << 40,), GlobalMemory(), 64, max_steps=20000).run()
    with pytest.raises(PtxSyntaxError):
        parse("hello")


def test_emulator_needs_numpy_and_ml_dtypes_only():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('numba', 'numba_cuda', 'cuda', 'llvmlite', 'scipy', 'matplotlib'):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import fa4_numba.emulator
print(sorted(m for m in sys.modules if m.split('.')[0] in ('numba', 'cuda', 'llvmlite')))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
