"""Tensor memory: 128 lanes by 512 columns of 32-bit cells, and who finds what in them."""

from enum import Enum
from functools import cache

import numpy as np

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


# -- what a warp's registers hold ---------------------------------------------------------
_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}  # of a thread, at x1
MAX_REGISTERS = 128


def transfer_registers(shape: str, count: int) -> int:
    """Return how many registers of each thread ``tcgen05.ld/st.shape.xcount`` moves.

    Raises
    ------
    ConfigError
        For a shape or a count that the ISA does not have.
    """
    if shape not in _REGISTERS:
        raise ConfigError(f"tcgen05.ld/st shape {shape!r}: take one of {sorted(_REGISTERS)}")
    registers = _REGISTERS[shape] * count
    if count not in (1, 2, 4, 8, 16, 32, 64, 128) or registers > MAX_REGISTERS:
        raise ConfigError(
            f"tcgen05.ld/st.{shape}.x{count}: the count is a power of two, with at most {MAX_REGISTERS} registers"
        )
    return registers


@cache
def cells(shape: str, count: int, split: int = 0, packed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return which cell each register of each thread holds in ``tcgen05.ld/st.shape.xcount``.

    Parameters
    ----------
    shape : str
        "32x32b", "16x64b", "16x128b", "16x256b" or "16x32bx2".
    count : int
        The number after ``x``.
    split : int
        Of 16x32bx2: how many columns on the upper 16 threads start (``immHalfSplitoff``).
    packed : bool
        ``.pack::16b`` or ``.unpack::16b``: a register holds the low halves of two neighbouring columns, of which the
        first is returned.

    Returns
    -------
    lane, column : int arrays (register, thread), read-only
        Relative to the address's lane and column.

    Notes
    -----
    A row of a 16-lane shape is spread over threads as the rows of ``mma.sync`` fragments are: thread t has lane t/4
    and, in a second register, lane t/4 + 8; in 16x64b it is the thread's lowest bit that chooses between the two.
    """
    register = np.arange(transfer_registers(shape, count))[:, None]
    thread = np.arange(LANES_PER_WARP)[None, :]
    lane, column = {
        "32x32b": (thread, register),
        "16x32bx2": (thread % 16, register),
        "16x64b": (thread // 4 + thread % 2 * 8, 2 * register + thread // 2 % 2),
        "16x128b": (thread // 4 + register % 2 * 8, register // 2 * 4 + thread % 4),
        "16x256b": (
            thread // 4 + register // 2 % 2 * 8,
            register // 4 * 8 + thread % 4 * 2 + register % 2,
        ),
    }[shape]
    column = column * (2 if packed else 1)
    if shape == "16x32bx2":
        column = column + thread // 16 * split
    lane, column = (np.ascontiguousarray(a) for a in np.broadcast_arrays(lane, column))
    lane.flags.writeable = column.flags.writeable = False
    return lane, column


def copy_rows(shape: str, multicast: str | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Return where ``tcgen05.cp.shape.multicast`` puts rows of shared memory.

    Returns
    -------
    lane, row : int arrays
        Lane ``lane[i]`` gets row ``row[i]``; lanes count from the address's lane.
    row_bytes : int
    """
    rows, _, bits = shape.partition("x")
    lane = np.arange(128)
    row = {
        ("128x256b", None): lane,
        ("128x128b", None): lane,
        ("64x128b", "warpx2::02_13"): lane % 64,
        ("64x128b", "warpx2::01_23"): lane // 64 * 32 + lane % 32,
        ("32x128b", "warpx4"): lane % 32,
        ("4x256b", None): np.arange(4),
    }.get((shape, multicast))
    if row is None:
        raise ConfigError(f"tcgen05.cp.{shape} with multicast {multicast}: the ISA has no such copy")
    return lane if rows != "4" else 32 * row, row, int(bits[:-1]) // 8


# -- where a matrix multiply puts D, and finds A -------------------------------------------
class DataPath(Enum):
    """How an accumulator of one CTA lies on the 128 lanes; the value is (parts, used lanes of a part).

    FULL: 128 rows, lane = row. HALF: 64 rows, 16 on each quarter's lanes. PAIRS: 64 rows, the left half of the
    columns on lanes 0–63, the right half on 64–127. QUARTERS: 32 rows, a quarter of the columns on each 32 lanes.

    Source: PTX ISA, "Data Path Layout Organization": layouts A and D, C and F, B and E, G.
    """

    FULL = (1, 128)
    HALF = (4, 16)
    PAIRS = (2, 64)
    QUARTERS = (4, 32)

    @classmethod
    def of(cls, m: int, cta_group: int, *, weight_stationary: bool = False) -> "DataPath":
        """Return the data path of ``tcgen05.mma`` with a dense A of ``m`` rows (of both CTAs in a pair)."""
        paths = {(64, 1): cls.HALF, (128, 1): cls.FULL, (128, 2): cls.PAIRS, (256, 2): cls.FULL}
        if weight_stationary:
            paths = {(32, 1): cls.QUARTERS, (64, 1): cls.PAIRS, (128, 1): cls.FULL}
        if (m, cta_group) not in paths:
            raise ConfigError(
                f"M = {m} with cta_group::{cta_group}{' and .ws' if weight_stationary else ''}: "
                f"take M from {sorted(k for k, g in paths if g == cta_group) or 'cta_group::1 only'}"
            )
        return paths[m, cta_group]

    @property
    def splits_columns(self) -> bool:
        """Whether parts hold different columns of D (and each its own copy of A), not different rows."""
        return self in (DataPath.PAIRS, DataPath.QUARTERS)

    @property
    def parts(self) -> int:
        """How many blocks of columns lie on lanes of their own."""
        return self.value[0] if self.splits_columns else 1

    @property
    def rows(self) -> int:
        """Rows of D in one CTA."""
        parts, lanes = self.value
        return lanes if self.splits_columns else parts * lanes

    def columns(self, n: int) -> int:
        """Return how many TMEM columns an accumulator of ``n`` columns takes."""
        return n // self.parts

    def block(self, tmem: np.ndarray, part: int, lane: int, col: int, cols: int) -> np.ndarray:
        """Return the cells of one part as a view of ``tmem``: (rows, cols), for HALF (4, 16, cols).

        ``lane`` is the address's: 0, or 16 for the upper half of each quarter's lanes.
        """
        parts, lanes = self.value
        if self is DataPath.HALF:
            return tmem.reshape(parts, 32, -1)[:, lane % 32 : lane % 32 + lanes, col : col + cols]
        return tmem[part * lanes : (part + 1) * lanes, col : col + cols]

    def lanes(self, lane: int) -> np.ndarray | slice:
        """Return the lanes that an accumulator, or A, at the address's ``lane`` lies on."""
        if self is not DataPath.HALF:
            return slice(0, self.value[0] * self.value[1])
        return self.block(np.arange(128)[:, None], 0, lane, 0, 1).reshape(-1)


def accumulator_lane(m: int, row: int, cta_group: int = 1) -> int:
    """Return the lane (of its CTA) that holds row ``row`` of a D tile with ``m`` rows, in column 0."""
    path = DataPath.of(m, cta_group)
    return int(path.block(np.arange(128)[:, None], 0, 0, 0, 1).reshape(-1)[row % path.rows])
