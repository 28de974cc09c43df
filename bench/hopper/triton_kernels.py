"""Two kernels for Triton's compiler: a matrix product and an attention with tensor descriptors from the host."""

import triton
import triton.language as tl


@triton.jit
def triton_matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A·Bᵀ, one tile per program."""
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK):
        acc = tl.dot(a.load([m * BM, k]), b.load([n * BN, k]).T, acc)
    c.store([m * BM, n * BN], acc.to(tl.bfloat16))


@triton.jit
def triton_attention(q, k, v, out, tokens, scale_log2, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Softmax(Q·Kᵀ)·V of one head, online; rows of all heads lie below each other."""
    start = tl.program_id(1) * tokens
    query = q.load([start + tl.program_id(0) * BM, 0])
    top, total = tl.full([BM], -float("inf"), tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n in tl.range(0, tokens, BN):
        scores = tl.dot(query, k.load([start + n, 0]).T) * scale_log2
        higher = tl.maximum(top, tl.max(scores, 1))
        p, factor = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v.load([start + n, 0]), acc * factor[:, None])
        top = higher
    out.store([start + tl.program_id(0) * BM, 0], (acc / total[:, None]).to(tl.bfloat16))
