"""Kernels in Triton, written for these tests. Triton's compiler turns them into Blackwell PTX."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(x_ptr + i, mask=inside) + tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, total, mask=inside)


@triton.jit
def row_softmax(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    inside = col < cols
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * cols + col, e / tl.sum(e, 0), mask=inside)


@triton.jit
def row_scan(x_ptr, out_ptr, top_ptr, BLOCK: tl.constexpr):
    """Running sums of a row, and where its largest element is."""
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + col)
    tl.store(out_ptr + row * BLOCK + col, tl.cumsum(x, 0))
    tl.store(top_ptr + row, tl.argmax(x, 0))


@triton.jit
def row_sort(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + row * BLOCK + col, tl.sort(tl.load(x_ptr + row * BLOCK + col)))


@triton.jit
def count_and_sum(x_ptr, counts_ptr, total_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """A histogram and a sum over all CTAs, by atomics."""
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))
    tl.atomic_add(total_ptr, tl.sum(x, 0))


@triton.jit
def layer_norm(x_ptr, w_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    inside = col < cols
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=0).to(tl.float32)
    mean = tl.sum(x, 0) / cols
    centred = tl.where(inside, x - mean, 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / cols + eps)
    w = tl.load(w_ptr + col, mask=inside).to(tl.float32)
    tl.store(out_ptr + row * cols + col, (centred * scale * w).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def matmul_pointers(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B through plain loads: cp.async pipelines, and mma.sync where the tile is small."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def matmul_host(
    a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr, OUT: tl.constexpr
):
    """C = A Bᵀ with tensor maps made by the host."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(OUT))


@triton.jit
def matmul_device(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr
):
    """C = A Bᵀ with tensor maps that the kernel makes in global memory."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def matmul_persistent(
    a,
    b,
    c,
    tiles_m,
    tiles_n,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    WS: tl.constexpr,
    OUT: tl.constexpr,
):
    """C = A Bᵀ, each CTA walks over tiles; the epilogue of one overlaps the loop of the next."""
    for tile in tl.range(
        tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True, warp_specialize=WS
    ):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK):
            acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
        c.store([m, n], acc.to(OUT))


@triton.jit
def matmul_scaled(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
    c_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    KIND: tl.constexpr,
):
    """C = (A·scales) (B·scales)ᵀ of one tile, a scale for every 32 elements of K: the block-scaled MMA."""
    PACK: tl.constexpr = 2 if KIND == "e2m1" else 1
    m, n, k, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PACK), tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * (K // PACK) + k[None, :])
    b = tl.load(b_ptr + n[:, None] * (K // PACK) + k[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + s[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + s[None, :])
    c = tl.dot_scaled(a, a_scale, KIND, b.T, b_scale, KIND)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def attention(
    q, k, v, out, lse_ptr, S, scale_log2,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """One tile of BM queries against its keys; ``lse`` in log2 units. Heads are stacked along the rows."""
    tile, head = tl.program_id(0), tl.program_id(1)
    first = head * S
    q_tile = q.load([first + tile * BM, 0])
    rows, cols = tile * BM + tl.arange(0, BM), tl.arange(0, BN)
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    end = S
    if CAUSAL:
        end = (tile + 1) * BM
    for n in tl.range(0, end, BN, warp_specialize=WS):
        s = tl.dot(q_tile, k.load([first + n, 0]).T) * scale_log2
        if CAUSAL:
            s = tl.where(rows[:, None] >= n + cols[None, :], s, -1e6)
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        correction = tl.exp2(top - new_top)
        total = total * correction + tl.sum(p, 1)
        acc = tl.dot(p.to(OUT), v.load([first + n, 0]), acc * correction[:, None])
        top = new_top
    tl.store(lse_ptr + first + rows, top + tl.log2(total))
    out.store([first + tile * BM, 0], (acc / total[:, None]).to(OUT))
