"""Kernels in Gluon, Triton's language with explicit layouts, written for these tests: one Blackwell feature each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    allocate_tensor_memory,
    clc,
    cluster,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tma,
)


@gluon.jit
def _places(M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    """Offsets of a row-major M × N array."""
    m, n = gl.arange(0, M, gl.SliceLayout(1, layout)), gl.arange(0, N, gl.SliceLayout(0, layout))
    return m[:, None] * N + n[None, :]


@gluon.jit
def tmem_round_trip(
    x_ptr,
    out_ptr,
    M: gl.constexpr,
    N: gl.constexpr,
    layout: gl.constexpr,
    tmem: gl.constexpr,
    VARIANT: gl.constexpr,
):
    """Registers to tensor memory and back, in one instruction shape."""
    where = _places(M, N, layout)
    cells = allocate_tensor_memory(x_ptr.dtype.element_ty, [M, N], tmem)
    registers: gl.constexpr = cells.get_reg_layout(instr_variant=VARIANT)
    cells.store(gl.convert_layout(gl.load(x_ptr + where), registers))
    gl.store(out_ptr + where, gl.convert_layout(cells.load(registers), layout))


@gluon.jit
def tmem_transpose_shapes(
    x_ptr, out_ptr, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr, tmem: gl.constexpr,
    STORE: gl.constexpr, LOAD: gl.constexpr,
):  # fmt: skip
    """Stored in one instruction shape, loaded in another: the cells must be the same."""
    where = _places(M, N, layout)
    cells = allocate_tensor_memory(x_ptr.dtype.element_ty, [M, N], tmem)
    store: gl.constexpr = cells.get_reg_layout(instr_variant=STORE)
    load: gl.constexpr = cells.get_reg_layout(instr_variant=LOAD)
    cells.store(gl.convert_layout(gl.load(x_ptr + where), store))
    gl.store(out_ptr + where, gl.convert_layout(cells.load(load), layout))


@gluon.jit
def mma(
    a_ptr, b_ptr, c_ptr, d_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, layout: gl.constexpr,
    a_layout: gl.constexpr, b_layout: gl.constexpr, a_tmem: gl.constexpr, tmem: gl.constexpr, TRANSPOSED: gl.constexpr,
):  # fmt: skip
    """D = A B + C; A in tensor memory if ``a_tmem``; B is stored as it is, or transposed."""
    a = gl.load(a_ptr + _places(M, K, layout))
    if TRANSPOSED:
        b = gl.allocate_shared_memory(
            b_ptr.dtype.element_ty, [N, K], b_layout, gl.load(b_ptr + _places(N, K, layout))
        )
        b = b.permute((1, 0))
    else:
        b = gl.allocate_shared_memory(
            b_ptr.dtype.element_ty, [K, N], b_layout, gl.load(b_ptr + _places(K, N, layout))
        )
    where = _places(M, N, layout)
    acc = allocate_tensor_memory(gl.float32, [M, N], tmem)
    registers: gl.constexpr = acc.get_reg_layout()
    acc.store(gl.convert_layout(gl.load(c_ptr + where), registers))
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    if a_tmem is None:
        a = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [M, K], a_layout, a)
        fence_async_shared()
        tcgen05_mma(a, b, acc)
    else:
        cells = allocate_tensor_memory(a_ptr.dtype.element_ty, [M, K], a_tmem)
        cells.store(gl.convert_layout(a, cells.get_reg_layout()))
        fence_async_shared()
        tcgen05_mma(cells, b, acc)
    tcgen05_commit(done)
    mbarrier.wait(done, 0)
    mbarrier.invalidate(done)
    gl.store(d_ptr + where, gl.convert_layout(acc.load(registers), layout))


@gluon.jit
def copy_to_tmem(
    x_ptr,
    out_ptr,
    M: gl.constexpr,
    N: gl.constexpr,
    layout: gl.constexpr,
    shared: gl.constexpr,
    tmem: gl.constexpr,
):
    """Shared memory to tensor memory by ``tcgen05.cp``."""
    where = _places(M, N, layout)
    source = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [M, N], shared, gl.load(x_ptr + where))
    cells = allocate_tensor_memory(x_ptr.dtype.element_ty, [M, N], tmem)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    fence_async_shared()
    tcgen05_copy(source, cells)
    tcgen05_commit(done)
    mbarrier.wait(done, 0)
    mbarrier.invalidate(done)
    gl.store(out_ptr + where, gl.convert_layout(cells.load(), layout))


@gluon.jit
def gather_rows(
    x,
    rows_ptr,
    out_ptr,
    col,
    ROWS: gl.constexpr,
    N: gl.constexpr,
    layout: gl.constexpr,
    offsets: gl.constexpr,
):
    """Rows of a matrix, in an order that an array gives, by TMA's gather mode."""
    rows = gl.load(rows_ptr + gl.arange(0, ROWS, offsets))
    tile = gl.allocate_shared_memory(x.dtype, [ROWS, N], x.layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.expect(ready, ROWS * N * x.dtype.primitive_bitwidth // 8)
    tma.async_gather(x, rows, col, ready, tile)
    mbarrier.wait(ready, 0)
    mbarrier.invalidate(ready)
    gl.store(out_ptr + _places(ROWS, N, layout), tile.load(layout))


@gluon.jit
def scatter_rows(
    x_ptr,
    rows_ptr,
    out,
    col,
    ROWS: gl.constexpr,
    N: gl.constexpr,
    layout: gl.constexpr,
    offsets: gl.constexpr,
):
    """A tile to rows of a matrix that an array gives, by TMA's scatter mode."""
    rows = gl.load(rows_ptr + gl.arange(0, ROWS, offsets))
    tile = gl.allocate_shared_memory(
        out.dtype, [ROWS, N], out.layout, gl.load(x_ptr + _places(ROWS, N, layout))
    )
    fence_async_shared()
    tma.async_scatter(out, rows, col, tile)
    tma.store_wait(0)


@gluon.jit
def mma_pair(
    a, b, d_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, layout: gl.constexpr, tmem: gl.constexpr
):
    """D = A B by a pair of CTAs: each holds half of A's rows and of B's columns."""
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    ready, done = mbarrier.allocate_mbarrier(two_ctas=True), mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=1)
    mbarrier.init(done, count=1)
    cluster.barrier()
    acc = allocate_tensor_memory(gl.float32, [M, N], tmem)
    for k in range(0, K, a.block_shape[1]):
        phase = (k // a.block_shape[1]) & 1
        mbarrier.expect(ready, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [0, k], ready, a_tile)
        tma.async_load(b, [k, 0], ready, b_tile)
        mbarrier.wait(ready, phase)
        tcgen05_mma(a_tile, b_tile, acc, use_acc=k > 0, mbarriers=[done])
        mbarrier.wait(done, phase)
    cluster.barrier()
    mbarrier.invalidate(ready)
    mbarrier.invalidate(done)
    gl.store(d_ptr + _places(M, N, layout), gl.convert_layout(acc.load(), layout))


@gluon.jit
def multicast_copy(x, out_ptr, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    """One CTA's load lands in both CTAs of the cluster."""
    tile = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
    ready = mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=1)
    cluster.barrier()
    mbarrier.expect(ready, x.nbytes_per_cta)
    tma.async_load(x, [0, 0], ready, tile, multicast=True)
    mbarrier.wait(ready, 0)
    mbarrier.invalidate(ready)
    gl.store(out_ptr + _places(M, N, layout), tile.load(layout))


@gluon.jit
def cancelled_tiles(x_ptr, out_ptr, owner_ptr, BLOCK: gl.constexpr, layout: gl.constexpr):
    """Doubles every tile; a CTA asks for those of CTAs that have not started yet."""
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    tile, phase, more = gl.program_id(0), 0, True
    while more:
        mbarrier.expect(arrived, 16)
        clc.try_cancel(answer, arrived)
        at = tile * BLOCK + gl.arange(0, BLOCK, layout)
        gl.store(out_ptr + at, 2 * gl.load(x_ptr + at))
        gl.store(owner_ptr + tile, gl.program_id(0))
        mbarrier.wait(arrived, phase)
        found = clc.load_result(answer)
        more = found.is_canceled()
        tile = found.program_id(0)
        phase ^= 1
    mbarrier.invalidate(arrived)
