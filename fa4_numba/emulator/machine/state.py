"""Where a warp's state lies: one buffer with a header, the lane mask and a row of 32 lanes per register.

Both engines use it: the interpreter through numpy views, compiled code through byte offsets.
"""

from dataclasses import dataclass

import numpy as np

LANES = 32
ROW_DTYPE = {1: np.dtype(np.bool_), 16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}
ROW_DTYPE[128] = np.dtype((np.uint64, 2))
COST_COUNTERS = 8
HEADER = np.dtype(
    [
        ("pc", np.int64),  # the piece of the program that runs next
        ("budget", np.int64),  # pieces that may still run before the next warp's turn
        ("executed", np.int64),  # warp-instructions
        ("lanes_executed", np.int64),
        ("active", np.int64),  # lanes in the mask
        ("meeting", np.int64),  # pc at which the current path of a divergence ends, or -1
        ("cautious", np.int64),  # what somebody watches, so that the machine must do it: bits below
        ("shared", np.uint64),  # host address of the CTA's shared memory …
        ("shared_bytes", np.int64),
        (
            "barriers",
            np.uint64,
        ),  # host address of the cluster's table of mbarriers, the CTAs' parts one after the other
        ("shared_pitch", np.int64),  # bytes of shared memory from one CTA of the cluster to the next
        ("cluster_size", np.int64),
        ("warp", np.int64),  # number in the cluster
        ("shared_low", np.int64),  # … and its first address: the CTA's rank from bit 24 up
        ("tmem", np.uint64),  # host address of tensor memory, the warp's first lane, …
        ("tmem_lane", np.int64),
        ("tmem_allocated", np.uint64),  # … and host address of a bit per 32 allocated columns
        (
            "globals",
            np.uint64,
        ),  # host address of the table of bound arrays: start, bytes, host address, writable
        ("global_count", np.int64),
        ("params", np.uint64),  # host address of the parameters
        ("param_bytes", np.int64),
        ("costs", np.int64, (COST_COUNTERS,)),  # what the timing model counts, where there is one
    ],
    align=True,
)
WATCH_ACCESSES, WATCH_SIGNALS, WATCH_TMEM_STORES, WATCH_STAGES = 1, 2, 4, 8
_ALIGN = 64


@dataclass(frozen=True)
class StateLayout:
    """Byte offsets in the buffer for an entry with ``counts[width]`` registers and some special registers."""

    counts: dict[int, int]
    specials: tuple[str, ...]

    @property
    def mask(self) -> int:
        return -(-HEADER.itemsize // _ALIGN) * _ALIGN

    def rows(self, width: int) -> int:
        """Return the offset of the first row of the registers of a width."""
        at = self.mask + _ALIGN
        for other in (1, 16, 32, 64, 128):
            if other == width:
                return at
            at += -(-self.counts.get(other, 0) * row_bytes(other) // _ALIGN) * _ALIGN
        raise ValueError(width)

    def register(self, width: int, index: int) -> int:
        return self.rows(width) + index * row_bytes(width)

    def special(self, name: str) -> int:
        """Return the offset of a special register's row (64-bit lanes)."""
        return self.register(128, self.counts.get(128, 0)) + self.specials.index(name) * row_bytes(64)

    @property
    def size(self) -> int:
        return self.register(128, self.counts.get(128, 0)) + len(self.specials) * row_bytes(64)


def row_bytes(width: int) -> int:
    """Return the bytes of one register of all lanes."""
    return ROW_DTYPE[width].itemsize * LANES


def aligned_buffer(size: int) -> np.ndarray:
    """Return zeroed bytes at an address that is a multiple of 64."""
    raw = np.zeros(size + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + size]
