"""tcgen05.mma against brute force: every kind, type, data path and modifier, element by element."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.errors import Hazard, MemoryFault, UnknownInstructionError
from fa4_numba.layout import BlockScaledDesc, InstrDesc, Major, SmemDesc, Swizzle, operand_byte_address

A_AT, B_AT, SIZE = 1024, 1024 + 65536, 131072  # in shared memory; dynamic memory starts at 1024
D_COL, A_COL, SCALE_A, SCALE_B = 32, 320, 400, 416
DTYPE = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "u8": np.uint8, "s8": np.int8,
}  # fmt: skip
WIDTH = {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def kernel(instructions, group, registers=""):
    """One thread of the pair's (or only) first CTA issues; all CTAs allocate, and wait for the commit."""
    mask = ".multicast::cluster" if group == 2 else ""
    operand = ", %h1" if group == 2 else ""
    return f"""{HEADER} .extern .shared .align 1024 .b8 smem[];
.visible .entry k() {{
.reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<8>; .reg .b16 %h<4>; {registers}
mov.u32 %r1, smem; add.s32 %r2, %r1, {SIZE}; add.s32 %r3, %r2, 8; mov.u32 %r4, %tid.x; mov.u32 %r5, %cluster_ctarank;
setp.ne.s32 %p1, %r4, 0; mov.u16 %h1, 3;
@!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r3], 512;
barrier.cluster.arrive; barrier.cluster.wait;
ld.shared.b32 %r6, [%r3]; setp.ne.s32 %p2, %r5, 0; or.pred %p3, %p1, %p2; @%p3 bra WAIT;
{instructions}
tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{mask}.b64 [%r2]{operand};
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r2], 0; @!%p4 bra WAIT;
ret; }}"""


def small_values(rng, kind, shape):
    """Values that sums of products keep exact in f32, and every type can hold."""
    choices = {"u8": [0, 1, 2, 255], "s8": [-128, -1, 0, 3, 127]}.get(
        kind, [-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3]
    )
    return rng.choice(np.array(choices, np.float64), shape)


def container_bits(values, kind):
    """Return the elements' bits, in the low bits of an unsigned integer."""
    data = np.ascontiguousarray(values.astype(DTYPE[kind]))
    return data.view(f"u{data.dtype.itemsize}")


def put_shared(memory, values, kind, major, desc, packed):
    """Write a matrix (rows, K) where the descriptor says, element by element."""
    bits = container_bits(values, kind)
    rows, depth = values.shape
    for row, k in itertools.product(range(rows), range(depth)):
        if packed or kind in WIDTH:  # 16 elements to 16 bytes, or (packed) 32
            width = WIDTH[kind]
            bit = k * 4 if packed else k // 16 * 128 + k % 16 * width
            base, shift = bit // 8, bit % 8
            wide = int(bits[row, k]) << shift
            for i in range(2):
                if wide >> 8 * i & 255:
                    at = operand_byte_address(desc, Major.K, row, base + i) - 1024
                    memory[at] |= wide >> 8 * i & 255
            continue
        size = bits.itemsize
        at = (
            operand_byte_address(desc, Major.K, row, k * size)
            if major is Major.K
            else operand_byte_address(desc, Major.MN, row * size, k)
        ) - 1024
        memory[at : at + size] = bits[row, k : k + 1].view(np.uint8)


def tmem_rows(values, kind, packed):
    """Return the 32-bit cells of A's rows in tensor memory."""
    bits = container_bits(values, kind)
    if packed:
        data = bits[:, 0::2] | bits[:, 1::2] << 4
    elif kind == "e2m1":
        data = bits << 2
    else:
        data = bits
    return np.ascontiguousarray(data).view(np.uint32)


