"""Global memory: host arrays bound to device addresses, with nothing in between them."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ...errors import MemoryFault

GLOBAL_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x7E00_0000_0000  # generic addresses of shared memory
RANK_SHIFT = 24  # a shared address: the CTA's rank in its cluster above a 24-bit offset
WINDOW_BYTES = 1 << RANK_SHIFT
MAX_CLUSTER_CTAS = 16  # more than 8 need the launch attribute for non-portable sizes
SHARED_WINDOW_END = SHARED_WINDOW + MAX_CLUSTER_CTAS * WINDOW_BYTES
PARAM_WINDOW = 0x7D00_0000_0000  # generic addresses of kernel parameters
LOCAL_WINDOW = 0x7C00_0000_0000  # addresses, generic or not, of what each lane has for itself
_GAP = 1 << 16  # bytes of nothing between two arrays: an overrun never reaches a neighbour


@dataclass
class _Array:
    start: int
    end: int
    data: np.ndarray  # flat uint8 view of the host array
    name: str
    writable: bool
    owner: object = None  # keeps memory alive that ``data`` only borrows


class GlobalMemory:
    """Device memory made of host arrays. The kernel reads and writes them in place; no copies."""

    def __init__(self):
        self._arrays: list[_Array] = []
        self._next = GLOBAL_BASE

    def bind(self, array: np.ndarray, name: str = "", *, writable: bool = False, owner=None) -> int:
        """Give a C-contiguous array a device address (a multiple of 256) and return it.

        ``owner``: what the array's memory belongs to, if the array itself does not keep it alive.
        """
        if not array.flags.c_contiguous:
            raise MemoryFault(f"array {name!r} is not contiguous: bind a contiguous view of its memory")
        if writable and not array.flags.writeable:
            raise MemoryFault(f"array {name!r} is read-only but was to be bound writable")
        data = array.reshape(-1).view(np.uint8)
        start = self._next
        self._arrays.append(
            _Array(start, start + data.size, data, name or f"array {len(self._arrays)}", writable, owner)
        )
        self._next = (start + data.size + _GAP + 255) // 256 * 256
        return start

    def table(self) -> np.ndarray:
        """Return (start, bytes, host address, writable) of every array, for compiled code."""
        rows = [(a.start, a.data.size, a.data.ctypes.data, a.writable) for a in self._arrays]
        return np.array(rows, np.uint64).reshape(-1, 4)

    def writable_arrays(self) -> list:
        """Return the arrays that a kernel may write; their ``data`` may be exchanged for other memory."""
        return [array for array in self._arrays if array.writable]

    def sizes(self) -> list[int]:
        """Return the bytes of each bound array."""
        return [array.data.size for array in self._arrays]

    def snapshot(self) -> dict[int, np.ndarray]:
        """Return copies of all writable arrays, by address."""
        return {array.start: array.data.copy() for array in self._arrays if array.writable}

    def restore(self, snapshot: dict[int, np.ndarray]) -> None:
        """Put a snapshot's contents back."""
        for array in self._arrays:
            if array.start in snapshot:
                array.data[...] = snapshot[array.start]

    def find(self, low: int, high: int, what: str, *, write: bool = False) -> tuple[np.ndarray, int]:
        """Return (bytes, offset of ``low``) of the array that holds [low, high).

        Raises
        ------
        MemoryFault
            If no single array does, or a read-only one would be written; names the nearest array.
        """
        i = bisect_right([a.start for a in self._arrays], low) - 1
        array = self._arrays[i] if i >= 0 else None
        if array is None or high > array.end:
            raise MemoryFault(
                f"{what}: global address {low:#x}..{high:#x} is in no bound array{self._nearest(low)}"
            )
        if write and not array.writable:
            raise MemoryFault(f"{what}: writes to {array.name!r}, which is bound read-only")
        return array.data, low - array.start

    def _nearest(self, address: int) -> str:
        if not self._arrays:
            return " (none is bound)"
        distance = lambda a: min(abs(address - a.start), abs(address - a.end))
        near = min(self._arrays, key=distance)
        if near.start <= address < near.end:
            side = f"it begins {near.end - address} bytes before the end"
        elif address >= near.end:
            side = f"{address - near.end} bytes past the end"
        else:
            side = f"{near.start - address} bytes before"
        return f"; nearest is {near.name!r} at {near.start:#x}..{near.end:#x}: {side}"
