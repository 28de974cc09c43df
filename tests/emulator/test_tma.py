"""TMA between CTAs, by rows, with strides; tensor maps made by the kernel; cluster launch control."""

import itertools

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.errors import Hazard, MemoryFault, UnknownInstructionError
from fa4_numba.layout import Swizzle, TensorMapSpec

SCHEDULES = ["eager", "late", "random:5"]


def kernel(body, params):
    return f"""{HEADER} .extern .shared .align 1024 .b8 smem[];
.visible .entry k({params}) {{
.reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b128 %q1;
mov.u32 %r1, smem; mov.u32 %r2, %tid.x; mov.u32 %r3, %cluster_ctarank; setp.ne.s32 %p1, %r2, 0;
{body}
ret; }}"""


def run(body, specs, memory, cluster=1, schedule="eager", grid=None, smem=16384, extra=()):
    """Run with tensor maps as parameters m0, m1 … and addresses as a0, a1 …; return the machine."""
    params = [f".param .align 64 .b8 m{i}[128]" for i in range(len(specs))]
    params += [f".param .u64 a{i}" for i in range(len(extra))]
    maps = "".join(
        f"mov.b64 %rd{i + 1}, m{i}; cvta.param.u64 %rd{i + 1}, %rd{i + 1};" for i in range(len(specs))
    )
    text = kernel(maps + body, ", ".join(params))
    machine = Machine(
        text,
        grid or (cluster, 1, 1),
        (32, 1, 1),
        (*specs, *extra),
        memory,
        smem,
        (cluster, 1, 1),
        schedule=schedule,
    )
    machine.run()
    return machine


WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0; @!%p2 bra W;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pairs", [False, True])
def test_multicast(pairs, schedule):
    """Rank 2 of four CTAs loads a box for ranks 0, 1 and 3. In pairs, the barrier of rank 2's parity is signalled."""
    source = np.arange(8 * 64, dtype=np.uint16).reshape(8, 64)
    memory = GlobalMemory()
    spec = TensorMapSpec("uint16", memory.bind(source, "s"), (64, 8), (128,), (64, 8), Swizzle.B128)
    group, size = (".cta_group::2" if pairs else ""), spec.box_bytes
    expect = {0: 2 * size, 2: size} if pairs else {0: size, 1: size, 3: size}
    counts = "".join(f"setp.eq.s32 %p3, %r3, {rank}; @%p3 mov.u32 %r5, {n};" for rank, n in expect.items())
    body = f"""add.s32 %r4, %r1, 8192; mov.u32 %r5, 0; {counts}
    @!%p1 mbarrier.init.shared::cta.b64 [%r4], 1; @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r5;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.s32 %p3, %r3, 2; or.pred %p3, %p1, %p3; mov.u16 %h1, 11; @%p3 bra W;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster{group}
      [%r1], [%rd1, {{0, 0}}], [%r4], %h1;
    {WAIT} barrier.cluster.arrive; barrier.cluster.wait;"""
    machine = run(body, (spec,), memory, 4, schedule)
    rows = np.arange(8)
    for rank in (0, 1, 3):
        got = machine.read_shared(0, size, cta=rank).view(np.uint16).reshape(8, 8, 8)
        for row, piece in itertools.product(rows, range(8)):
            assert (got[row, piece ^ row] == source[row, piece * 8 : piece * 8 + 8]).all()
    assert (machine.read_shared(0, size, cta=2) == 0xFF).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_pairs_load_signals_the_leader(schedule):
    """Both CTAs load a box to their own memory; both complete on the barrier of rank 0 (bit 24 cleared)."""
    source = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
    memory = GlobalMemory()
    spec = TensorMapSpec("float32", memory.bind(source, "s"), (8, 4), (32,), (8, 2))
    body = f"""add.s32 %r4, %r1, 8192; and.b32 %r6, %r4, 4278190079; shl.b32 %r7, %r3, 1;
    @!%p1 mbarrier.init.shared::cta.b64 [%r4], 1; barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.s32 %p3, %r3, 0; not.pred %p4, %p1; and.pred %p3, %p3, %p4;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {2 * spec.box_bytes};
    @!%p1 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r1], [%rd1, {{0, %r7}}], [%r6];
    setp.ne.s32 %p5, %r3, 0; @%p5 bra END; {WAIT} END: barrier.cluster.arrive; barrier.cluster.wait;"""
    machine = run(body, (spec,), memory, 2, schedule)
    for rank in range(2):
        got = machine.read_shared(0, spec.box_bytes, cta=rank).view(np.float32).reshape(2, 8)
        assert (got == source[2 * rank : 2 * rank + 2]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_gather_and_scatter_four_rows(swizzle, schedule):
    """Rows outside of the matrix read as zeros and are not written."""
    width = swizzle.span_bytes // 2
    source = np.arange(10 * 64, dtype=np.uint16).reshape(10, 64)
    target = np.zeros((10, 64), np.uint16)
    memory = GlobalMemory()
    maps = [
        TensorMapSpec("uint16", memory.bind(a, "x", writable=True), (64, 10), (128,), (width, 1), swizzle)
        for a in (source, target)
    ]
    body = f"""add.s32 %r4, %r1, 8192; @%p1 bra END; mbarrier.init.shared::cta.b64 [%r4], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {8 * width}; mov.u32 %r5, -1;
    cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes
      [%r1], [%rd1, {{8, 7, 2, %r5, 2}}], [%r4];
    {WAIT}
    cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group [%rd2, {{16, 3, 9, 0, 99}}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
    run(body, maps, memory, schedule=schedule)
    want = np.zeros_like(target)
    columns = min(width, 64 - 16)
    rows = [source[7, 8 : 8 + width], source[2, 8 : 8 + width], np.zeros(width)]
    for row, values in zip((3, 9, 0), rows):
        padded = np.zeros(64)
        padded[: len(values)] = values
        want[row, 16 : 16 + columns] = padded[:columns]
    assert (target == want).all()


def test_element_strides_and_nan_fill():
    """Every second row of a box; what sticks out of the tensor is NaN."""
    source = np.arange(6 * 8, dtype=np.float32).reshape(6, 8)
    memory = GlobalMemory()
    spec = TensorMapSpec("float32", memory.bind(source, "s"), (8, 6), (32,), (8, 8), oob_fill="nan",
                         element_strides=(1, 2))  # fmt: skip
    assert spec.box_bytes == 4 * 32
    body = f"""add.s32 %r4, %r1, 8192; @%p1 bra END; mbarrier.init.shared::cta.b64 [%r4], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {spec.box_bytes};
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {{0, 1}}]; prefetch.tensormap [%rd1];
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{4, 1}}], [%r4]; {WAIT} END:"""
    got = run(body, (spec,), memory).read_shared(0, 128).view(np.float32).reshape(4, 8)
    assert (got[:3, :4] == source[1::2, 4:]).all()
    assert np.isnan(got[:3, 4:]).all() and np.isnan(got[3]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_map_made_by_the_kernel(schedule):
    """All fields replaced in shared memory, the map copied to global memory, and used."""
    source, place = np.arange(5 * 64, dtype=np.uint16).reshape(5, 64), np.zeros(128, np.uint8)
    memory = GlobalMemory()
    address = memory.bind(source, "s")
    fields = [
        ("global_address", None, address, 64),
        ("rank", None, 1, 32),
        ("box_dim", 0, 64, 32),
        ("box_dim", 1, 4, 32),
    ]
    fields += [("global_dim", 0, 64, 32), ("global_dim", 1, 5, 32), ("global_stride", 0, 128, 64)]
    fields += [("element_stride", 0, 1, 32), ("element_stride", 1, 1, 32), ("elemtype", None, 1, 32)]
    fields += [("interleave_layout", None, 0, 32), ("swizzle_mode", None, 3, 32), ("fill_mode", None, 0, 32)]
    replace = "".join(
        f"mov.b64 %rd9, {value}; cvt.u32.u64 %r9, %rd9; tensormap.replace.tile.{name}.shared::cta.b1024.b{bits} [%r6], "
        f"{'' if order is None else f'{order}, '}{'%rd9' if bits == 64 else '%r9'};"
        for name, order, value, bits in fields
    )
    zero = "".join(f"st.shared.b32 [%r6+{i}], 0;" for i in range(0, 128, 4))
    body = f"""add.s32 %r4, %r1, 8192; add.s32 %r6, %r1, 4096; ld.param.u64 %rd8, [a0];
    @%p1 bra COPY; {zero} {replace} COPY:
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd8], [%r6], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd8], 128;
    @%p1 bra END; mbarrier.init.shared::cta.b64 [%r4], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd8, {{0, 2}}], [%r4]; {WAIT} END:"""
    machine = run(body, (), memory, schedule=schedule, extra=(memory.bind(place, "map", writable=True),))
    got = machine.read_shared(0, 512).view(np.uint16).reshape(4, 8, 8)
    for row, piece in itertools.product(range(4), range(8)):
        want = source[row + 2, piece * 8 : piece * 8 + 8] if row < 3 else np.zeros(8)
        assert (got[row, piece ^ row] == want).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("cluster", [1, 2])
def test_running_clusters_take_over_the_rest(cluster, schedule):
    """Each cluster of a (6, 2) grid marks its CTA, then takes others until none is left: all are marked once."""
    out = np.zeros((2, 6), np.int32)
    memory = GlobalMemory()
    multicast = ".multicast::cluster::all" if cluster > 1 else ""
    body = f"""add.s32 %r4, %r1, 1024; ld.param.u64 %rd8, [a0]; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ctaid.y; mov.u32 %r12, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [%r4], 1; barrier.cluster.arrive; barrier.cluster.wait;
    MORE: mad.lo.s32 %r13, %r11, 6, %r10; mul.wide.u32 %rd9, %r13, 4; add.s64 %rd9, %rd9, %rd8;
    @%p1 bra ASK; ld.global.b32 %r14, [%rd9]; add.s32 %r14, %r14, 1; st.global.b32 [%rd9], %r14;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    ASK: barrier.cluster.arrive; barrier.cluster.wait; setp.ne.s32 %p3, %r3, 0; or.pred %p3, %p1, %p3;
    @!%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128 [%r1], [%r4];
    L: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r12; @!%p2 bra L; xor.b32 %r12, %r12, 1;
    ld.shared.b128 %q1, [%r1]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q1; @!%p4 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r10, %r11, %r15, _}}, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r11, %q1;
    mov.b128 {{%rd5, %rd6}}, %q1; mov.b128 %q1, {{%rd5, %rd6}};
    add.s32 %r10, %r10, %r3; bra MORE; END: barrier.cluster.arrive; barrier.cluster.wait;"""
    machine = run(
        body, (), memory, cluster, schedule, (6, 2, 1), extra=(memory.bind(out, "o", writable=True),)
    )
    assert (out == 1).all() and machine.ctas_done == 12


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bulk_copies_of_bytes(schedule):
    """Global → shared of both CTAs, shared → the other CTA's, shared → global."""
    source, target = np.arange(256, dtype=np.uint8), np.zeros((2, 256), np.uint8)
    memory = GlobalMemory()
    extra = (memory.bind(source, "s"), memory.bind(target, "t", writable=True))
    body = f"""add.s32 %r4, %r1, 8192; ld.param.u64 %rd8, [a0]; ld.param.u64 %rd9, [a1]; mov.u16 %h1, 3;
    @!%p1 mbarrier.init.shared::cta.b64 [%r4], 1; @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;
    barrier.cluster.arrive; barrier.cluster.wait; setp.ne.s32 %p3, %r3, 0; or.pred %p3, %p3, %p1;
    @!%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd8], 256, [%r4], %h1;
    xor.b32 %r5, %r3, 1; add.s32 %r6, %r1, 1024; mapa.shared::cluster.u32 %r7, %r6, %r5; mapa.shared::cluster.u32 %r8, %r4, %r5;
    add.s32 %r9, %r1, 512; shl.b32 %r10, %r2, 3; add.s32 %r10, %r10, %r9; st.shared.v2.b32 [%r10], {{%r3, %r2}};
    fence.proxy.async.shared::cta; bar.sync 0;
    @!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r9], 256, [%r8];
    {WAIT} mul.wide.u32 %rd10, %r3, 256; add.s64 %rd9, %rd9, %rd10; @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r1], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
    END: barrier.cluster.arrive; barrier.cluster.wait;"""
    machine = run(body, (), memory, 2, schedule, extra=extra)
    assert (target == source).all()
    for rank in range(2):
        got = machine.read_shared(1024, 256, cta=rank).view(np.uint32).reshape(32, 2)
        assert (got[:, 0] == 1 - rank).all() and (got[:, 1] == np.arange(32)).all()


@pytest.mark.parametrize(
    "instruction, error, message",
    [
        ("cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {0, 0}], [%r4];",
         UnknownInstructionError, "im2col"),
        ("cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {0, 0}], [%r4];",
         UnknownInstructionError, "2 coordinates"),
        ("cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {0, 0, 0}], [%r4];",
         MemoryFault, "rank 2, the copy 3"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
         " [%r1], [%rd1, {0, 0}], [%r4], %h1;", Hazard, "mask 0x6"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 24, [%r4];",
         MemoryFault, "multiples? of 16"),
        ("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 7, 1;", MemoryFault, "1 items"),
    ],
)  # fmt: skip
def test_misuse(instruction, error, message):
    memory = GlobalMemory()
    spec = TensorMapSpec("uint16", memory.bind(np.zeros((8, 64), np.uint16), "s"), (64, 8), (128,), (64, 8))
    body = f"""add.s32 %r4, %r1, 8192; mov.u16 %h1, 6; @%p1 bra END; mbarrier.init.shared::cta.b64 [%r4], 1;
    {instruction} END:"""
    with pytest.raises(error, match=message):
        run(body, (spec,), memory)
