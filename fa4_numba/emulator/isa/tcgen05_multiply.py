"""What ``tcgen05.mma`` computes: D = A·B (+ D), with every data path, data type and modifier."""

import numpy as np

from ...errors import Hazard
from ...layout import DataPath, split_tmem_address
from .mma_elements import ELEMENTS
from .mma_operands import STEPS, SharedOperand, TmemOperand


class Multiply:
    """One kind of multiply: what the opcode and the instruction descriptor say. It is bound to nothing.

    Products are exact and sums are f32, in BLAS order (the hardware's order is not specified); f16 accumulators are
    rounded once a multiply, integers are exact.
    """

    def __init__(self, desc, group: int, *, from_tmem: bool, weight_stationary: bool = False, scales=None):
        self.desc, self.group, self.from_tmem, self.scales = desc, group, from_tmem, scales
        self.weight_stationary = weight_stationary
        self.path = DataPath.of(desc.m, group, weight_stationary=weight_stationary)
        packed = " packed" if desc.kind in ("mxf4", "mxf4nvf4") else ""
        a_type, b_type = ELEMENTS[desc.a_type + packed], ELEMENTS[desc.b_type + packed]
        if from_tmem:
            self.left = [TmemOperand(a_type, self.path) for _ in range(group)]
        else:
            self.left = [SharedOperand(a_type, desc.a_major, self.path.rows) for _ in range(group)]
        # of a pair each CTA has half of B's columns
        self.right = [SharedOperand(b_type, desc.b_major, desc.n // group) for _ in range(group)]
        self.columns = self.path.columns(desc.n)
        self.negate = desc.negate_a != desc.negate_b
        self.steps = STEPS if desc.d_type == "f32" or (desc.d_type == "s32" and not desc.saturate) else 1

    def run(self, ctas: list, d: int, operands: list, add: bool, scale_d: int, disabled) -> None:
        """Execute multiplies that accumulate into the same D.

        Parameters
        ----------
        ctas : list
            The CTA, or both of a pair.
        d : int
            TMEM address of D.
        operands : list of (a, b, place)
            Of each multiply: descriptors (or the TMEM address of A), and where it was issued.
        add : bool
            Whether the first one adds to D: to D · 2^−scale_d.
        disabled : bool array (CTA, lane) or None
            Lanes of D that stay as they are.
        """
        steps = len(operands)
        for step, (a, b, what, *_) in enumerate(operands):
            for i, cta in enumerate(ctas):
                self.left[i].fetch(step, cta, a, what)
                self.right[i].fetch(step, cta, b, what)
        rights = [operand.matrix(steps) for operand in self.right]
        lefts = [operand.matrix(steps) for operand in self.left]
        if self.scales is not None:
            self.scales.apply(ctas, operands, lefts, rights)
        what = operands[-1][2]
        lane, col = split_tmem_address(d)
        blocks = self._blocks(rights)
        for i, cta in enumerate(ctas):
            cta.touch_tmem(self.path.lanes(lane), col, self.columns, what, write=True)
            for part, right in enumerate(blocks):
                left = lefts[i]
                if self.from_tmem and self.path.splits_columns:
                    left = left[part * self.path.rows : (part + 1) * self.path.rows]
                target = self._target(cta, part, len(right), lane, col)
                keep = None if disabled is None else self._target_lanes(disabled[i], part, lane)
                if self.desc.d_type == "f32" and keep is None and not scale_d:
                    self._accumulate_in_turn(target, left, right, steps, add)
                else:
                    self._accumulate(target, left @ right.T, add, scale_d, keep)

    def _blocks(self, rights: list) -> list:
        """Return the columns of B in blocks: one for each part of the lanes, or for each CTA of a pair."""
        parts = self.path.parts
        if parts == len(rights) or parts == 1:
            return rights
        return np.split(rights[0], parts)

    def _target(self, cta, part: int, cols: int, lane: int, col: int) -> np.ndarray:
        if not self.path.splits_columns:
            col, part = col + part * cols, 0
        return self.path.block(cta.tmem, part, lane, col, cols)

    def _target_lanes(self, disabled: np.ndarray, part: int, lane: int) -> np.ndarray:
        part = part if self.path.splits_columns else 0
        return ~self.path.block(disabled[:, None], part, lane, 0, 1)

    def _accumulate_in_turn(self, target: np.ndarray, left, right, steps: int, add: bool) -> None:
        """Add the products of one multiply after the other, each sum rounded to f32: as if each were done by itself."""
        cells, depth = target.view(np.float32), left.shape[1] // steps
        total = cells.reshape(len(left), -1).copy() if add else None
        for first in range(0, left.shape[1], depth):
            product = left[:, first : first + depth] @ right[:, first : first + depth].T
            if self.negate:
                np.negative(product, out=product)
            total = product if total is None else np.add(total, product, out=total)
        cells[...] = total.reshape(cells.shape)

    def _accumulate(self, target: np.ndarray, product: np.ndarray, add: bool, scale_d: int, keep) -> None:
        """Put the product into D's cells."""
        if self.negate:
            np.negative(product, out=product)
        product = product.reshape(target.shape)
        if self.desc.d_type == "f32" and keep is None and not scale_d:
            cells = target.view(np.float32)
            if add:
                cells += product
            else:
                cells[...] = product
            return
        bits = _ACCUMULATE[self.desc.d_type](target, product, add, scale_d, self.desc.saturate)
        np.copyto(target, bits, where=True if keep is None else keep)


def _add_f32(target, product, add, scale_d, saturate):
    if add:
        product = product + target.view(np.float32) * np.float32(2.0**-scale_d)
    return product.view(np.uint32)


def _add_f16(target, product, add, scale_d, saturate):
    """f16 accumulators: the lower half of a cell, the upper half is zero."""
    if add:
        old = (target & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16)
        product = product + old.astype(np.float32) * np.float32(2.0**-scale_d)
    return product.astype(np.float16).view(np.uint16).astype(np.uint32)


def _add_s32(target, product, add, scale_d, saturate):
    total = product.astype(np.int64)
    if add:
        total = total + target.view(np.int32)
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32).view(np.uint32)


_ACCUMULATE = {"f32": _add_f32, "f16": _add_f16, "s32": _add_s32}


class Batch:
    """Multiplies into one D that were issued in a row: done as one, as late as their commit."""

    def __init__(self, multiply: Multiply, ctas: list, d: int, add: bool, scale_d: int, disabled):
        self.multiply, self.ctas, self.d = multiply, ctas, d
        self.add, self.scale_d, self.disabled = add, scale_d, disabled
        self.operands: list[tuple] = []
        self.since = ctas[0].machine.time

    def takes(self, multiply: Multiply, d: int, add: bool, scale_d: int, disabled) -> bool:
        """Return whether a further multiply can join."""
        return (
            multiply is self.multiply
            and d == self.d
            and add
            and not scale_d
            and not self.scale_d
            and disabled is None
            and self.disabled is None
            and len(self.operands) < multiply.steps
        )

    @property
    def what(self):
        """Where the last of them was issued."""
        return self.operands[-1][2]

    @property
    def amount(self) -> tuple:
        """What a clock asks: columns of each multiply, whether A is in shared memory, ranks, first issue, and a name."""
        multiply = self.multiply
        name = ("P V" if multiply.from_tmem else "Q K") + f" n{multiply.desc.n}"
        columns = [multiply.desc.n] * len(self.operands)
        return columns, not multiply.from_tmem, [cta.rank for cta in self.ctas], self.since, name

    def land(self) -> None:
        self.multiply.run(self.ctas, self.d, self.operands, self.add, self.scale_d, self.disabled)
        self.ctas[0].event("MMA", "P V" if self.multiply.from_tmem else "Q K")


def check_shape(multiply: Multiply, what) -> None:
    """Fault on an N that the data path does not take."""
    n = multiply.desc.n
    step = 64 if multiply.weight_stationary else 8 if multiply.path is DataPath.HALF else 16
    if n % step:
        raise Hazard(f"{what}: N = {n} must be a multiple of {step} here ({multiply.desc.explain()})")
