"""Basic blocks, and where diverged lanes meet again: the immediate post-dominator."""

from dataclasses import dataclass, field

from .module import Entry, Instruction

EXIT = -1  # the block after the last


@dataclass
class Block:
    """Instructions without a branch, then maybe one. ``reconverge`` is the block where its branch's paths meet."""

    index: int
    body: list[Instruction] = field(default_factory=list)
    branch: Instruction | None = None  # bra, ret or exit
    taken: int = EXIT
    following: int = EXIT
    reconverge: int = EXIT


def build_blocks(entry: Entry) -> list[Block]:
    """Cut the entry into basic blocks."""
    code = entry.instructions
    leaders = {0, len(code)}
    for i, ins in enumerate(code):
        if ins.parts[0] in ("bra", "ret", "exit"):
            leaders.add(i + 1)
            if ins.target is not None:
                leaders.add(ins.target)
    starts = sorted(leaders)
    block_of = {start: i for i, start in enumerate(starts[:-1])}
    blocks = []
    for i, (start, end) in enumerate(zip(starts, starts[1:])):
        block = Block(i, code[start:end], following=i + 1 if end < len(code) else EXIT)
        last = code[end - 1]
        if last.parts[0] in ("bra", "ret", "exit"):
            block.branch, block.body = last, code[start : end - 1]
            block.taken = block_of.get(last.target, EXIT) if last.parts[0] == "bra" else EXIT
            if last.guard is None:
                block.following = block.taken
        blocks.append(block)
    _post_dominators(blocks)
    return blocks


def _post_dominators(blocks: list[Block]) -> None:
    """Set ``reconverge`` of each block (iterative data flow over bit sets)."""
    n = len(blocks)
    everything = (1 << (n + 1)) - 1  # bit n stands for EXIT
    bit = lambda i: 1 << (n if i == EXIT else i)
    dominators = [everything] * n + [bit(EXIT)]
    successors = [
        {b.following, b.taken} if b.branch is not None and b.branch.guard is not None else {b.following}
        for b in blocks
    ]
    changed = True
    while changed:
        changed = False
        for i in range(n - 1, -1, -1):
            meet = everything
            for s in successors[i]:
                meet &= dominators[n if s == EXIT else s]
            new = meet | bit(i)
            if new != dominators[i]:
                dominators[i], changed = new, True
    for i, block in enumerate(blocks):
        candidates = dominators[i] & ~bit(i)
        # the nearest one is dominated by no other candidate: it has the largest set of post-dominators
        best, size = EXIT, -1
        for j in range(n):
            if candidates >> j & 1 and dominators[j].bit_count() > size:
                best, size = j, dominators[j].bit_count()
        block.reconverge = best
