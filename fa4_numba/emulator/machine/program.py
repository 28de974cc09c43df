"""A program as a flat list of pieces, which both engines run: arithmetic, effects and branches."""

from dataclasses import dataclass

import numpy as np

from ..isa.registry import CLOCKS
from ..ptx.blocks import EXIT, Block
from ..ptx.module import Instruction, Special, Symbol

ENDED = -1  # pc after the last piece


@dataclass
class Piece:
    """Instructions that an engine runs in one go.

    ``kind``: "alu" (lane-wise instructions), "effect" (one instruction of the machine) or "branch" (the end of a
    block; its instruction is None where the block just goes on). ``taken``, ``following`` and ``meeting`` are pcs;
    ``head`` is true for the first piece of a block.
    """

    kind: str
    instructions: tuple[Instruction, ...]
    head: bool = False
    taken: int = ENDED
    following: int = ENDED
    meeting: int = ENDED
    cost: np.ndarray | None = None  # what the timing model counts each time it runs

    @property
    def instruction(self) -> Instruction | None:
        return self.instructions[0] if self.instructions else None

    @property
    def count(self) -> int:
        """Warp-instructions; markers are none."""
        return sum(ins.op != "//fa4" for ins in self.instructions)


def flatten(blocks: list[Block]) -> list[Piece]:
    """Cut blocks into pieces; a pc is an index of the result."""
    pieces, start = [], {EXIT: ENDED}
    for block in blocks:
        start[block.index] = len(pieces)
        pieces += _pieces_of(block)
    at = 0
    for block in blocks:
        at = start[block.index]
        pieces[at].head = True
        end = at
        while pieces[end].kind != "branch":
            end += 1
        branch = pieces[end]
        branch.taken, branch.following = start[block.taken], start[block.following]
        branch.meeting = start[block.reconverge]
    return pieces


def _pieces_of(block: Block) -> list[Piece]:
    pieces, run = [], []
    for ins in block.body:
        if ins.found[0] == "alu":
            run.append(ins)
            continue
        if run:
            pieces.append(Piece("alu", tuple(run)))
            run = []
        pieces.append(Piece("effect", (ins,)))
    if run:
        pieces.append(Piece("alu", tuple(run)))
    pieces.append(Piece("branch", () if block.branch is None else (block.branch,)))
    return pieces


def specials_of(pieces: list[Piece]) -> tuple[str, ...]:
    """Return what instructions read of a warp's surroundings: special registers, and ``&name`` for addresses."""
    found = {}
    for piece in pieces:
        for ins in piece.instructions:
            if piece.kind == "alu":
                operands = [operand for operand, _ in ins.alu.src]
            else:
                operands = [operand for operand in ins.args if isinstance(operand, Special)]
            found |= dict.fromkeys(special_name(operand) for operand in operands)
    found.pop(None, None)
    return tuple(name for name in found if name not in CLOCKS)


def special_name(operand) -> str | None:
    """Return the name of the row that holds an operand which depends on the warp and its CTA."""
    if isinstance(operand, Special):
        return operand.name
    return f"&{operand.name}" if isinstance(operand, Symbol) else None


def costs_text(pieces: list[Piece]) -> str:
    """Return what tells programs apart that count for the timing model in different ways."""
    return str([piece.cost.tolist() for piece in pieces if piece.cost is not None])
