"""A program as a flat list of pieces, which both engines run: arithmetic, effects and branches."""

from dataclasses import dataclass

from ..ptx.blocks import EXIT, Block
from ..ptx.module import Instruction, Special

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
    """Return the special registers that arithmetic reads, in order of appearance."""
    found = {}
    for piece in pieces:
        if piece.kind == "alu":
            for ins in piece.instructions:
                found |= {operand.name: None for operand, _ in ins.alu.src if isinstance(operand, Special)}
    return tuple(found)