def lane_and_column(m, group, stationary, row, column, n):
    """Where D's element lies: (CTA, lane, column)."""
    if m == 256:
        return row // 128, row % 128, column
    if m == 128 and group == 2:
        return row // 64, row % 64 + 64 * (column >= n // 2), column % (n // 2)
    if m == 128:
        return 0, row, column
    if m == 64 and stationary:
        return 0, row + 64 * (column >= n // 2), column % (n // 2)
    if m == 64:
        return 0, row // 16 * 32 + row % 16, column
    return 0, row + 32 * (column // (n // 4)), column % (n // 4)


def smem_layout(start, major, rows, size, swizzle):
    """Return a descriptor for a matrix of ``rows`` at ``start``; pitches are chosen so that nothing overlaps."""
    if major is Major.K:
        lbo = 16384 if swizzle is Swizzle.NONE else 0
        return SmemDesc(start, lbo, 8 * max(swizzle.span_bytes, 16), swizzle)
    span = swizzle.span_bytes
    chunk, group = 2048, 2048 * (rows * size // span)  # chunks along MN; groups of eight depths
    if swizzle is Swizzle.NONE:
        chunk, group = 16 * 8 * (rows * size // 16), 128
        return SmemDesc(start, chunk, group, swizzle)
    return SmemDesc(start, chunk, group, swizzle)


class Case:
    """A multiply: operands, how they lie, and what D must be."""

    def __init__(self, kind, m, n, a_type, b_type, *, d_type="f32", group=1, stationary=False, from_tmem=False,
                 a_major=Major.K, b_major=Major.K, swizzle=Swizzle.B128, add=True, scale_d=0, negate=(False, False),
                 lane_mask=None, saturate=False, factors=0, scale_type="ue8m0", ids=(0, 0)):  # fmt: skip
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        self.packed = kind in ("mxf4", "mxf4nvf4")
        width = 4 if self.packed else 32 if a_type == "tf32" else 16 if a_type in ("f16", "bf16") else 8
        self.depth = 256 // width
        rng = np.random.default_rng(3)
        self.a = small_values(rng, a_type, (m, self.depth))
        self.b = small_values(rng, b_type, (n, self.depth))
        self.d0 = rng.integers(-50, 50, (m, n)).astype(np.float64)
        if factors:
            powers = [0.25, 0.5, 1, 2, 4]
            self.scale_a, self.scale_b = rng.choice(powers, (m, factors)), rng.choice(powers, (n, factors))
            self.desc = BlockScaledDesc(
                kind, m, n, a_type, b_type, scale_type, *ids, a_major, b_major, *negate
            )
        else:
            self.desc = InstrDesc(kind, m, n, a_type, b_type, d_type, a_major, b_major, *negate, saturate)

    def expected(self):
        a, b = self.a, self.b
        if self.factors:
            a = a * np.repeat(self.scale_a, self.depth // self.factors, 1)
            b = b * np.repeat(self.scale_b, self.depth // self.factors, 1)
        product = a @ b.T * (-1 if self.negate[0] != self.negate[1] else 1)
        return product + (self.d0 * 2.0**-self.scale_d if self.add else 0)

    def d_bits(self, value):
        if self.d_type == "f32":
            return int(np.float32(value).view(np.uint32))
        if self.d_type == "f16":
            return int(np.float16(value).view(np.uint16))
        return int(value) & 0xFFFFFFFF

    def ptx(self, a_desc, b_desc):
        form = f".cta_group::{self.group}.kind::{self.kind}"
        vector = f".block_scale.scale_vec::{self.factors}X" if self.factors else ""
        a = f"[%r6+{A_COL}]" if self.from_tmem else "%rd1"
        scales = f" [%r6+{SCALE_A}], [%r6+{SCALE_B}]," if self.factors else ""
        mask = "{" + ", ".join(map(str, self.lane_mask)) + "}, " if self.lane_mask else ""
        tail = f", {self.scale_d}" if self.scale_d else ""
        return f"""mov.b64 %rd1, {a_desc.pack()}; mov.b64 %rd2, {b_desc.pack()}; setp.ne.b32 %p5, {int(self.add)}, 0;
        tcgen05.mma{".ws" if self.stationary else ""}{form}{vector} [%r6+{D_COL}], {a}, %rd2,
        {self.desc.pack()},{scales} {mask}%p5{tail};"""

    def check(self, schedule="eager"):
        group, m, n = self.group, self.m, self.n
        size = {"tf32": 4, "f16": 2, "bf16": 2}.get(self.a_type, 1)
        a_desc = smem_layout(A_AT, self.a_major, m // group, size, self.swizzle)
        b_desc = smem_layout(B_AT, self.b_major, n // group, size, self.swizzle)
        machine = Machine(kernel(self.ptx(a_desc, b_desc), group), (group, 1, 1), (32, 1, 1), (), GlobalMemory(),
                          SIZE + 64, (group, 1, 1), schedule=schedule)  # fmt: skip
        machine.start()
        tmem = np.full((group, 128, 512), 0xFFFFFFFF, np.uint32)
        for rank in range(group):
            self.fill(machine, tmem[rank], rank, a_desc, b_desc)
        for row, column in itertools.product(range(m), range(n)):
            cta, lane, col = lane_and_column(m, group, self.stationary, row, column, n)
            tmem[cta, lane, D_COL + col] = self.d_bits(self.d0[row, column])
        for rank in range(group):
            machine.write_tmem(0, tmem[rank], cta=rank)
        machine.run()
        want, value = tmem.copy(), self.expected()
        for row, column in itertools.product(range(m), range(n)):
            cta, lane, col = lane_and_column(m, group, self.stationary, row, column, n)
            if self.lane_mask and self.lane_mask[4 * cta + lane // 32] >> lane % 32 & 1:
                continue
            want[cta, lane, D_COL + col] = self.d_bits(value[row, column])
        for rank in range(group):
            assert (machine.read_tmem(cta=rank) == want[rank]).all()

    def fill(self, machine, tmem, rank, a_desc, b_desc):
        """Write one CTA's operands and scale factors."""
        rows, columns = self.m // self.group, self.n // self.group
        a, b = self.a[rank * rows : (rank + 1) * rows], self.b[rank * columns : (rank + 1) * columns]
        data = np.zeros(SIZE, np.uint8)
        if self.from_tmem:
            cells = tmem_rows(a, self.a_type, self.packed)
            for row in range(rows):
                lanes = {lane_and_column(self.m, self.group, self.stationary, rank * rows + row, c, self.n)[1]
                         for c in range(self.n)}  # fmt: skip
                for lane in lanes:
                    tmem[lane, A_COL : A_COL + cells.shape[1]] = cells[row]
        else:
            put_shared(data, a, self.a_type, self.a_major, a_desc, self.packed)
        put_shared(data, b, self.b_type, self.b_major, b_desc, self.packed)
        machine.write_shared(0, data.tobytes(), cta=rank)
        if self.factors:
            dtype = ml_dtypes.float8_e8m0fnu if self.scale_type == "ue8m0" else ml_dtypes.float8_e4m3fn
            mine = self.scale_a[rank * rows : (rank + 1) * rows]
            for col, scales, byte in ((SCALE_A, mine, self.ids[0]), (SCALE_B, self.scale_b, self.ids[1])):
                bits = scales.astype(dtype).view(np.uint8)
                for r, f in itertools.product(*map(range, bits.shape)):
                    for copy in range(4):
                        lane = r % 32 + 32 * copy
                        word = int(tmem[lane, col + r // 32])
                        shift = 8 * (byte + f)
                        tmem[lane, col + r // 32] = (
                            word & ~(255 << shift) & 0xFFFFFFFF | int(bits[r, f]) << shift
                        )


FLOATS = [("f16", "f16", "f16"), ("f16", "bf16", "bf16"), ("tf32", "tf32", "tf32")]
FLOATS += [("f8f6f4", a, b) for a, b in zip(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"),
                                             ("e2m1", "e4m3", "e3m2", "e2m3", "e5m2"))]  # fmt: skip


@pytest.mark.parametrize("from_tmem", [False, True])
@pytest.mark.parametrize("kind, a_type, b_type", [*FLOATS, ("i8", "u8", "s8"), ("i8", "s8", "u8")])
def test_types(kind, a_type, b_type, from_tmem):
    d_type = "s32" if kind == "i8" else "f32"
    Case(kind, 128, 32, a_type, b_type, d_type=d_type, from_tmem=from_tmem).check()


PATHS = [
    (64, 1, False),
    (128, 1, False),
    (128, 2, False),
    (256, 2, False),
    (32, 1, True),
    (64, 1, True),
    (128, 1, True),
]


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("from_tmem", [False, True])
@pytest.mark.parametrize("m, group, stationary", PATHS)
def test_data_paths(m, group, stationary, from_tmem, schedule):
    Case("f16", m, 64, "bf16", "bf16", group=group, stationary=stationary, from_tmem=from_tmem).check(
        schedule
    )


@pytest.mark.parametrize("group, m", [(1, 128), (1, 64), (2, 256), (2, 128)])
@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("a_major, b_major", list(itertools.product(Major, Major)))
def test_layouts_in_shared_memory(a_major, b_major, swizzle, group, m):
    Case("f16", m, 128, "f16", "f16", a_major=a_major, b_major=b_major, swizzle=swizzle, group=group).check()


@pytest.mark.parametrize("a_major, b_major", [(Major.MN, Major.K), (Major.K, Major.MN)])
def test_transposed_bytes(a_major, b_major):
    Case("f8f6f4", 128, 128, "e4m3", "e5m2", a_major=a_major, b_major=b_major).check()
    Case("i8", 128, 128, "s8", "s8", d_type="s32", a_major=a_major, b_major=b_major).check()


@pytest.mark.parametrize("d_type", ["f32", "f16"])
@pytest.mark.parametrize("add, scale_d", [(False, 0), (True, 0), (True, 3), (True, 15)])
def test_accumulators(d_type, add, scale_d):
    case = Case("f16", 64, 16, "f16", "f16", d_type=d_type, add=add, scale_d=scale_d)
    case.check()


@pytest.mark.parametrize("negate", [(True, False), (False, True), (True, True)])
def test_negation(negate):
    Case("f16", 128, 16, "f16", "f16", negate=negate).check()


@pytest.mark.parametrize("m, group", [(64, 1), (128, 1), (128, 2), (256, 2)])
def test_lane_masks(m, group):
    mask = [0x80000001, 0, 0xFFFF0000, 0x0F0F0F0F, 1, 0xFFFFFFFF, 0, 0x12345678][: 4 * group]
    Case("f16", m, 32, "f16", "f16", group=group, lane_mask=mask).check()


def test_integers_saturate():
    case = Case("i8", 128, 16, "u8", "u8", d_type="s32", saturate=True)
    case.a[:], case.b[:] = 255, 255
    case.d0[:] = 2**31 - 1000
    case.expected = lambda: np.full((128, 16), 2**31 - 1)
    case.check()
    wrapping = Case("i8", 128, 16, "u8", "u8", d_type="s32")
    wrapping.a[:], wrapping.b[:], wrapping.d0[:] = 255, 255, 2**31 - 1000
    wrapping.check()


SCALED = [("mxf8f6f4", "e4m3", "e5m2", 1, "ue8m0", (0, 0)), ("mxf8f6f4", "e2m1", "e3m2", 1, "ue8m0", (3, 1))]
SCALED += [("mxf4", "e2m1", "e2m1", 2, "ue8m0", (0, 2)), ("mxf4nvf4", "e2m1", "e2m1", 2, "ue8m0", (2, 0))]
SCALED += [("mxf4nvf4", "e2m1", "e2m1", 4, "ue4m3", (0, 0)), ("mxf4nvf4", "e2m1", "e2m1", 4, "ue8m0", (0, 0))]


@pytest.mark.parametrize("from_tmem", [False, True])
@pytest.mark.parametrize("m, group", [(128, 1), (256, 2)])
@pytest.mark.parametrize("kind, a_type, b_type, factors, scale_type, ids", SCALED)
def test_block_scaling(kind, a_type, b_type, factors, scale_type, ids, m, group, from_tmem):
    Case(kind, m, 96, a_type, b_type, factors=factors, scale_type=scale_type, ids=ids, group=group,
         from_tmem=from_tmem).check()  # fmt: skip


@pytest.mark.parametrize(
    "change, error, message",
    [
        ((".cta_group::1.kind", ".cta_group::2.kind"), Hazard, "needs a pair"),
        ((".kind::f16", ".sp.kind::f16"), UnknownInstructionError, "sp is not implemented"),
        ((", %p5;", ", %p5, 16;"), UnknownInstructionError, "0 to 15"),
        ((".kind::f16", ".kind::f32"), UnknownInstructionError, "kind f32"),
        (("[%r6+32]", "[%r6+500]"), MemoryFault, "500-515 are not allocated"),
    ],
)
def test_misuse(change, error, message):
    case = Case("f16", 128, 16, "f16", "f16")
    original = case.ptx
    case.ptx = lambda a, b: original(a, b).replace(*change)
    with pytest.raises(error, match=message):
        case.check()


def test_tf32_ignores_the_lowest_bits():
    case = Case("tf32", 64, 8, "tf32", "tf32")
    exact = case.a.copy()
    case.a = case.a * (1 + 2.0**-12)  # below tf32's 10 bits of mantissa
    want = exact @ case.b.T + case.d0
    case.expected = lambda: want
    case.check()


FREE = """tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;"""


@pytest.mark.parametrize("schedule", ["late", "random:1"])
def test_a_commit_that_nobody_waits_for_does_not_hold_tensor_memory(schedule):
    """A second commit is still in flight when its warp frees the memory; a multiply in flight is a hazard."""
    second = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3+8];"
    case = Case("f16", 128, 16, "f16", "f16")
    a, b = smem_layout(A_AT, Major.K, 128, 2, Swizzle.B128), smem_layout(B_AT, Major.K, 16, 2, Swizzle.B128)
    text = kernel(case.ptx(a, b), 1).replace("barrier.cluster.arrive;", "@!%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;"
                                             "barrier.cluster.arrive;", 1)  # fmt: skip
    waits = text.replace("WAIT:", second + "WAIT:").replace("ret;", FREE + "ret;")
    run = lambda t: Machine(t, (1, 1, 1), (32, 1, 1), (), GlobalMemory(), SIZE + 64, schedule=schedule).run()
    run(waits)
    at = waits.index("WAIT:")
    careless = waits[:at] + "WAIT:" + waits[waits.index(FREE) :]
    with pytest.raises(Hazard, match="while matrix multiplies are in flight"):
        run(careless)
