"""Matrices spread over a warp's lanes: ldmatrix, stmatrix, movmatrix, and the fragments of mma.

An 8×8 matrix of 16-bit elements: lane t holds the elements 2·(t % 4) and 2·(t % 4) + 1 of row t / 4.
"""

import numpy as np

from ..machine.state import LANES
from .memory import addresses, resolve
from .registry import effect, vector_items
from .tensor_core import whole_warp

LANE = np.arange(LANES)
GROUP, MEMBER = LANE // 4, LANE % 4
ROW_BYTES = 16


def _matrices(ins) -> tuple[int, bool]:
    if "m8n8" not in ins.parts or ins.parts[-1] != "b16":
        raise ValueError("only 8x8 matrices of 16-bit elements")
    return int(next(p[1] for p in ins.parts if p in ("x1", "x2", "x4"))), ins.has("trans")


def _rows(warp, ins, where, count: int, write: bool):
    """Return (bytes, positions (count, 8, 16)): lane 8·i + r has the address of row r of matrix i."""
    whole_warp(warp, ins)
    data, at = resolve(warp, "shared", where()[: 8 * count], ROW_BYTES, warp.where(ins), write)
    return data, (at[:, None] + np.arange(ROW_BYTES)).reshape(count, 8, ROW_BYTES)


@effect("ldmatrix")
def load_matrix(warp, ins):
    """d[i] = a lane's part of matrix i in shared memory; ``.trans``: of its transpose."""
    count, transposed = _matrices(ins)
    targets, where = [warp.row(d) for d in vector_items(ins.args[0])], addresses(warp, ins.args[1])

    def run():
        data, at = _rows(warp, ins, where, count, False)
        for target, matrix in zip(targets, data[at].view(np.uint16)):
            target[...] = to_lanes(matrix.T if transposed else matrix)

    return run


@effect("stmatrix")
def store_matrix(warp, ins):
    """Matrix i in shared memory = what the lanes' b[i] hold; ``.trans``: its transpose."""
    count, transposed = _matrices(ins)
    where, sources = addresses(warp, ins.args[0]), [warp.row(b) for b in vector_items(ins.args[1])]

    def run():
        data, at = _rows(warp, ins, where, count, True)
        for source, place in zip(sources, at):
            matrix = from_lanes(source)
            data[place] = np.ascontiguousarray(matrix.T if transposed else matrix).view(np.uint8)

    return run


@effect("movmatrix")
def move_matrix(warp, ins):
    """d = the transpose of the matrix that the lanes' a hold."""
    target, source = warp.row(ins.args[0]), warp.row(ins.args[1])

    def run():
        whole_warp(warp, ins)
        target[...] = to_lanes(from_lanes(source).T)

    return run


def to_lanes(matrix: np.ndarray) -> np.ndarray:
    """Return the lanes' 32-bit words of an 8×8 matrix of 16-bit elements."""
    return np.ascontiguousarray(matrix).view(np.uint32).reshape(LANES)


def from_lanes(words: np.ndarray) -> np.ndarray:
    """Return the 8×8 matrix of 16-bit elements that lanes hold."""
    return np.ascontiguousarray(words).view(np.uint16).reshape(8, 8)


def factor_places(registers: int, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (row, word along K) of each lane, for every register of a factor: A with ``rows`` rows, or B with 8 columns.

    A factor of 16 rows alternates between the upper and lower 8; then come the next four words along K.
    """
    halves = rows // 8
    return [(GROUP + 8 * (i % halves), MEMBER + 4 * (i // halves)) for i in range(registers)]


def sum_places(registers: int, per_register: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (row, column) of each lane's elements of C and D: two columns side by side, eight rows further, eight columns on."""
    places = []
    for e in range(registers * per_register):
        places.append((GROUP + 8 * (e // 2 % 2), 2 * MEMBER + e % 2 + 8 * (e // 4)))
    return places
