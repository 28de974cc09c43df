"""Tensor maps: what the TMA engine knows of a tensor and of the box that it copies."""

import struct
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ArrayError
from .swizzle import Swizzle, swizzle_address

ELEMENT_BYTES = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "int32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
MAP_BYTES = 128
MAX_RANK = 5
_MAGIC = 0x4D414D54  # "TMAM": tells our maps from bytes that are none
_FORMAT = "<IBBBBQ5I4Q5H"
_DTYPES, _SWIZZLES = tuple(ELEMENT_BYTES), tuple(Swizzle)


@dataclass(frozen=True)
class TensorMapSpec:
    """A tiled tensor map; sizes in elements, innermost dimension first.

    Parameters
    ----------
    dtype : str
        Element type, as numpy and ml_dtypes spell it.
    address : int
        Global address of element 0; a multiple of 16 bytes.
    shape : tuple of int
        Size of each dimension, 1 to 5 of them.
    strides_bytes : tuple of int
        Pitch of dimensions 1…; multiples of 16 bytes, below 2**40.
    box : tuple of int
        Elements copied along each dimension, 1 to 256.
    swizzle : Swizzle
        Swizzle in shared memory; the innermost box row must fit its span.
    oob_fill : str
        "zero": elements outside the tensor read as 0.

    Raises
    ------
    ArrayError
        For what ``cuTensorMapEncodeTiled`` would refuse; the message names the dimension.

    Notes
    -----
    Source: CUDA driver API, cuTensorMapEncodeTiled.
    """

    dtype: str
    address: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: Swizzle = Swizzle.NONE
    oob_fill: str = "zero"

    def __post_init__(self):
        if self.dtype not in ELEMENT_BYTES:
            raise ArrayError(f"tensor map dtype {self.dtype!r}: take one of {sorted(ELEMENT_BYTES)}")
        rank = len(self.shape)
        if not 1 <= rank <= MAX_RANK:
            raise ArrayError(f"tensor map rank {rank}: TMA takes 1 to {MAX_RANK} dimensions")
        if len(self.box) != rank or len(self.strides_bytes) != rank - 1:
            raise ArrayError(f"tensor map of rank {rank} needs {rank} box sizes and {rank - 1} strides")
        if self.address % 16:
            raise ArrayError(
                f"tensor map address {self.address:#x}: must be a multiple of 16 bytes; copy the array"
            )
        for i, size in enumerate(self.shape):
            if not 1 <= size <= 1 << 32:
                raise ArrayError(f"tensor map dimension {i} has size {size}: must be 1 to 2**32")
        for i, stride in enumerate(self.strides_bytes, 1):
            if stride % 16 or not 0 <= stride < 1 << 40:
                raise ArrayError(
                    f"tensor map stride {i} is {stride} bytes: must be a multiple of 16 below 2**40"
                )
        for i, size in enumerate(self.box):
            if not 1 <= size <= 256:
                raise ArrayError(f"tensor map box {i} is {size}: must be 1 to 256 elements")
        inner = self.box[0] * self.element_bytes
        if inner % 16:
            raise ArrayError(f"tensor map box row is {inner} bytes: must be a multiple of 16")
        if self.swizzle is not Swizzle.NONE and inner > self.swizzle.span_bytes:
            raise ArrayError(
                f"tensor map box row is {inner} bytes: swizzle {self.swizzle.value} takes at most its span"
            )
        if self.oob_fill != "zero":
            raise ArrayError(f"oob_fill = {self.oob_fill!r}: only 'zero' is supported")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.dtype]

    @property
    def box_bytes(self) -> int:
        """Bytes of a full box: what one copy adds to a barrier's tx-count, clipped or not."""
        return int(np.prod(self.box)) * self.element_bytes

    def with_address(self, address: int) -> "TensorMapSpec":
        """Return the same map over another array."""
        return replace(self, address=address)

    def pack(self) -> bytes:
        """Return 128 bytes that the emulator can read back (not the hardware's format)."""
        pad = lambda values, n: tuple(values) + (0,) * (n - len(values))
        data = struct.pack(
            _FORMAT,
            _MAGIC,
            self.rank,
            _DTYPES.index(self.dtype),
            _SWIZZLES.index(self.swizzle),
            0,
            self.address,
            *pad([size - 1 for size in self.shape], 5),
            *pad(self.strides_bytes, 4),
            *pad(self.box, 5),
        )
        return data.ljust(MAP_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> "TensorMapSpec":
        """Return the map packed in ``data``."""
        magic, rank, dtype, swizzle, _, address, *rest = struct.unpack_from(_FORMAT, bytes(data))
        if magic != _MAGIC or not 1 <= rank <= MAX_RANK:
            raise ArrayError("these 128 bytes are no tensor map (was the map's address passed?)")
        return cls(
            _DTYPES[dtype],
            address,
            tuple(size + 1 for size in rest[:rank]),
            tuple(rest[5 : 5 + rank - 1]),
            tuple(rest[9 : 9 + rank]),
            _SWIZZLES[swizzle],
        )

    def box_rows(self, coordinates) -> tuple[np.ndarray, int, int]:
        """Return which part of the box at ``coordinates`` lies inside the tensor, row by row.

        Returns
        -------
        offsets : int64 array
            For each box row (all dimensions but the innermost, innermost of them fastest) the byte offset of its
            first element from ``address`` at coordinate 0 of dimension 0, or −1 if the row is outside.
        first, last : int
            The row's elements [first, last) that are inside along dimension 0, relative to the box.
        """
        offsets = np.zeros(1, np.int64)
        for size, stride, box, start in zip(
            self.shape[1:], self.strides_bytes, self.box[1:], coordinates[1:]
        ):
            index = start + np.arange(box, dtype=np.int64)
            inside = (index >= 0) & (index < size)
            step = np.where(inside, index * stride, -1)
            offsets = np.where(
                (step[:, None] < 0) | (offsets[None, :] < 0), -1, step[:, None] + offsets[None, :]
            ).ravel()
        first = min(max(0, -coordinates[0]), self.box[0])
        last = max(first, min(self.box[0], self.shape[0] - coordinates[0]))
        return offsets, first, last

    def smem_pieces(self, smem_address: int) -> np.ndarray:
        """Return the address of each 16-byte piece of a box at ``smem_address``: (rows, pieces per row).

        The box is dense, innermost dimension fastest; the swizzle permutes pieces by the absolute address.
        """
        pieces = self.box[0] * self.element_bytes // 16
        rows = int(np.prod(self.box[1:], dtype=np.int64))
        linear = smem_address + 16 * np.arange(rows * pieces, dtype=np.int64)
        return swizzle_address(linear, self.swizzle).reshape(rows, pieces)
