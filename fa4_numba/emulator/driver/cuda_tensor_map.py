"""Reads a tensor map in the hardware's own 128 bytes, as CuTe DSL's host code writes them."""

import struct

from ...layout import Swizzle, TensorMapSpec

# the flag word: rank − 1 at bit 4, element type at bit 7, swizzle at bit 13
_DTYPES = {
    0: "uint8",
    1: "uint16",
    2: "uint32",
    3: "int32",
    4: "uint64",
    5: "int64",
    6: "float16",
    7: "float32",
}
_DTYPES |= {8: "float32", 9: "float64", 10: "bfloat16", 11: "float32", 12: "float32"}
_SWIZZLES = (Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128)


def repack(data: bytes) -> bytes:
    """Return the same map in the emulator's format.

    Words of 32 bits: 0–1 address, 2 flags, 3–6 strides of dimensions 1…4 in units of 16 bytes (their high bits are in
    word 7, 4 each), 8–12 sizes minus 1; bytes 55–59 box sizes minus 1.
    """
    words = struct.unpack("<16I", data[:64])
    rank = (words[2] >> 4 & 7) + 1
    strides = [(words[3 + i] | (words[7] >> 4 * i & 15) << 32) << 4 for i in range(rank - 1)]
    return TensorMapSpec(
        _DTYPES[words[2] >> 7 & 15],
        words[0] | words[1] << 32,
        tuple(words[8 + i] + 1 for i in range(rank)),
        tuple(strides),
        tuple(data[55 + i] + 1 for i in range(rank)),
        _SWIZZLES[words[2] >> 13 & 3],
    ).pack()
