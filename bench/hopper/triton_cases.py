"""Kernels that Triton compiles for Hopper, without a GPU; left out where Triton is not installed."""

import sys

from .case import Buffer, Case, Map


def compiled() -> list[tuple[Case, str]]:
    """Return (case, PTX) of each kernel."""
    sys.modules.setdefault("torch", None)  # not needed, and slow to import
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from . import triton_kernels as kernels

    def build(function, signature, constants, **options):
        constants = {(list(signature).index(name),): value for name, value in constants.items()}
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        return compile(source, target=GPUTarget("cuda", 90, 32), options=options)

    tile = "tensordesc<bf16[128, {}]>".format
    out = []
    size = 4096
    signature = {"a": tile(64), "b": tile(64), "c": tile(128), "K": "i32"}
    constants = {"BM": 128, "BN": 128, "BK": 64}
    signature |= dict.fromkeys(constants, "constexpr")
    kernel = build(kernels.triton_matmul, signature, constants, num_warps=8, num_stages=4)
    args = [
        *_descriptor("a", size, size),
        *_descriptor("b", size, size),
        *_descriptor("c", size, size),
        ["u32", size],
    ]
    buffers = [Buffer(name, size * size * 2, "bf16") for name in "AB"] + [Buffer("C", size * size * 2)]
    maps = [Map(name, name.upper(), (size, size), (64, 128)) for name in "abc"]
    grid, work = (size // 128, size // 128, 1), {"flop": 2 * size**3}
    out.append(_case(kernel, "triton_matmul", grid, args, buffers, maps, "tensor core", work))

    tokens, heads, dim = 2048, 64, 128
    signature = {name: tile(128) for name in ("q", "k", "v", "out")} | {"tokens": "i32", "scale_log2": "fp32"}
    constants = {"BM": 128, "BN": 128, "D": dim}
    signature |= dict.fromkeys(constants, "constexpr")
    kernel = build(kernels.triton_attention, signature, constants, num_warps=8, num_stages=2)
    names = ("q", "k", "v", "out")
    args = [item for name in names for item in _descriptor(name, tokens * heads, dim)]
    args += [["u32", tokens], ["f32", 1.4426950408889634 / dim**0.5]]
    buffers = [Buffer(name.upper(), tokens * heads * dim * 2, "bf16") for name in names]
    maps = [Map(name, name.upper(), (dim, tokens * heads), (64, 128)) for name in names]
    grid, work = (tokens // 128, heads, 1), {"flop": 4 * heads * tokens**2 * dim}
    out.append(_case(kernel, "triton_attention", grid, args, buffers, maps, "tensor core and MUFU", work))
    return out


def _descriptor(name: str, rows: int, columns: int) -> list:
    """What Triton passes for a host descriptor: the map, then shape and strides."""
    return [name, ["u32", rows], ["u32", columns], ["u64", columns], ["u64", 1]]


def _case(kernel, name, grid, args, buffers, maps, bound, work) -> tuple[Case, str]:
    args = [*args, ["u64", 0], ["u64", 0]]  # no scratch memory
    meta = kernel.metadata
    case = Case(
        name, name, meta.name, grid, 32 * meta.num_warps, meta.shared, args, buffers, maps, None, bound, work
    )
    return case, kernel.asm["ptx"]
