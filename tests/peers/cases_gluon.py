"""Gluon's cases: one Blackwell feature each, in several shapes."""

import kernels_gluon as kernels
import numpy as np
from cases import BF16, FP8, Case, Comparison, normal, wide
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from fa4_numba.emulator.driver import DeviceArray

CASES: list[Case] = []
GL = {"bfloat16": gl.bfloat16, "float16": gl.float16, "float32": gl.float32, "float8_e4m3fn": gl.float8e4nv}
ROWS = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])  # a warp reads along a row


def case(name, function, *args, **kwargs):
    CASES.append(Case("gluon", name, lambda: function(*args, **kwargs)))


def shared_layout(shape, dtype, **options):
    return gl.NVMMASharedLayout.get_default_for(list(shape), GL[np.dtype(dtype).name], **options)


def descriptor(array, block, **options):
    return TensorDescriptor.from_tensor(
        DeviceArray(array), list(block), shared_layout(block, array.dtype, **options)
    )


# -- tensor memory ---------------------------------------------------------------------------
def round_trip(m, n, dtype, variant):
    x, out = normal(m, n, dtype=dtype), np.zeros((m, n), dtype)
    tmem = TensorMemoryLayout((m, n), col_stride=4 // x.itemsize if x.itemsize < 4 else 1)
    kernels.tmem_round_trip[(1,)](DeviceArray(x), DeviceArray(out), m, n, ROWS, tmem, variant, num_warps=4)
    return [Comparison(out, x, 0)]


def other_shape(m, n, store, load):
    x, out = normal(m, n), np.zeros((m, n), np.float32)
    tmem = TensorMemoryLayout((m, n), col_stride=1)
    kernels.tmem_transpose_shapes[(1,)](
        DeviceArray(x), DeviceArray(out), m, n, ROWS, tmem, store, load, num_warps=4
    )
    return [Comparison(out, x, 0)]


VARIANTS = ("32x32b", "16x64b", "16x128b", "16x256b")
for variant in VARIANTS:
    case(f"TMEM round trip {variant}", round_trip, 128, 64, np.float32, variant)
    if variant != "32x32b":
        case(f"TMEM stored {variant}, loaded 32x32b", other_shape, 128, 64, variant, "32x32b")
case("TMEM round trip 64 rows 32x32b", round_trip, 64, 64, np.float32, "32x32b")  # becomes 16x32bx2
case("TMEM round trip 64 rows 16x64b", round_trip, 64, 32, np.float32, "16x64b")
case("TMEM round trip float16 unpacked", round_trip, 128, 64, np.float16, "32x32b")


# -- multiplies ------------------------------------------------------------------------------
def mma(m, n, k, *, dtype=BF16, in_tmem=False, transposed=False):
    a, c = normal(m, k, dtype=dtype), normal(m, n, seed=2)
    b = normal(*((n, k) if transposed else (k, n)), dtype=dtype, seed=1)
    d = np.zeros((m, n), np.float32)
    kernels.mma[(1,)](
        *map(DeviceArray, (a, b, c, d)), m, n, k, ROWS, shared_layout(a.shape, dtype), shared_layout(b.shape, dtype),
        TensorMemoryLayout((m, k), col_stride=1) if in_tmem else None, TensorMemoryLayout((m, n), col_stride=1),
        transposed, num_warps=4,
    )  # fmt: skip
    return [Comparison(d, wide(a) @ (wide(b).T if transposed else wide(b)) + c, 2e-6)]


for m, n, k in ((128, 128, 64), (128, 64, 128), (128, 256, 64), (64, 64, 64), (64, 128, 32), (128, 16, 32)):
    case(f"MMA SS {m}x{n}x{k}", mma, m, n, k)
case("MMA SS B transposed", mma, 128, 64, 64, transposed=True)
case("MMA SS float16", mma, 128, 64, 64, dtype=np.float16)
case("MMA SS fp8", mma, 128, 64, 128, dtype=FP8, transposed=True)
for m, n, k in ((128, 64, 64), (128, 128, 128), (64, 64, 64)):
    case(f"MMA TS {m}x{n}x{k}", mma, m, n, k, in_tmem=True)
case("MMA TS float16", mma, 128, 64, 64, dtype=np.float16, in_tmem=True)


def copy_to_tmem(m, n):
    x, out = normal(m, n), np.zeros((m, n), np.float32)
    shared = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    tmem = TensorMemoryLayout((m, n), col_stride=1)
    kernels.copy_to_tmem[(1,)](DeviceArray(x), DeviceArray(out), m, n, ROWS, shared, tmem, num_warps=4)
    return [Comparison(out, x, 0)]


case("tcgen05.cp 128x32", copy_to_tmem, 128, 32)
case("tcgen05.cp 128x128", copy_to_tmem, 128, 128)


# -- TMA's other modes -----------------------------------------------------------------------
OFFSETS = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))


