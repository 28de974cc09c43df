"""mbarriers and named barriers."""

from dataclasses import dataclass, field

from ...errors import Hazard


@dataclass
class MBarrier:
    """An mbarrier: a phase completes when all arrivals and all announced bytes are in.

    ``phase`` counts completed phases; waiting for parity p succeeds once the phase with that parity has completed,
    that is while ``phase & 1 != p``.
    """

    address: int
    name: str
    expected: int
    pending: int = field(init=False)
    tx_bytes: int = 0
    phase: int = 0
    last_arrival: str = "nobody"

    def __post_init__(self):
        self.pending = self.expected

    def arrive(self, count: int, who: str) -> None:
        if count > self.pending:
            raise Hazard(
                f"{who} arrives {count}x on {self.name}, which awaits {self.pending} of {self.expected} arrivals in phase "
                f"{self.phase}; before that: {self.last_arrival}. Check the arrival count it was initialised with"
            )
        self.pending -= count
        self.last_arrival = who
        self._complete()

    def expect(self, tx_bytes: int) -> None:
        self.tx_bytes += tx_bytes

    def land(self, tx_bytes: int, who: str) -> None:
        """Asynchronous bytes have arrived."""
        self.tx_bytes -= tx_bytes
        self.last_arrival = who
        self._complete()

    def passed(self, parity: int) -> bool:
        """Return whether the phase of this parity has completed."""
        return self.phase & 1 != parity

    def _complete(self) -> None:
        if self.pending == 0 and self.tx_bytes == 0:
            self.phase += 1
            self.pending = self.expected

    def describe(self) -> str:
        return (
            f"{self.name} (shared {self.address:#x}): phase {self.phase} has {self.expected - self.pending} of "
            f"{self.expected} arrivals, {self.tx_bytes} bytes outstanding; last: {self.last_arrival}"
        )


@dataclass
class NamedBarrier:
    """A hardware barrier 0–15: releases everybody when ``threads`` threads have arrived."""

    number: int
    threads: int = 0
    arrived: int = 0
    generation: int = 0

    def arrive(self, threads: int, total: int, who: str) -> None:
        if self.arrived and total != self.threads:
            raise Hazard(f"{who} uses barrier {self.number} for {total} threads, others for {self.threads}")
        self.threads = total
        self.arrived += threads
        if self.arrived > total:
            raise Hazard(f"{who}: {self.arrived} threads arrive at barrier {self.number} for {total}")
        if self.arrived == total:
            self.arrived, self.generation = 0, self.generation + 1
