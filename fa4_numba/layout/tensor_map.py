"""Tensor maps: what the TMA engine knows of a tensor and of the box that it copies."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

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
    "int64": 8,
}
MAX_RANK = 5
_NAN = {"float16": 0x7FFF, "bfloat16": 0x7FFF, "float32": 0x7FFFFFFF, "float64": 0x7FFFFFFFFFFFFFFF}


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
        "zero": elements outside the tensor read as 0; "nan" (floating types): as NaN.
    element_strides : tuple of int
        Of each dimension, every how manieth element of the box is copied, 1 to 8; default: all.

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
    element_strides: tuple[int, ...] = ()

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
        if self.oob_fill not in ("zero", "nan") or (self.oob_fill == "nan" and self.dtype not in _NAN):
            raise ArrayError(
                f"oob_fill = {self.oob_fill!r} with {self.dtype}: take 'zero', or 'nan' for floats"
            )
        object.__setattr__(self, "element_strides", tuple(self.element_strides) or (1,) * rank)
        if len(self.element_strides) != rank or not all(1 <= s <= 8 for s in self.element_strides):
            raise ArrayError(f"element strides {self.element_strides}: takes {rank} numbers from 1 to 8")
        if self.element_strides[0] != 1:
            raise ArrayError("element stride 0 must be 1: the innermost dimension is copied whole")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.dtype]

    @cached_property
    def copied(self) -> tuple[int, ...]:
        """Elements of the box that are copied along each dimension."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.element_strides))

    @property
    def row_bytes(self) -> int:
        """Bytes of a box row."""
        return self.box[0] * self.element_bytes

    @property
    def row_pitch(self) -> int:
        """Bytes from a box row to the next in shared memory: under a swizzle rows are as far apart as its span."""
        return self.row_bytes if self.swizzle is Swizzle.NONE else self.swizzle.span_bytes

    @cached_property
    def box_bytes(self) -> int:
        """Bytes of a full box: what one copy adds to a barrier's tx-count, clipped or not."""
        return int(np.prod(self.copied)) * self.element_bytes

    @property
    def fill(self) -> np.ndarray:
        """Bytes of an element that lies outside of the tensor."""
        value = _NAN[self.dtype] if self.oob_fill == "nan" else 0
        return np.frombuffer(value.to_bytes(self.element_bytes, "little"), np.uint8)

    def with_address(self, address: int) -> "TensorMapSpec":
        """Return the same map over another array."""
        return replace(self, address=address)

    def pack(self) -> bytes:
        """Return 128 bytes that the emulator can read back (not the hardware's format)."""
        from .tensor_map_format import pack

        return pack(self)

    @classmethod
    def unpack(cls, data: bytes) -> "TensorMapSpec":
        """Return the map packed in ``data``."""
        from .tensor_map_format import unpack

        return unpack(data)

    def box_rows(self, coordinates, rows=None) -> tuple[np.ndarray, int, int]:
        """Return which part of the box at ``coordinates`` lies inside the tensor, row by row.

        Parameters
        ----------
        coordinates : sequence of int
            Where the box starts, innermost dimension first.
        rows : sequence of int
            Gather and scatter: the indices along dimension 1, instead of a range.

        Returns
        -------
        offsets : int64 array
            For each box row (all dimensions but the innermost, innermost of them fastest) the byte offset of its
            first element from ``address`` at coordinate 0 of dimension 0, or −1 if the row is outside.
        first, last : int
            The row's elements [first, last) that are inside along dimension 0, relative to the box.
        """
        offsets = np.zeros(1, np.int64)
        for i in range(1, self.rank):
            step = np.arange(self.copied[i], dtype=np.int64) * self.element_strides[i]
            index = coordinates[i] + step if rows is None else np.asarray(rows, np.int64)
            inside = (index >= 0) & (index < self.shape[i])
            along = np.where(inside, index * self.strides_bytes[i - 1], -1)
            offsets = np.where(
                (along[:, None] < 0) | (offsets[None, :] < 0), -1, along[:, None] + offsets[None, :]
            ).ravel()
        first = min(max(0, -coordinates[0]), self.box[0])
        last = max(first, min(self.box[0], self.shape[0] - coordinates[0]))
        return offsets, first, last

    def whole(self, coordinates) -> tuple[int, int] | None:
        """Return (first byte from ``address``, bytes to the last one) of a box that sticks out nowhere, else None."""
        reach = self._reach
        if not all(0 <= c <= size - r for c, size, r in zip(coordinates, self.shape, reach)):
            return None
        pitches = (self.element_bytes, *self.strides_bytes)
        start = sum(c * pitch for c, pitch in zip(coordinates, pitches))
        return start, sum((r - 1) * pitch for r, pitch in zip(reach, pitches)) + self.element_bytes

    @cached_property
    def _reach(self) -> tuple[int, ...]:
        return tuple((n - 1) * step + 1 for n, step in zip(self.copied, self.element_strides))

    def box_view(self, data: np.ndarray, first: int) -> np.ndarray:
        """Return the bytes of a whole box that starts at ``data[first]``, as a view: (…, bytes of a row)."""
        pitches = [p * step for p, step in zip(self.strides_bytes, self.element_strides[1:])]
        shape = (*reversed(self.copied[1:]), self.row_bytes)
        return np.ndarray(shape, np.uint8, data, first, (*reversed(pitches), 1))

    def smem_pieces(self, smem_address: int, rows: int | None = None) -> np.ndarray:
        """Return the address of each 16-byte piece of a box at ``smem_address``: (rows, pieces per row).

        Rows follow one another at ``row_pitch``, innermost dimension fastest; the swizzle permutes pieces by the
        absolute address.
        """
        phase = smem_address & 1023  # swizzles repeat every 1024 bytes
        return _pieces(phase, rows or self.rows, self.row_bytes // 16, self.row_pitch, self.swizzle) + (
            smem_address - phase
        )

    @property
    def rows(self) -> int:
        """Rows of a box, along all dimensions but the innermost."""
        return self.box_bytes // self.row_bytes


@lru_cache(maxsize=256)
def _pieces(start: int, rows: int, pieces: int, pitch: int, swizzle: Swizzle) -> np.ndarray:
    linear = start + pitch * np.arange(rows)[:, None] + 16 * np.arange(pieces)
    return swizzle_address(linear, swizzle)
