"""tcgen05.ld, .st, .cp, .shift and allocation, cell by cell."""

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.errors import ConfigError, Deadlock, Hazard, MemoryFault, UnknownInstructionError
from fa4_numba.layout import SmemDesc, Swizzle, cells

SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


def kernel(body, registers=160):
    return f"""{HEADER} .extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<{registers}>; .reg .b64 %rd<8>; .reg .pred %p<8>; .reg .b32 %v<260>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, smem; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5;
setp.ne.s32 %p1, %r3, 0; @%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;
READY: bar.sync 0; ld.shared.b32 %r4, [%r1]; shl.b32 %r5, %r3, 21; add.s32 %r5, %r4, %r5;
{body}
ret; }}"""


def brute_force_cell(shape, register, thread, split, packed):
    """Return (lane, column) as the ISA's figures say it: rows of eight threads' fragments, columns in order."""
    step = 2 if packed else 1
    if shape == "32x32b":
        return thread, register * step
    if shape == "16x32bx2":
        return thread % 16, register * step + (split if thread >= 16 else 0)
    group, member = divmod(thread, 4)
    if (
        shape == "16x64b"
    ):  # threads 4g, 4g+1 | 4g+2, 4g+3: columns 0 | 1; odd threads hold the lower eight rows
        return group + 8 * (member & 1), (2 * register + (member >> 1)) * step
    if shape == "16x128b":  # registers 2i, 2i+1: rows g, g+8 of four columns
        return group + 8 * (register & 1), (register // 2 * 4 + member) * step
    pair, half = divmod(register, 2)  # 16x256b: as the accumulators of mma.m16n8
    return group + 8 * (pair & 1), (pair // 2 * 8 + member * 2 + half) * step


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_register_has_its_cell(shape, packed):
    for count in (1, 2, 4, 8, 16, 32, 64, 128):
        registers = SHAPES[shape] * count
        if registers > 128:
            with pytest.raises(ConfigError, match="at most 128"):
                cells(shape, count)
            continue
        lane, column = cells(shape, count, 5, packed)
        assert lane.shape == column.shape == (registers, 32)
        for r in range(registers):
            for t in range(32):
                assert (lane[r, t], column[r, t]) == brute_force_cell(shape, r, t, 5, packed)
        if shape != "16x32bx2":  # every cell once: no value is lost, none is made up
            assert len({*zip(lane.ravel(), column.ravel())}) == registers * 32


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape, count", [(s, n) for s in SHAPES for n in (1, 8, 128 // SHAPES[s])])
def test_loads_and_stores_of_all_shapes(shape, count, packed, schedule):
    """Each of four warps loads from its lanes, and stores what it has loaded 256 columns on."""
    registers = SHAPES[shape] * count
    if packed and registers == 128:  # 512 columns: source and destination would not fit
        count, registers = count // 2, registers // 2
    rows, split = "{" + ", ".join(f"%v{i}" for i in range(registers)) + "}", 3
    offset = f", {split}" if shape == "16x32bx2" else ""
    pack, unpack = (".pack::16b", ".unpack::16b") if packed else ("", "")
    body = f"""tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 {rows}, [%r5+1]{offset}; tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1;
    {"".join(f"st.global.b32 [%rd2+{512 * i}], %v{i};" for i in range(registers))}
    tcgen05.st.sync.aligned.{shape}.x{count}{unpack}.b32 [%r5+256]{offset}, {rows}; tcgen05.wait::st.sync.aligned;"""
    memory, out = GlobalMemory(), np.zeros((registers, 128), np.uint32)
    args = (memory.bind(out, "out", writable=True),)
    machine = Machine(kernel(body), (1, 1, 1), (128, 1, 1), args, memory, 64, schedule=schedule)
    before = np.random.default_rng(0).integers(0, 1 << 32, (128, 512), np.uint32)
    machine.start()
    machine.write_tmem(0, before)
    machine.run()
    after, want = machine.read_tmem(), before.copy()
    for r in range(registers):
        for thread in range(128):
            lane, column = brute_force_cell(shape, r, thread % 32, split, packed)
            lane += thread // 32 * 32
            value = before[lane, column + 1]
            if packed:
                high = before[lane, column + 2]
                value = value & 0xFFFF | high << np.uint32(16)
                want[lane, column + 257] = high & 0xFFFF
                want[lane, column + 256] = value & 0xFFFF
            else:
                want[lane, column + 256] = value
            assert out[r, thread] == value
    assert (after == want).all()


def run(body, threads=32):
    memory, out = GlobalMemory(), np.zeros(64, np.uint32)
    args = (memory.bind(out, "out", writable=True),)
    machine = Machine(kernel(body), (1, 1, 1), (threads, 1, 1), args, memory, 4096)
    machine.run()
    return machine


@pytest.mark.parametrize(
    "body, error, message",
    [
        ("add.s32 %r5, %r5, 1048576; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r5];", MemoryFault, "not from 16"),
        ("add.s32 %r5, %r5, 2097152; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r9}, [%r5];", MemoryFault, "not from 32"),
        ("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r9, %r10}, [%r5+509];", MemoryFault, "509-512 are not"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r9}, [%r5];", UnknownInstructionError, "takes 2 registers"),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r9}, [%r5];", UnknownInstructionError, "column offset"),
        ("tcgen05.ld.sync.aligned.16x65b.x1.b32 {%r9}, [%r5];", ConfigError, "16x65b"),
        ("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
         "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", Hazard, "relinquished"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", Deadlock, "32 free columns"),
    ],
)  # fmt: skip
def test_misuse(body, error, message):
    with pytest.raises(error, match=message):
        run(body)


def test_an_allocation_waits_until_another_warp_frees():
    body = """setp.eq.s32 %p2, %r3, 0; @%p2 bra FREE;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+8], 256; bra END;
    FREE: bar.sync 1, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 512;
    END:"""
    machine = run(body, 64)
    assert machine.cta.allocated == {0: 256}


def unpacked(piece, width):
    """Return 16 elements of ``width`` bits, packed from bit 0 on, each in its 8-bit container."""
    bits = int.from_bytes(piece.tobytes(), "little")
    return [(bits >> width * i & (1 << width) - 1) << (2 if width == 4 else 0) for i in range(16)]


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("form", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
@pytest.mark.parametrize(
    "shape, lanes_of_row",
    [
        ("128x256b", lambda r: [r]),
        ("128x128b", lambda r: [r]),
        ("64x128b.warpx2::02_13", lambda r: [r, r + 64]),
        ("64x128b.warpx2::01_23", lambda r: [r // 32 * 64 + r % 32, r // 32 * 64 + r % 32 + 32]),
        ("32x128b.warpx4", lambda r: [r, r + 32, r + 64, r + 96]),
        ("4x256b", lambda r: [32 * r]),
    ],
)
def test_copies_to_tensor_memory(shape, lanes_of_row, form, schedule):
    """Rows of shared memory without swizzle: eight rows of 16 bytes to a block, blocks SBO apart, halves LBO apart."""
    rows, row_bytes = int(shape.split("x")[0]), int(shape.split("x")[1].split("b")[0]) // 8
    start, lbo, sbo = 2048, 2048, 128
    desc = SmemDesc(start, lbo, sbo, Swizzle.NONE).pack()
    body = f"""setp.ne.s32 %p2, %r2, 0; @%p2 bra END; add.s32 %r9, %r1, 16; mbarrier.init.shared::cta.b64 [%r9], 1;
    add.s32 %r10, %r4, 40; mov.b64 %rd2, {desc}; tcgen05.cp.cta_group::1.{shape}{form} [%r10], %rd2;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0; @!%p3 bra W; END:"""
    memory = GlobalMemory()
    machine = Machine(kernel(body), (1, 1, 1), (32, 1, 1), (0,), memory, 8192, schedule=schedule)
    machine.start()
    data = np.random.default_rng(1).integers(0, 256, 8192, np.uint8)
    machine.write_shared(0, data.tobytes())
    before = machine.read_tmem()
    machine.run()
    want = before.view(np.uint8).reshape(128, 2048)
    for row in range(rows):
        line = []
        for half in range(row_bytes // 16):
            at = start - 1024 + row // 8 * sbo + row % 8 * 16 + half * lbo
            piece = data[at : at + 16]
            line += unpacked(piece, 6 if "b6" in form else 4) if form else piece.tolist()
        for lane in lanes_of_row(row):
            want[lane, 160 : 160 + row_bytes] = line
    assert (machine.read_tmem().view(np.uint8) == want).all()


def test_shift_moves_rows_of_one_quarter():
    body = """setp.ne.s32 %p2, %r2, 0; @%p2 bra END; add.s32 %r9, %r1, 16; mbarrier.init.shared::cta.b64 [%r9], 1;
    add.s32 %r10, %r4, 4194312; tcgen05.shift.cta_group::1.down [%r10];
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r9];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0; @!%p3 bra W; END:"""
    machine = Machine(kernel(body), (1, 1, 1), (32, 1, 1), (0,), GlobalMemory(), 64)
    machine.start()
    before = np.arange(128 * 512, dtype=np.uint32).reshape(128, 512)
    machine.write_tmem(0, before)
    machine.run()
    want = before.copy()
    want[64:95, 8:16] = before[65:96, 8:16]
    assert (machine.read_tmem() == want).all()
