"""Asynchronous units: each does its work in order, and says when it lands."""

import re
from collections import defaultdict, deque

from .report import UnitSlice

_STEP_BYTES = 32  # depth of one tensor-core instruction
_SHARED_RATE = 128  # bytes of shared memory per cycle


class Units:
    """When each unit of the cluster's CTAs is free."""

    def __init__(self, clock):
        self.clock, self.arch = clock, clock.arch
        self.free: dict[tuple, float] = defaultdict(float)
        self.queues: dict[tuple, dict[int, deque]] = defaultdict(dict)  # tensor core → warp → its multiplies
        self.working: set[tuple] = set()  # tensor cores at work

    def take(self, cta, unit, what, amount, land) -> None:
        """Take on work that is handed over now: ``land`` will be called at its time."""
        name = unit if isinstance(unit, str) else unit[0]
        if name == "wgmma":
            self._warp_multiply(cta.rank, unit[1], what, land)
        else:
            self.clock.at(self._landing(cta, name, what, amount), land)

    def _landing(self, cta, name: str, what, amount) -> float:
        """Return when work lands, of units that do theirs in order."""
        arch, rank = self.arch, cta.rank
        if name == "tensor core":
            return self._multiply(cta, amount)
        if name in ("tma store", "bulk store"):
            return self._take(rank, "TMA store", amount / arch.store_rate, what, amount) + arch.store_latency
        if name in ("tma", "bulk"):
            cycles = max(amount / arch.tma_rate, arch.tma_box)
            return self._take(rank, "TMA load", cycles, what, amount) + arch.tma_latency
        if name == "cp.async":
            return self._take(rank, "cp.async", amount / arch.l2_port, what, amount) + arch.l2_latency
        return self.clock.now + arch.wake["ClusterWait"]

    def _take(
        self, rank: int, unit: str, cycles: float, what, size: int = 0, since: float | None = None
    ) -> float:
        """Let a unit work; return when it is done."""
        now = self.clock.now if since is None else since
        begin = max(now, self.free[rank, unit])
        end = self.free[rank, unit] = begin + cycles
        self.clock.record.units.append(UnitSlice(rank, unit, begin, end, str(what), size))
        return end

    def _multiply(self, cta, work) -> float:
        """tcgen05 work: (instructions' N, whether A is in shared memory, CTAs, time of the first issue), or a commit."""
        if not work:
            return max(self.clock.now, self.free[cta.rank, "tensor core"]) + self.arch.mma_latency
        columns, shared_a, ranks, since, label = work
        cycles = sum(self._cycles(n, shared_a) for n in columns)
        end = max(self._take(rank, "tensor core", cycles, label, since=since) for rank in ranks)
        for rank in ranks:
            self.free[rank, "tensor core"] = end
        return end

    def _warp_multiply(self, rank: int, warp: int, what, land) -> None:
        """A warp's quarter of a wgmma waits for the tensor core of its sub-core, which serves its warps in turn."""
        columns = int(re.search(r"n(\d+)k", what.ins.op)[1])
        cycles = self._cycles(columns, "{" not in what.ins.text.split("},", 1)[-1])
        core = rank, warp % 4
        self.queues[core].setdefault(warp, deque()).append((cycles, f"n{columns} of warp {warp}", land))
        if core not in self.working:
            self._next_multiply(core)

    def full(self, warp) -> bool:
        """Return whether the warp's next instruction must wait: its tensor core has taken all it takes of a warp."""
        queues = self.queues.get((warp.cta.rank, warp.index % 4))
        return bool(queues) and len(queues.get(warp.index, ())) >= self.arch.mma_queue

    def _next_multiply(self, core: tuple) -> None:
        """Start the oldest multiply of the warp whose turn it is."""
        queues = self.queues[core]
        if not queues:
            self.working.discard(core)
            return
        self.working.add(core)
        warp = next(iter(queues))
        queue = queues.pop(warp)
        cycles, what, land = queue.popleft()
        if queue:
            queues[warp] = queue  # behind the others
        end = self._take(core[0], f"tensor core {core[1]}", cycles, what)
        self.clock.at(end, lambda: self._next_multiply(core))
        self.clock.at(end + self.arch.mma_latency, land)

    def _cycles(self, columns: int, shared_a: bool) -> float:
        """Cycles of one instruction: its columns, or reading its operands from shared memory."""
        reads = columns * _STEP_BYTES / _SHARED_RATE
        if shared_a:
            reads += self.arch.mma_rows * _STEP_BYTES / _SHARED_RATE
        return max(columns / self.arch.mma_width, reads)
