"""Asynchronous units: each does its work in order, and says when it lands."""

import re
from collections import defaultdict

from .report import UnitSlice

_STEP_BYTES = 32  # depth of one tensor-core instruction
_SHARED_RATE = 128  # bytes of shared memory per cycle


class Units:
    """When each unit of the cluster's CTAs is free."""

    def __init__(self, clock):
        self.clock, self.arch = clock, clock.arch
        self.free: dict[tuple, float] = defaultdict(float)

    def landing(self, cta, unit, what, amount) -> float:
        """Return when work lands that is handed over now."""
        name = unit if isinstance(unit, str) else unit[0]
        arch, rank = self.arch, cta.rank
        if name == "tensor core":
            return self._multiply(cta, amount)
        if name == "wgmma":
            return self._warp_multiply(cta, unit[1], what)
        if name in ("tma store", "bulk store"):
            return self._take(rank, "TMA store", amount / arch.store_rate, what, amount) + arch.store_latency
        if name in ("tma", "bulk"):
            cycles = max(amount / arch.tma_rate, arch.tma_box)
            return self._take(rank, "TMA load", cycles, what, amount) + arch.tma_latency
        if name == "cp.async":
            return self._take(rank, "cp.async", amount / arch.l2_port, what, amount) + arch.l2_latency
        return self.clock.now + arch.wake["ClusterWait"]

    def _take(self, rank: int, unit: str, cycles: float, what, size: int = 0, since: float | None = None) -> float:
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

    def _warp_multiply(self, cta, warp: int, what) -> float:
        """A warp's quarter of a wgmma, on the tensor core of its sub-core."""
        columns = int(re.search(r"n(\d+)k", what.ins.op)[1])
        cycles = self._cycles(columns, "{" not in what.ins.text.split("},", 1)[-1])
        unit = f"tensor core {warp % 4}"
        return self._take(cta.rank, unit, cycles, f"n{columns}") + self.arch.mma_latency

    def _cycles(self, columns: int, shared_a: bool) -> float:
        """Cycles of one instruction: its columns, or reading its operands from shared memory."""
        reads = columns * _STEP_BYTES / _SHARED_RATE
        if shared_a:
            reads += self.arch.mma_rows * _STEP_BYTES / _SHARED_RATE
        return max(columns / self.arch.mma_width, reads)