def gather(rows=64, n=64, col=32):
    x, out = normal(200, 128, dtype=BF16), np.zeros((rows, n), BF16)
    order = np.random.default_rng(1).permutation(200)[:rows].astype(np.int32)
    kernels.gather_rows[(1,)](
        descriptor(x, (1, n)), DeviceArray(order), DeviceArray(out), col, rows, n, ROWS, OFFSETS, num_warps=4
    )
    return [Comparison(out, x[order, col : col + n], 0)]


def scatter(rows=64, n=64, col=32):
    x, out = normal(rows, n, dtype=BF16), normal(200, 128, dtype=BF16, seed=2)
    want, order = out.copy(), np.random.default_rng(1).permutation(200)[:rows].astype(np.int32)
    want[order, col : col + n] = x
    kernels.scatter_rows[(1,)](
        DeviceArray(x), DeviceArray(order), descriptor(out, (1, n)), col, rows, n, ROWS, OFFSETS, num_warps=4
    )
    return [Comparison(out, want, 0)]


case("TMA gather", gather)
case("TMA scatter", scatter)


# -- clusters ----------------------------------------------------------------------------------
def pair(m=256, n=128, k=256, block_k=64):
    a, b, d = normal(m, k, dtype=BF16), normal(k, n, dtype=BF16, seed=1), np.zeros((m, n), np.float32)
    layout = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0], cga_layout=[[1, 0]])
    tmem = TensorMemoryLayout((m // 2, n), col_stride=1, cga_layout=[[1, 0]], two_ctas=True)
    kernels.mma_pair[(1,)](
        descriptor(a, (m, block_k), cga_layout=[[1, 0]]), descriptor(b, (block_k, n), cga_layout=[[0, 1]]),
        DeviceArray(d), m, n, k, layout, tmem, num_warps=4, num_ctas=2,
    )  # fmt: skip
    return [Comparison(d, wide(a) @ wide(b), 2e-6)]


def multicast(m=64, n=64):
    x, out = normal(m, n, dtype=np.float16), np.zeros((m, n), np.float16)
    layout = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0], cga_layout=[[0, 0]])
    source = descriptor(x, (m, n), cga_layout=[[0, 0]])
    kernels.multicast_copy[(1,)](source, DeviceArray(out), m, n, layout, num_warps=4, num_ctas=2)
    return [Comparison(out, x, 0)]


def cancelled(tiles=12, block=256):
    x, out = normal(tiles * block), np.zeros(tiles * block, np.float32)
    owner = np.full(tiles, -1, np.int32)
    layout = gl.BlockedLayout([2], [32], [4], [0])
    kernels.cancelled_tiles[(tiles,)](
        DeviceArray(x), DeviceArray(out), DeviceArray(owner), block, layout, num_warps=4
    )
    return [Comparison(out, 2 * x, 0), Comparison(owner < 0, np.zeros(tiles, bool), 0)]


case("MMA CTA pair 256x128", pair)
case("MMA CTA pair 256x256", pair, n=256, k=128)
case("MMA CTA pair 128x128", pair, m=128, k=128)
case("TMA multicast", multicast)
case("clusterlaunchcontrol", cancelled)
