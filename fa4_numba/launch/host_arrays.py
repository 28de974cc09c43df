"""numpy arrays in a form that TMA can read, copied only where the original cannot be."""

import numpy as np

TMA_ALIGNMENT_BYTES = 16
_MAX_STRIDE_BYTES = 1 << 40


def tma_ready(array: np.ndarray) -> np.ndarray:
    """Return ``array`` itself if TMA can address it, else a copy that it can.

    TMA wants the last dimension contiguous, and the address and every other stride a positive multiple of 16 bytes.
    The copy keeps the shape; its rows are padded to a multiple of 16 bytes.
    """
    strides_fit = all(
        size == 1 or (0 < stride < _MAX_STRIDE_BYTES and stride % TMA_ALIGNMENT_BYTES == 0)
        for size, stride in zip(array.shape[:-1], array.strides[:-1])
    )
    contiguous = array.shape[-1] == 1 or array.strides[-1] == array.itemsize
    if strides_fit and contiguous and array.ctypes.data % TMA_ALIGNMENT_BYTES == 0:
        return array
    copy = zeros_tma_ready(array.shape, array.dtype)
    copy[...] = array
    return copy


def padded_row(elems: int, itemsize: int) -> int:
    """Return ``elems`` rounded up to a row of whole 16-byte pieces."""
    return -(-elems * itemsize // TMA_ALIGNMENT_BYTES) * TMA_ALIGNMENT_BYTES // itemsize


def zeros_tma_ready(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Return a zeroed array of ``shape`` whose rows start at multiples of 16 bytes."""
    dtype = np.dtype(dtype)
    row_elems = padded_row(shape[-1], dtype.itemsize)
    count = int(np.prod(shape[:-1], dtype=np.int64)) * row_elems
    buffer = np.zeros(count * dtype.itemsize + TMA_ALIGNMENT_BYTES, np.uint8)
    start = -buffer.ctypes.data % TMA_ALIGNMENT_BYTES
    rows = buffer[start : start + count * dtype.itemsize].view(dtype)
    return rows.reshape(*shape[:-1], row_elems)[..., : shape[-1]]


def covering_bytes(array: np.ndarray) -> np.ndarray:
    """Return a flat uint8 view of the memory from ``array``'s first to its last byte, without a copy.

    ``array`` is :func:`tma_ready`: no negative strides, so the view starts at the first element.
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    first = array[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (high - low,), (1,), writeable=array.flags.writeable)
