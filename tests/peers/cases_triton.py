"""Triton's cases: which kernels, on what inputs."""

import kernels_triton as kernels
import ml_dtypes
import numpy as np
import triton.language as tl
from cases import BF16, FP8, Case, Comparison, attention_reference, normal, wide
from triton.tools.tensor_descriptor import TensorDescriptor

from fa4_numba.emulator.driver import DeviceArray

CASES: list[Case] = []
TL = {"bfloat16": tl.bfloat16, "float16": tl.float16, "float32": tl.float32, "float8_e4m3fn": tl.float8e4nv}


def case(name, function, *args, **kwargs):
    CASES.append(Case("triton", name, lambda: function(*args, **kwargs)))


def descriptor(array, block):
    return TensorDescriptor.from_tensor(DeviceArray(array), list(block))


# -- elementwise, rows ---------------------------------------------------------------------
def vector_add(n=3000):
    x, y, out = normal(n), normal(n, seed=1), np.zeros(n, np.float32)
    kernels.vector_add[(3,)](DeviceArray(x), DeviceArray(y), DeviceArray(out), n, BLOCK=1024)
    return [Comparison(out, x + y, 0)]


def row_softmax(rows=5, cols=700):
    x, out = normal(rows, cols), np.zeros((rows, cols), np.float32)
    kernels.row_softmax[(rows,)](DeviceArray(x), DeviceArray(out), cols, BLOCK=1024)
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    return [Comparison(out, e / e.sum(1, keepdims=True), 1e-6)]


def row_scan(rows=3, cols=512):
    x, out, top = normal(rows, cols), np.zeros((rows, cols), np.float32), np.zeros(rows, np.int32)
    kernels.row_scan[(rows,)](DeviceArray(x), DeviceArray(out), DeviceArray(top), BLOCK=cols)
    return [Comparison(out, wide(x).cumsum(1), 1e-6), Comparison(top, x.argmax(1), 0)]


def row_sort(rows=2, cols=512):
    x, out = normal(rows, cols), np.zeros((rows, cols), np.float32)
    kernels.row_sort[(rows,)](DeviceArray(x), DeviceArray(out), BLOCK=cols)
    return [Comparison(out, np.sort(x, 1), 0)]


def count_and_sum(ctas=4, block=1024, bins=64):
    x = np.random.default_rng(0).integers(0, bins, ctas * block).astype(np.int32)
    counts, total = np.zeros(bins, np.int32), np.zeros(1, np.int32)
    kernels.count_and_sum[(ctas,)](
        DeviceArray(x), DeviceArray(counts), DeviceArray(total), BLOCK=block, BINS=bins
    )
    return [Comparison(counts, np.bincount(x, minlength=bins), 0), Comparison(total, [x.sum()], 0)]


def layer_norm(rows=4, cols=900):
    x, w, out = normal(rows, cols, dtype=BF16), normal(cols, dtype=BF16, seed=1), np.zeros((rows, cols), BF16)
    kernels.layer_norm[(rows,)](DeviceArray(x), DeviceArray(w), DeviceArray(out), cols, 1e-5, BLOCK=1024)
    a, b = wide(x, w)
    a = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)
    return [Comparison(out, a * b, 2**-8)]


case("vector add", vector_add)
case("row softmax", row_softmax)
case("running sums and argmax", row_scan)
case("bitonic sort", row_sort)
case("histogram and sum by atomics", count_and_sum)
case("layer norm bf16", layer_norm)


# -- matmul ----------------------------------------------------------------------------------
def operands(m, n, k, dtype, out=None):
    """Return A (m, k), B (n, k), C (m, n) and A Bᵀ."""
    a, b = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype, seed=1)
    return a, b, np.zeros((m, n), out or dtype), wide(a) @ wide(b).T


