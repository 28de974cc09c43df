"""wgmma: a warpgroup multiplies 64 rows of A, in shared memory or registers, by B in shared memory, asynchronously.

Each of the four warps holds 16 rows of D (and of A, if in registers) in the fragment layout of mma. A warp's part is
issued on its own, and lands at the latest when the warp waits for its group; until then its registers hold the old D.
"""

import re
from dataclasses import dataclass

import numpy as np

from ...errors import Hazard
from ...layout import Major
from ..machine.waiting import GroupWait
from ..ptx.module import Vector
from .accumulate import FP8, FULL, multiply, multiply_integers
from .matrix_fragments import factor_places, sum_places
from .mma_operands import operand_pieces
from .mma_sync import DTYPE, elements
from .registry import effect, vector_items
from .tensor_core import whole_warp

_ROWS = 16  # of A and D, in each warp
_STEP_BYTES = 32  # of a row along K
_PAGE_PIECES = 64


@dataclass(frozen=True)
class _Form:
    n: int
    d: str
    a: str
    b: str
    negate: tuple[bool, bool]
    majors: tuple[Major, Major]
    saturate: bool


def _form(ins, from_registers: bool) -> _Form:
    """Read shape, types, signs and majors; A in registers has no major."""
    n = int(re.search(r"\.m64n(\d+)k", ins.op)[1])
    kinds = [p for p in ins.parts if p in DTYPE]
    if len(kinds) != 3 or "sp" in ins.parts:
        raise ValueError("only dense multiplies of f16, bf16, tf32, e4m3, e5m2, s8 and u8")
    immediates = [int(a.value) for a in ins.args[4:]]
    signs = (1, 1) if kinds[0] == "s32" else (immediates.pop(0), immediates.pop(0))
    majors = [Major(code) for code in immediates] or [Major.K, Major.K]
    if from_registers and len(majors) == 1:
        majors.insert(0, Major.K)
    return _Form(n, *kinds, tuple(s < 0 for s in signs), tuple(majors), ins.has("satfinite"))


@effect("wgmma.mma_async")
def multiply_async(warp, ins):
    """D = A·B (+ D if scale-d); A and B may be negated, and either may be MN-major in shared memory if 16 bits wide."""
    from_registers = isinstance(ins.args[1], Vector)
    form = _form(ins, from_registers)
    rows = [warp.row(r) for r in vector_items(ins.args[0])]
    accumulates = warp.source(ins.args[3], np.bool_)
    right = warp.scalar(ins.args[2], np.uint64)
    left = (
        [warp.row(r) for r in vector_items(ins.args[1])]
        if from_registers
        else warp.scalar(ins.args[1], np.uint64)
    )
    result, cta = _Sum(rows, form.d), warp.cta

    def run():
        whole_warp(warp, ins)
        what = warp.where(ins)
        if cta.machine.threads < 128 * (warp.index // 4 + 1):
            raise Hazard(
                f"{what}: wgmma needs a whole warpgroup, 4 warps of which the first has a number divisible by 4"
            )
        add, b_descriptor = bool(accumulates[warp.any_lane]), right()
        a = _from_registers(left, form.a) if from_registers else left()
        group = warp.multiply_groups.begin()

        def land():
            a_values = (
                a if from_registers else _shared(cta, a, form.majors[0], 64, form.a, what, warp.index % 4)
            )
            b_values = _shared(cta, b_descriptor, form.majors[1], form.n, form.b, what)
            result.write(
                _product(form, a_values, b_values, result.read() if add else np.zeros_like(result.matrix))
            )
            warp.multiply_groups.end(group)
            cta.event("MMA", f"wgmma of warp {warp.index}")

        cta.issue(("wgmma", warp.index), land, what)

    return run


def _product(form: _Form, a, b, c) -> np.ndarray:
    if form.d == "s32":
        return multiply_integers(a, b, c, form.saturate)
    a, b = (-x if negative else x for x, negative in zip((a, b), form.negate))
    return multiply(a, b, c, (form.a, form.b), FP8 if form.a in ("e4m3", "e5m2") else FULL)


def _from_registers(registers, kind: str) -> np.ndarray:
    """Return a warp's 16 rows of A as they are now."""
    words = np.empty((_ROWS, _STEP_BYTES // 4), np.uint32)
    for register, place in zip(registers, factor_places(4, _ROWS)):
        words[place] = register
    return elements(words, kind)


def _shared(
    cta, descriptor: int, major: Major, rows: int, kind: str, what, part: int | None = None
) -> np.ndarray:
    """Return an operand in shared memory as (rows, K); ``part``: only that quarter of the rows."""
    dtype = np.dtype(DTYPE[kind])
    k_major = major is Major.K
    depth = _STEP_BYTES // dtype.itemsize
    page = descriptor & 0x3FFF & ~(_PAGE_PIECES - 1)
    row_bytes = _STEP_BYTES if k_major else rows * dtype.itemsize
    pieces, low, high = operand_pieces(descriptor - page, k_major, rows, row_bytes, depth)
    cta.touch_pieces(pieces, page, page + low, page + high, what)
    if k_major and part is not None:
        pieces = pieces[_ROWS * part : _ROWS * (part + 1)]
    words = cta.shared128[page + pieces].view(np.uint32)
    values = elements(words, kind)
    if k_major:
        return values
    return values.T if part is None else values.T[_ROWS * part : _ROWS * (part + 1)]


class _Sum:
    """A warp's 16 rows of D: two columns side by side in a lane, eight rows further the next two, eight columns on …"""

    def __init__(self, registers, kind: str):
        self.registers, dtype = registers, np.dtype(DTYPE[kind])
        self.each = 4 // dtype.itemsize
        row, column = (np.array(axis) for axis in zip(*sum_places(len(registers), self.each)))
        self.row, self.column = row, column
        self.matrix = np.zeros((_ROWS, 2 * len(registers) * self.each), dtype)

    def _lanes(self) -> list[np.ndarray]:
        """Return each register's elements as views: (element, lane) in the order of the places."""
        dtype = self.matrix.dtype
        return [register.view(dtype)[e :: self.each] for register in self.registers for e in range(self.each)]

    def read(self) -> np.ndarray:
        matrix = np.empty_like(self.matrix)
        matrix[self.row, self.column] = np.stack(self._lanes())
        return matrix

    def write(self, matrix: np.ndarray) -> None:
        for lanes, values in zip(self._lanes(), matrix[self.row, self.column]):
            lanes[...] = values


@effect("wgmma.commit_group")
def commit_group(warp, ins):
    """Close the current group of multiplies."""
    return lambda: warp.multiply_groups.commit()


@effect("wgmma.wait_group")
def wait_group(warp, ins):
    """Wait until at most the newest n groups are incomplete."""

    def run():
        wait = GroupWait(warp.multiply_groups, int(ins.args[0].value))
        return None if wait.ready() else wait

    return run


@effect("wgmma.fence")
def fence(warp, ins):
    """Order the warp's register accesses before its multiplies: here they are in program order."""
    return lambda: whole_warp(warp, ins)
