"""Element types of matrix multiplies: how bits in memory become f32 values."""

from functools import cached_property

import ml_dtypes
import numpy as np

STEP_BYTES = 32  # bytes of a row of A or B that one multiply takes along K


class Element:
    """A type whose elements are 8, 16 or 32 bits in memory. ``values`` widens exactly, by table where there is one."""

    def __init__(self, name: str, dtype, bits: int | None = None):
        self.name, self.dtype = name, np.dtype(dtype)
        self.bits = bits or 8 * self.dtype.itemsize

    @property
    def per_step(self) -> int:
        """Elements along K of one multiply."""
        return STEP_BYTES * 8 // self.bits

    @cached_property
    def table(self) -> np.ndarray:
        """What each 16-bit word is worth: one f32, or two of 8-bit types (as one 8-byte item)."""
        words = np.arange(1 << 16, dtype=np.uint16).view(self.dtype).astype(np.float32)
        return words if self.bits == 16 else words.view(np.uint64)

    def values(self, words: np.ndarray) -> np.ndarray:
        """Return the f32 values of uint16 words; the last axis grows with the elements per word."""
        return self.table.take(words).view(np.float32)


class BFloat16(Element):
    """bf16 is the upper half of an f32."""

    def values(self, words: np.ndarray) -> np.ndarray:
        halves = np.zeros((*words.shape, 2), np.uint16)
        halves[..., 1] = words
        return halves.view(np.float32)[..., 0]


class TensorFloat32(Element):
    """tf32 is an f32 of which the tensor core ignores the lowest 13 bits."""

    def values(self, words: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(words).view(np.uint32)
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)


class Narrow(Element):
    """A 4- or 6-bit type, each element in 8 bits of tensor memory; in shared memory 16 of them packed, then padding.

    In its 8-bit container a 6-bit element has the low bits, a 4-bit element bits 2–5.
    """

    def __init__(self, name: str, dtype, width: int):
        super().__init__(name, dtype, 8)
        self.width = width

    @cached_property
    def table(self) -> np.ndarray:
        codes = np.arange(256, dtype=np.uint16)
        codes = codes >> 2 & 15 if self.width == 4 else codes & 63
        one = codes.astype(np.uint8).view(self.dtype).astype(np.float32)
        words = np.arange(1 << 16)
        return np.stack([one[words & 255], one[words >> 8]], 1).view(np.uint64)[:, 0]

    def unpack(self, words: np.ndarray) -> np.ndarray:
        """Return 16-byte pieces of shared memory (8 words each) with every element in its 8-bit container."""
        pieces = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 16)
        containers = np.empty((len(pieces), 16), np.uint8)
        if self.width == 4:
            containers[:, 0::2] = (pieces[:, :8] & 15) << 2
            containers[:, 1::2] = pieces[:, :8] >> 4 << 2
        else:  # four elements in three bytes
            a, b, c = (pieces[:, i:12:3] for i in range(3))
            containers[:, 0::4] = a & 63
            containers[:, 1::4] = a >> 6 | (b & 15) << 2
            containers[:, 2::4] = b >> 4 | (c & 3) << 4
            containers[:, 3::4] = c >> 2
        return containers.view(np.uint16).reshape(words.shape)


class PackedE2M1(Element):
    """e2m1 two to a byte, in shared and in tensor memory (kinds mxf4 and mxf4nvf4)."""

    def __init__(self):
        super().__init__("e2m1", ml_dtypes.float4_e2m1fn, 4)

    @cached_property
    def table(self) -> np.ndarray:
        one = np.arange(16, dtype=np.uint8).view(self.dtype).astype(np.float32)
        words = np.arange(1 << 16)
        return np.stack([one[words >> shift & 15] for shift in (0, 4, 8, 12)], 1)

    def values(self, words: np.ndarray) -> np.ndarray:
        return self.table.take(words, axis=0).reshape(*words.shape[:-1], -1)


ELEMENTS = {
    "f16": Element("f16", np.float16),
    "bf16": BFloat16("bf16", ml_dtypes.bfloat16),
    "tf32": TensorFloat32("tf32", np.float32),
    "e4m3": Element("e4m3", ml_dtypes.float8_e4m3fn),
    "e5m2": Element("e5m2", ml_dtypes.float8_e5m2),
    "e2m3": Narrow("e2m3", ml_dtypes.float6_e2m3fn, 6),
    "e3m2": Narrow("e3m2", ml_dtypes.float6_e3m2fn, 6),
    "e2m1": Narrow("e2m1", ml_dtypes.float4_e2m1fn, 4),
    "u8": Element("u8", np.uint8),
    "s8": Element("s8", np.int8),
    "e2m1 packed": PackedE2M1(),
}
