"""The compiled engine against the interpreter, and clusters in parallel against one after the other."""

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.api import Problem, choose_config
from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.emulator.machine import parallel
from fa4_numba.errors import LaunchError, MemoryFault
from fa4_numba.launch import emulate
from fa4_numba.toolchain import compile_kernel

# (heads, kv heads, queries, keys, dim, causal, dtype)
SHAPES = [
    (2, 1, 200, 300, 128, False, "bfloat16"),
    (3, 1, 129, 257, 128, True, "float16"),
    (2, 2, 256, 200, 64, True, "bfloat16"),
]


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16 if array.itemsize == 2 else np.uint32)


@pytest.mark.parametrize("schedule", ["eager", "random:4"])
@pytest.mark.parametrize("shape", SHAPES)
def test_engines_agree_bit_for_bit_on_our_kernel(shape, schedule, inputs):
    heads, kv_heads, seq_q, seq_k, dim, causal, dtype = shape
    problem = Problem(1, heads, kv_heads, seq_q, seq_k, dim, dim, dtype, causal)
    kernel = compile_kernel(choose_config(problem).config, causal=causal)
    arrays = inputs(1, heads, kv_heads, seq_q, seq_k, dim, dtype)
    runs = {
        engine: emulate.run(kernel, *arrays, scale=dim**-0.5, schedule=schedule, engine=engine)
        for engine in ("interpreter", "compiled")
    }
    one, other = runs["interpreter"], runs["compiled"]
    assert one.stats.warp_instructions == other.stats.warp_instructions
    assert one.stats.lane_instructions == other.stats.lane_instructions
    for name in ("o", "lse"):
        a, b = bits(getattr(one, name)), bits(getattr(other, name))
        where = np.argwhere(a != b)
        assert not len(where), (
            f"{name} first differs at {where[0]}: {a[tuple(where[0])]:#x}, {b[tuple(where[0])]:#x}"
        )


# each CTA adds its index, in a loop whose length differs from lane to lane, and writes one word per lane
DIVERGENT = f"""{HEADER}
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<4>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, 0; and.b32 %r4, %r1, 7;
LOOP: add.u32 %r3, %r3, %r2; setp.eq.u32 %p1, %r4, 0; @%p1 bra DONE; sub.u32 %r4, %r4, 1; bra LOOP;
DONE: mad.lo.u32 %r5, %r2, 64, %r1; mul.wide.u32 %rd2, %r5, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3;
ret; }}"""


def launch(text: str, ctas: int, size: int | None = None, **options):
    memory, out = GlobalMemory(), np.zeros(size or ctas * 64, np.uint32)
    args = (memory.bind(out, "out", writable=True),)
    return Machine(text, (ctas, 1, 1), (64, 1, 1), args, memory, **options), out


@pytest.mark.parametrize("engine", ["interpreter", "compiled"])
def test_lanes_part_and_meet_again(engine):
    machine, out = launch(DIVERGENT, 3, engine=engine)
    machine.run()
    lanes = np.arange(64) & 7
    assert (out.reshape(3, 64) == np.arange(3)[:, None] * (lanes + 1)).all()


def test_clusters_in_parallel_give_the_same(monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SECONDS", 0.0)
    done = []
    machine, out = launch(DIVERGENT, 40, workers=2, progress=lambda *pair: done.append(pair))
    stats = machine.run()
    serial, expected = launch(DIVERGENT, 40, workers=1)
    serial_stats = serial.run()
    assert (out == expected).all()
    assert stats.ctas == 40 and stats.warp_instructions == serial_stats.warp_instructions
    assert done[-1] == (40, 40) and len(done) == 40
    assert not machine.step()  # it has finished


def test_a_fault_in_a_worker_is_the_callers(monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SECONDS", 0.0)
    machine, out = launch(DIVERGENT, 40, size=30 * 64, workers=2)
    with pytest.raises(MemoryFault, match="CTA \\(30, 0, 0\\)"):
        machine.run()
    assert out[64]  # what was written before the fault stays


def test_programs_whose_clusters_can_talk_run_one_after_the_other():
    machine, _ = launch(DIVERGENT, 1)
    assert parallel.may_run_apart(machine.entry.instructions)
    text = DIVERGENT.replace("st.global.u32 [%rd1], %r3;", "red.global.add.u32 [%rd1], %r3;")
    machine, _ = launch(text, 1)
    assert not parallel.may_run_apart(machine.entry.instructions)


def test_unknown_engines_are_refused():
    with pytest.raises(LaunchError, match="take 'auto', 'compiled' or 'interpreter'"):
        launch(DIVERGENT, 1, engine="fast")