def matmul_host(m, n, k, tile, *, dtype=BF16, out=None, ws=False, **options):
    a, b, c, want = operands(m, n, k, dtype, out)
    bm, bn, bk = tile
    kernels.matmul_host[(m // bm, n // bn)](
        descriptor(a, (bm, bk)), descriptor(b, (bn, bk)), descriptor(c, (bm, bn)),
        k, bm, bn, bk, ws, TL[c.dtype.name], **options,
    )  # fmt: skip
    return [Comparison(c, want, 2**-8)]


def matmul_device(m, n, k, tile, *, dtype=BF16, ws=False, **options):
    a, b, c, want = operands(m, n, k, dtype)
    grid = (m // tile[0], n // tile[1])
    kernels.matmul_device[grid](DeviceArray(a), DeviceArray(b), DeviceArray(c), m, n, k, *tile, ws, **options)
    return [Comparison(c, want, 2**-8)]


def matmul_persistent(m, n, k, tile, ctas, *, ws=False, **options):
    a, b, c, want = operands(m, n, k, BF16)
    bm, bn, bk = tile
    kernels.matmul_persistent[(ctas,)](
        descriptor(a, (bm, bk)), descriptor(b, (bn, bk)), descriptor(c, (bm, bn)),
        m // bm, n // bn, k, bm, bn, bk, ws, TL["bfloat16"], **options,
    )  # fmt: skip
    return [Comparison(c, want, 2**-8)]


def matmul_pointers(m, n, k, tile, *, dtype=BF16, tolerance=2**-8, **options):
    a, b, c, want = operands(m, n, k, dtype)
    b = np.ascontiguousarray(b.T)
    grid = (m // tile[0], n // tile[1])
    kernels.matmul_pointers[grid](DeviceArray(a), DeviceArray(b), DeviceArray(c), n, k, *tile, **options)
    return [Comparison(c, want, tolerance)]


def matmul_scaled(kind, m=128, n=128, k=256):
    rng = np.random.default_rng(0)
    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}[
        kind
    ]
    a, b = normal(m, k).astype(dtype), normal(n, k, seed=1).astype(dtype)
    scales = [rng.integers(122, 132, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    wide_scales = [np.repeat(2.0 ** (s.astype(int) - 127), 32, 1) for s in scales]
    want = (wide(a) * wide_scales[0]) @ (wide(b) * wide_scales[1]).T
    if kind == "e2m1":
        a, b = (x.view(np.uint8)[:, 0::2] | x.view(np.uint8)[:, 1::2] << 4 for x in (a, b))
    c = np.zeros((m, n), np.float32)
    arrays = [DeviceArray(np.ascontiguousarray(x)) for x in (a, b, *scales, c)]
    kernels.matmul_scaled[(1,)](*arrays, m, n, k, kind)
    return [Comparison(c, want, 1e-6)]


for tile, warps in (((128, 128, 64), 4), ((256, 128, 64), 8)):
    for ws in (False, True):
        suffix = f"{tile[0]}x{tile[1]}" + (" warp-specialised" if ws else "")
        case(f"matmul host descriptors {suffix}", matmul_host, 256, 256, 256, tile, ws=ws, num_warps=warps)
        case(
            f"matmul device descriptors {suffix}", matmul_device, 256, 256, 256, tile, ws=ws, num_warps=warps
        )
    case(f"matmul persistent {tile[0]}x{tile[1]}", matmul_persistent, 512, 256, 192, tile, 2, num_warps=warps)
case(
    "matmul persistent 128x128 warp-specialised", matmul_persistent, 512, 256, 192, (128, 128, 64), 2, ws=True
)
case(
    "matmul host descriptors float16",
    matmul_host,
    128,
    256,
    256,
    (128, 256, 64),
    dtype=np.float16,
    num_warps=8,
)
case("matmul host descriptors fp8", matmul_host, 128, 128, 512, (128, 128, 128), dtype=FP8, out=np.float16)
case("matmul host descriptors tf32", matmul_host, 128, 64, 128, (128, 64, 32), dtype=np.float32)
case("matmul host descriptors 64-row tiles", matmul_host, 128, 64, 128, (64, 64, 64))
case("matmul pointers 128x128", matmul_pointers, 128, 256, 192, (128, 128, 64))
case("matmul pointers mma.sync", matmul_pointers, 32, 64, 128, (16, 32, 64))
case("matmul pointers mma.sync float16", matmul_pointers, 32, 64, 128, (32, 32, 32), dtype=np.float16)
for kind in ("e4m3", "e5m2", "e2m1"):
    case(f"matmul block-scaled {kind}", matmul_scaled, kind)


# -- attention --------------------------------------------------------------------------------
def attention(d, causal, ws, heads=1, seq=512, tile=128):
    q, k, v = (normal(heads * seq, d, dtype=BF16, seed=i) for i in range(3))
    out, lse = np.zeros((heads * seq, d), BF16), np.zeros((heads, seq), np.float32)
    scale = d**-0.5
    kernels.attention[(seq // tile, heads)](
        *(descriptor(x, (tile, d)) for x in (q, k, v, out)), DeviceArray(lse), seq, scale * np.log2(np.e),
        tile, tile, d, causal, ws, TL["bfloat16"], num_warps=4 if ws else 8, num_stages=2,
    )  # fmt: skip
    each = [slice(h * seq, (h + 1) * seq) for h in range(heads)]
    want = [attention_reference(q[s], k[s], v[s], scale, causal=causal) for s in each]
    return [
        Comparison(out, np.concatenate([w[0] for w in want]), 2**-7),
        Comparison(lse * np.log(2), np.stack([w[1] for w in want]), 1e-3),
    ]


for d in (64, 128):
    for causal in (False, True):
        for ws in (False, True):
            name = f"attention d{d} {'causal' if causal else 'full'}" + (" warp-specialised" if ws else "")
            case(name, attention, d, causal, ws)
