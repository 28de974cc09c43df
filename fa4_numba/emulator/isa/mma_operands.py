"""Operands of ``tcgen05.mma``: gathered from shared or tensor memory, as f32 matrices."""

from functools import lru_cache

import numpy as np

from ...errors import Hazard
from ...layout import DataPath, Major, SmemDesc, operand_byte_address, split_tmem_address
from .mma_elements import STEP_BYTES, Element, Narrow

STEPS = 8  # multiplies along K that are done as one, at most
_START = 0x3FFF  # bits of a descriptor that hold the start address, in 16-byte pieces
_PAGE_PIECES = 64  # swizzles repeat every 1024 bytes


@lru_cache(maxsize=4096)
def operand_pieces(descriptor: int, k_major: bool, rows: int, row_bytes: int, depth: int):
    """Return (16-byte pieces of an operand, the lowest, the highest), relative to the page of the start address.

    ``descriptor``: with the start address's place in its 1024-byte page. K-major: (rows, pieces along K), else
    (depth, pieces along the rows).
    """
    desc = SmemDesc.unpack(descriptor)
    if desc.base_offset or desc.lbo_mode:
        raise Hazard(f"{desc.explain()}\nbase offset and absolute LBO mode are not implemented")
    along = np.arange(0, row_bytes, 16)[None, :]
    if k_major:
        address = operand_byte_address(desc, Major.K, np.arange(rows)[:, None], along)
    else:
        address = operand_byte_address(desc, Major.MN, along, np.arange(depth)[:, None])
    pieces = (address >> 4).astype(np.intp)
    return pieces, int(pieces.min()), int(pieces.max())


def gather(cta, descriptor: int, rows: int, row_bytes: int, what) -> np.ndarray:
    """Return a K-major matrix in shared memory as uint16 words (rows, words)."""
    page, pieces = _touch(cta, descriptor, True, rows, row_bytes, rows, what)
    return cta.shared128[page:].take(pieces, mode="clip").view(np.uint16)


def _touch(cta, descriptor: int, k_major: bool, rows: int, row_bytes: int, depth: int, what):
    """Return (page of the start address, pieces relative to it) of an operand that is read now."""
    page = descriptor & _START & ~(_PAGE_PIECES - 1)
    pieces, low, high = operand_pieces(descriptor - page, k_major, rows, row_bytes, depth)
    cta.touch_pieces(pieces, page, page + low, page + high, what)
    return page, pieces


class SharedOperand:
    """Rows of A, or columns of B, in the shared memory of one CTA."""

    def __init__(self, element: Element, major: Major, rows: int):
        self.element, self.rows, self.k_major = element, rows, major is Major.K
        if not self.k_major and element.bits * rows % 128:
            raise Hazard(
                f"an MN-major operand of {rows} rows of {element.bits} bits is no whole number of 16 bytes"
            )
        if not self.k_major and (isinstance(element, Narrow) or element.bits == 4):
            raise Hazard(f"type {element.name} must be K-major in shared memory")
        self.row_bytes = STEP_BYTES if self.k_major else rows * element.bits // 8
        self.depth = element.per_step
        shape = (rows if self.k_major else self.depth, self.row_bytes // 16)
        self.raw = np.empty((STEPS, *shape), np.complex128)  # 16-byte pieces
        self.words = self.raw.view(np.uint16)

    def fetch(self, step: int, cta, descriptor: int, what) -> None:
        """Gather the operand of one multiply."""
        page, pieces = _touch(cta, descriptor, self.k_major, self.rows, self.row_bytes, self.depth, what)
        cta.shared128[page:].take(pieces, out=self.raw[step], mode="clip")

    def matrix(self, steps: int) -> np.ndarray:
        """Return the operands of the first ``steps`` multiplies side by side: f32 (rows, K)."""
        words = self.words[:steps]
        if isinstance(self.element, Narrow):
            words = self.element.unpack(words)
        if self.k_major:
            return self.element.values(words.transpose(1, 0, 2)).reshape(self.rows, -1)
        return self.element.values(words).reshape(-1, self.rows).T


class TmemOperand:
    """A in tensor memory: a row's consecutive elements in consecutive bits of a lane.

    Where columns of D are split over lanes, each part reads the copy of A on its own lanes: ``rows`` counts all.
    """

    def __init__(self, element: Element, path: DataPath):
        self.element, self.path = element, path
        self.rows = path.rows * path.parts
        self.cells = STEP_BYTES // 4
        self.raw = np.empty((STEPS, self.rows, self.cells), np.uint32)
        self.words = self.raw.view(np.uint16)

    def fetch(self, step: int, cta, address: int, what) -> None:
        """Read the cells of one multiply."""
        lane, col = split_tmem_address(address)
        cta.touch_tmem(self.path.lanes(lane), col, self.cells, what)
        if self.path is DataPath.HALF:
            block = self.path.block(cta.tmem, 0, lane, col, self.cells)
            self.raw[step].reshape(block.shape)[...] = block
        else:
            self.raw[step] = cta.tmem[: self.rows, col : col + self.cells]

    def matrix(self, steps: int) -> np.ndarray:
        """Return the operands of the first ``steps`` multiplies side by side: f32 (rows, K)."""
        return self.element.values(self.words[:steps].transpose(1, 0, 2)).reshape(self.rows, -1)
