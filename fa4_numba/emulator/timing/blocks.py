"""Cycles of a program's pieces, worked out before it runs.

ptxas schedules a block well, so a stretch of it takes as long as the longest of: its issue slots, the cycles of its
busiest pipe, and its longest chain of dependent results. A piece is charged what it adds to that. Results that are
still on their way when a block ends are carried into the blocks that follow it, loops included.
"""

from collections import Counter

import numpy as np

from .arch import TimingArch
from .costs import Cost, cost_of

CYCLES, ISSUE, FMA, ALU, MUFU, SHARED, TMEM, BYTES = range(8)  # what a piece's cost counts
_PIPES = {"fma": FMA, "alu": ALU, "mufu": MUFU}
_ROUNDS = 4  # of carrying results along edges
_SUBCORE_WAVEFRONT = 2  # cycles of a wavefront of shared memory for one sub-core


def assign_costs(pieces: list, arch: TimingArch) -> None:
    """Set the ``cost`` of every piece."""
    heads = [pc for pc, piece in enumerate(pieces) if piece.head]
    blocks = {start: range(start, end) for start, end in zip(heads, [*heads[1:], len(pieces)])}
    costs = {
        start: {pc: [cost_of(ins, arch) for ins in pieces[pc].instructions] for pc in block}
        for start, block in blocks.items()
    }
    readers = Counter(
        r for block in costs.values() for some in block.values() for cost in some for r in cost.sources
    )
    for block in costs.values():
        _join(block, readers)
    arriving: dict[int, dict] = {start: {} for start in blocks}  # block → block before it → what is not ready
    for _ in range(_ROUNDS):
        for start, block in blocks.items():
            left = _walk(pieces, block, costs[start], _entry(start, arriving[start]), arch)
            branch = pieces[block[-1]]
            for target in {branch.taken, branch.following} & blocks.keys():
                if target > start or target == branch.following or _often_taken(pieces, block[-1]):
                    arriving[target][start] = left


def _entry(start: int, arriving: dict[int, dict]) -> dict:
    """Return what is not ready when a block begins: after another lap of its loop, if it is the head of one."""
    laps = [left for before, left in arriving.items() if before >= start]
    entry: dict = {}
    for left in laps or arriving.values():
        for register, cycles in left.items():
            entry[register] = max(entry.get(register, 0), cycles)
    return entry


def _join(costs: dict[int, list[Cost]], readers: Counter) -> None:
    """Make instructions free that become one with the only reader of their result, in a block."""
    places = [(pc, i) for pc, some in costs.items() for i in range(len(some))]
    flat, taken = [costs[pc][i] for pc, i in places], set()
    for k, cost in enumerate(flat):
        if cost.pairs is None or k in taken or not cost.slots or len(cost.targets) != 1:
            continue
        reader = _only_reader(cost.targets[0], flat, k + 1, readers)
        if reader is not None and flat[reader].pairs == cost.pairs:
            taken |= {k, reader}
            pc, i = places[k]
            costs[pc][i] = cost.freed()
            if flat[reader].pipe == "either":  # three inputs: no longer a multiply-add
                flat[reader].pipe = "alu"


def _only_reader(register, flat: list[Cost], first: int, readers: Counter) -> int | None:
    """Return which instruction of a block alone reads a register before it is overwritten, if ever."""
    found = None
    for j in range(first, len(flat)):
        if register in flat[j].sources:
            if found is not None:
                return None
            found = j
        if register in flat[j].targets:
            return found
    return found if readers[register] == 1 else None


class _Stretch:
    """Time in a block: ``base`` is where the present stretch began."""

    def __init__(self):
        self.base = self.path = 0.0
        self.sums = np.zeros(8)
        self.wavefronts = 0

    @property
    def now(self) -> float:
        busiest = max(
            self.sums[ISSUE : MUFU + 1].max(), self.sums[TMEM], _SUBCORE_WAVEFRONT * self.wavefronts
        )
        return max(self.base + busiest, self.path)

    def cut(self, at: float) -> None:
        self.base = self.path = at
        self.sums[:] = 0
        self.wavefronts = 0

    def add(self, cost: Cost, charge: np.ndarray) -> None:
        before = self.sums.copy()
        self.sums[ISSUE] += cost.slots
        pipe = _PIPES.get(cost.pipe)
        if cost.pipe == "either":
            pipe = ALU if self.sums[ALU] <= self.sums[FMA] else FMA
        if pipe is not None:
            self.sums[pipe] += cost.busy
        self.sums[TMEM] += cost.tmem
        self.sums[SHARED] += cost.shared
        self.sums[BYTES] += cost.bytes
        self.wavefronts += cost.shared
        charge += self.sums - before


def _walk(pieces: list, block: range, costs: dict, entry: dict, arch: TimingArch) -> dict:
    """Charge a block's pieces; return the registers that are not ready when it ends, and for how long."""
    ready, time, charged = dict(entry), _Stretch(), 0
    for pc in block:
        piece, charge = pieces[pc], np.zeros(8)
        for cost in costs[pc]:
            start = max([time.base, *(ready.get(r, 0.0) for r in cost.sources)])
            if cost.fence:
                start = max(start, time.now)
                time.cut(start)
            if piece.kind == "branch":
                start = max(start, time.now)
            if cost.slots:
                time.path = max(time.path, start + 1)
            for register in cost.targets:
                ready[register] = start + cost.latency
            time.add(cost, charge)
        if piece.kind == "branch" and costs[pc]:
            time.cut(time.now - 1 + (arch.taken_branch if _often_taken(pieces, pc) else 1))
        charge[CYCLES] = round(time.now) - charged
        charged = round(time.now)
        piece.cost = charge.astype(np.int64)
    return {register: cycles - charged for register, cycles in ready.items() if cycles > charged}


def _often_taken(pieces: list, pc: int) -> bool:
    """Guess a branch: loops go on, waits succeed, and what a guard skips is done."""
    branch = pieces[pc]
    if branch.instruction is None or branch.instruction.parts[0] != "bra":
        return False
    if branch.instruction.guard is None:
        return branch.following != pc + 1
    spins = any(
        "wait" in part
        for i in range(branch.taken, pc)
        for ins in pieces[i].instructions[:1]
        for part in ins.parts[:2]
    )
    return branch.taken <= pc and not (spins and pc - branch.taken < 8)
