"""From one CTA to a whole kernel: how many run at once, in how many waves, and what the whole GPU's memory allows."""

from dataclasses import dataclass

from ...hw import SM_100A

_THREADS_PER_SM, _CTAS_PER_SM, _SYSTEM_BYTES = 2048, 32, 1024
_SHARED_UNITS = (
    "issue slots",
    "FMA",
    "ALU",
    "MUFU",
    "shared memory",
    "TMEM",
    "L2 port",
    "tensor core",
    "TMA load",
    "TMA store",
)


@dataclass(frozen=True)
class KernelTime:
    """The model's time of a launch, in cycles: the largest of what the SMs, the L2 cache and the memory need."""

    sm: float
    l2: float
    hbm: float
    waves: int
    ctas_per_sm: int

    @property
    def cycles(self) -> float:
        return max(self.sm, self.l2, self.hbm)

    @property
    def bound(self) -> str:
        return {self.sm: "SM", self.l2: "L2", self.hbm: "HBM"}[self.cycles]


def ctas_per_sm(machine) -> int:
    """Return how many CTAs an SM holds, by threads and shared memory. (PTX does not say how many registers they take.)"""
    shared = machine.shared_bytes + _SYSTEM_BYTES
    return max(1, min(_THREADS_PER_SM // machine.threads, SM_100A.smem_bytes_per_sm // shared, _CTAS_PER_SM))


def kernel_time(machine, resident: int | None = None, clock_ghz: float | None = None) -> KernelTime:
    """Return the time of the machine's whole grid, from the clusters that have run: they are taken to be typical.

    CTAs of one SM are assumed to overlap perfectly: together they take as long as one alone, or as the unit that they
    share needs for all. Memory: each array is counted once, however often L2 serves it.
    """
    timing, arch = machine.timing, machine.timing.arch
    resident = resident or ctas_per_sm(machine)
    records = [record for record in timing.clusters if record.cycles]
    alone = sum(record.cycles for record in records) / len(records)
    busiest = max(timing.utilisation(records[-1]).get(name, 0.0) for name in _SHARED_UNITS)
    at_once = min(resident, -(-machine.ctas // arch.sms))
    waves = -(-machine.ctas // (arch.sms * at_once))
    sm = waves * alone * max(1.0, at_once * busiest)
    moved = sum(map(timing.bytes_moved, records)) / len(records) * machine.total_clusters
    once = min(moved, sum(machine.memory.sizes()))
    return KernelTime(
        sm,
        moved / arch.l2_bytes_per_cycle,
        once / arch.hbm_bytes_per_ns * (clock_ghz or arch.clock_ghz),
        waves,
        at_once,
    )
