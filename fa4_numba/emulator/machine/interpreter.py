"""The interpreter: one numpy call, or a few, per lane-wise instruction. The readable engine, and the other's measure."""

import numpy as np

from ..isa.registry import Alu
from ..ptx.module import Sink
from .program import Piece

EFFECT, DIVERGED, MET, ENDED, TURN_OVER, INTERPRET = range(6)  # why an engine came back


class Interpreter:
    """Runs a program's arithmetic and branches for one warp until the machine is needed."""

    def __init__(self, warp, pieces: list[Piece]):
        self.warp, self.pieces = warp, pieces
        self.bound: dict[int, list] = {}

    def advance(self) -> int:
        """Run from the warp's pc on; return why it stopped (the pc is that of the piece to deal with)."""
        state, pieces = self.warp.state, self.pieces
        pc = int(state["pc"])
        try:
            while True:
                if pc < 0:
                    return ENDED
                piece = pieces[pc]
                if piece.head and pc == state["meeting"]:
                    return MET
                if state["budget"] <= 0:
                    return TURN_OVER
                state["budget"] -= 1
                state["executed"] += piece.count
                state["lanes_executed"] += piece.count * int(state["active"])
                if piece.cost is not None:
                    state["costs"] += piece.cost
                if piece.kind == "effect":
                    return EFFECT
                if piece.kind == "alu":
                    for function in self.bound.get(pc) or self._bind(pc):
                        function()
                    pc += 1
                    continue
                following = self._branch(piece)
                if following is None:
                    return DIVERGED
                pc = following
        finally:
            state["pc"] = pc

    def interpret(self) -> None:
        """Run only the arithmetic at the warp's pc: what another engine leaves to this one."""
        pc = int(self.warp.state["pc"])
        for function in self.bound.get(pc) or self._bind(pc):
            function()
        self.warp.state["pc"] = pc + 1

    def _branch(self, piece: Piece) -> int | None:
        """Return where all active lanes go, or None if they part."""
        branch = piece.instruction
        if branch is None or (branch.guard is None and branch.parts[0] == "bra"):
            return piece.following
        if branch.guard is None:
            return None
        taken = self.warp.taken(branch)
        if not taken.any():
            return piece.following
        return piece.taken if branch.parts[0] == "bra" and (taken == self.warp.mask).all() else None

    def _bind(self, pc: int) -> list:
        functions = [bind(self.warp, ins) for ins in self.pieces[pc].instructions]
        self.bound[pc] = functions
        return functions


def bind(warp, ins):
    """Return a function that executes a lane-wise instruction for the warp's active lanes."""
    op: Alu = ins.alu
    sources = [_rows(warp, operand, dtype, op.pairs) for operand, dtype in op.src]
    targets = [
        (i, warp.destination(operand, np.uint64 if op.pairs else dtype))
        for i, (operand, dtype) in enumerate(op.dst)
        if not isinstance(operand, Sink)
    ]
    function, single = op.function, len(op.dst) == 1
    guard = None if ins.guard is None else warp.row(ins.guard)

    def run():
        where = warp.mask
        if guard is not None:
            where = where & (~guard if ins.negate else guard)
        elif warp.full:
            where = True
        result = function(*sources)
        for i, target in targets:
            value = result if single else result[i]
            if op.pairs:
                value = np.ascontiguousarray(value).view(np.uint64)
            np.copyto(target, value, where=where)

    return run


def _rows(warp, operand, dtype, pairs):
    rows = warp.source(operand, np.uint64 if pairs else dtype)
    return rows.view(dtype) if pairs else rows
