"""A cluster: CTAs that run at the same time, reach each other's shared memory, and meet at cluster barriers."""

from collections import deque

import numpy as np

from ...errors import Hazard, MemoryFault
from .barriers import MBARRIER_CELLS
from .cta import CTA
from .memory import RANK_SHIFT, WINDOW_BYTES
from .state import LANES
from .warp import Warp


class Cluster:
    """The CTAs of one cluster. Arrays and warps are reused by the next cluster: instructions stay bound to them.

    The shared memories of all CTAs lie in one array, ``pitch`` bytes apart, so that a shared::cluster address (rank
    from bit 24 up, offset below) is an index of it.
    """

    def __init__(self, machine, make_warp):
        self.machine = machine
        self.size = int(np.prod(machine.cluster))
        self.pitch = -(-machine.shared_bytes // 1024) * 1024
        self.shared = np.empty(self.size * self.pitch, np.uint8)
        self.ctas = [
            CTA(machine, self, rank, self.shared[rank * self.pitch : (rank + 1) * self.pitch])
            for rank in range(self.size)
        ]
        for cta in self.ctas:
            cta.warps = [make_warp(cta, i) for i in range(-(-machine.threads // LANES))]
        self.warps: list[Warp] = [warp for cta in self.ctas for warp in cta.warps]
        self.queues: dict[tuple, deque] = {}  # (rank, asynchronous unit) → its work, oldest first
        self.multiplies: dict[tuple, object] = {}  # kinds of matrix multiplies seen
        self.barrier_table = np.zeros((len(self.shared) // 8, MBARRIER_CELLS), np.int64)
        for cta in self.ctas:
            first = cta.rank * self.pitch // 8
            cta.barrier_table = self.barrier_table[first : first + self.pitch // 8]
        self.barrier = ClusterBarrier(self)

    def reset(self, number: int) -> None:
        """Start cluster ``number`` of the grid."""
        machine = self.machine
        shape, counts = machine.cluster, machine.clusters
        first = [
            size * index for size, index in zip(shape, coordinates(number, counts))
        ]  # its first CTA, as (x, y, z)
        self.queues.clear()
        for cta in self.ctas:
            cta.reset(tuple(f + i for f, i in zip(first, coordinates(cta.rank, shape))))
        for warp in self.warps:
            warp.reset()
        self.barrier.reset()
        if machine.checker is not None:
            machine.checker.start(self)

    def land_next(self, key: tuple) -> str:
        """Let the oldest work of a unit land."""
        queue = self.queues[key]
        land, what = queue.popleft()
        if not queue:
            del self.queues[key]
        land()
        return what

    def shared_positions(self, addresses: np.ndarray, size: int, what, *, write: bool) -> np.ndarray:
        """Return where shared::cluster addresses lie in ``self.shared``; ``size`` bytes are accessed at each."""
        offsets = addresses
        if self.size > 1:
            ranks, offsets = addresses >> RANK_SHIFT, addresses & (WINDOW_BYTES - 1)
            if ranks.max() >= self.size or ranks.min() < 0:
                raise MemoryFault(
                    f"{what}: shared address {int(addresses[np.argmax(ranks)]):#x} names CTA rank {int(ranks.max())}; "
                    f"the cluster has {self.size} CTAs"
                )
            for rank in np.unique(ranks):
                self.ctas[rank].touch_shared(offsets[ranks == rank], size, what, write=write)
            return ranks * self.pitch + offsets
        self.ctas[0].touch_shared(offsets, size, what, write=write)
        return offsets

    def where(self) -> str:
        """Return the CTAs by name, for messages."""
        first = self.ctas[0].index
        return f"CTA {first}" if self.size == 1 else f"the cluster of CTAs {first} to {self.ctas[-1].index}"


def coordinates(number: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return (x, y, z) of a linear index, x fastest."""
    x, y, _ = shape
    return number % x, number // x % y, number // (x * y)


class ClusterBarrier:
    """``barrier.cluster``: counts each thread's arrivals and waits.

    A thread's n-th wait ends when every thread that has not exited has arrived n times.
    """

    def __init__(self, cluster: Cluster):
        self.warps = cluster.warps
        self.arrivals = {warp: np.zeros(LANES, np.int64) for warp in self.warps}
        self.waits = {warp: np.zeros(LANES, np.int64) for warp in self.warps}

    def reset(self) -> None:
        self.changed()
        for table in (self.arrivals, self.waits):
            for counts in table.values():
                counts.fill(0)

    def arrive(self, warp) -> None:
        self.arrivals[warp][warp.mask] += 1
        self.changed()
        checker = warp.cta.machine.checker
        if checker is not None:
            checker.meets(warp, ("cluster", int(self.arrivals[warp][warp.mask].max())))

    def join(self, warp) -> int:
        """A warp waits: return how many arrivals of everybody it wants."""
        waits = self.waits[warp]
        waits[warp.mask] += 1
        wanted = int(waits[warp.mask].max())
        if wanted > self.arrivals[warp][warp.mask].min():
            raise Hazard(
                f"{warp.where()}: barrier.cluster.wait without an arrive before it: the hardware would wait for ever"
            )
        return wanted

    def changed(self) -> None:
        """Threads have arrived or exited."""
        self._completed = None

    def completed(self) -> int:
        """Return how often all threads that have not exited have arrived."""
        if self._completed is None:
            counts = [int(self.arrivals[warp][warp.live].min()) for warp in self.warps if not warp.done]
            self._completed = min(counts, default=1 << 62)
        return self._completed

    def missing(self, wanted: int) -> str:
        """Return which warps have not arrived ``wanted`` times."""
        late = [
            f"CTA {warp.cta.index} warp {warp.index} ({warp.role})"
            for warp in self.warps
            if not warp.done and self.arrivals[warp][warp.live].min() < wanted
        ]
        return ", ".join(late)
