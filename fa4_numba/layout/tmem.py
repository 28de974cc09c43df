"""Tensor memory: 128 lanes by 512 columns of 32-bit cells."""

from ..errors import ConfigError
from ..hw import SM_100A

LANES_PER_WARP = 32


def tmem_address(lane: int, col: int) -> int:
    """Return the 32-bit address of a cell: lane in bits 16–31, column in bits 0–15."""
    if not 0 <= lane < SM_100A.tmem_lanes or not 0 <= col < SM_100A.tmem_cols:
        raise ConfigError(f"tensor memory cell (lane {lane}, column {col}): lanes are 0-127, columns 0-511")
    return lane << 16 | col


def split_tmem_address(address: int) -> tuple[int, int]:
    """Return (lane, column)."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def warp_lanes(warp: int) -> range:
    """Return the lanes that a warp may access: the quarter given by its index in the warpgroup."""
    first = warp % 4 * LANES_PER_WARP
    return range(first, first + LANES_PER_WARP)


def accumulator_lane(m: int, row: int, cta_group: int = 1) -> int:
    """Return the lane that holds row ``row`` of a D tile with ``m`` rows.

    M = 128: lane = row. M = 64, one CTA: 16 rows in each quarter. M = 256 in a CTA pair: 128 rows per CTA.
    """
    if m == 64 and cta_group == 1:
        return row // 16 * 32 + row % 16
    return row % 128
