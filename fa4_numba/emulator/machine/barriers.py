"""mbarriers and named barriers."""

from dataclasses import dataclass, field

import numpy as np

from ...errors import Hazard

# What an mbarrier counts, in the CTA's table of one row per 8 bytes of shared memory: compiled code counts there, too.
# ``arrived_warp`` and ``arrived_pc`` say who arrived last, where compiled code did it (else the warp is -1).
EXPECTED, PENDING, TX_BYTES, PHASE, ARRIVED_WARP, ARRIVED_PC = range(6)
MBARRIER_CELLS = 6


def _cell(number: int, text: str) -> property:
    def put(self, value):
        self.cells[number] = value

    return property(lambda self: int(self.cells[number]), put, doc=text)


class MBarrier:
    """An mbarrier: a phase completes when all arrivals and all announced bytes are in.

    ``phase`` counts completed phases; waiting for parity p succeeds once the phase with that parity has completed,
    that is while ``phase & 1 != p``.
    """

    expected = _cell(EXPECTED, "Arrivals that a phase needs.")
    pending = _cell(PENDING, "Arrivals that the current phase still needs.")
    tx_bytes = _cell(TX_BYTES, "Bytes announced and not yet landed.")
    phase = _cell(PHASE, "Completed phases.")

    def __init__(self, address: int, name: str, expected: int, cta=None):
        self.address, self.name, self.cta = address, name, cta
        self.cells = np.zeros(MBARRIER_CELLS, np.int64) if cta is None else cta.barrier_cells(address)
        self.cells[:] = expected, expected, 0, 0, -1, -1
        self._last = "nobody"

    @property
    def last_arrival(self):
        """Who arrived last."""
        if self.cells[ARRIVED_WARP] >= 0:
            return self.cta.place(int(self.cells[ARRIVED_WARP]), int(self.cells[ARRIVED_PC]))
        return self._last

    @last_arrival.setter
    def last_arrival(self, who) -> None:
        self._last, self.cells[ARRIVED_WARP] = who, -1

    def invalidate(self) -> None:
        """End it: compiled code knows no barrier here any more."""
        self.cells[EXPECTED] = 0

    @property
    def checker(self):
        """The machine's checker, if it has one."""
        return None if self.cta is None else self.cta.machine.checker

    def arrive(self, count: int, who: str, completes: bool = True) -> None:
        """Arrive ``count`` times; ``completes``: whether that may complete the phase."""
        if self.checker is not None:
            self.checker.arriving(self, who)
        if count > self.pending:
            raise Hazard(
                f"{who} arrives {count}x on {self.name}, which awaits {self.pending} of {self.expected} arrivals in phase "
                f"{self.phase}; before that: {self.last_arrival}. Check the arrival count it was initialised with"
            )
        self.pending -= count
        self.last_arrival = who
        if not completes and not self.pending:
            raise Hazard(f"{who}: .noComplete, but this arrival completes phase {self.phase} of {self.name}")
        self._complete()

    def expect_arrivals(self, count: int) -> None:
        """The current phase needs ``count`` arrivals more."""
        self.pending += count

    def drop(self, count: int) -> None:
        """Later phases expect ``count`` arrivals less."""
        self.expected -= count

    def expect(self, tx_bytes: int) -> None:
        self.tx_bytes += tx_bytes

    def land(self, tx_bytes: int, who: str) -> None:
        """Asynchronous bytes have arrived."""
        if self.checker is not None:
            self.checker.landing(self)
        self.tx_bytes -= tx_bytes
        self.last_arrival = who
        self._complete()

    def passed(self, parity: int) -> bool:
        """Return whether the phase of this parity has completed."""
        return int(self.cells[PHASE]) & 1 != parity

    def _complete(self) -> None:
        if self.pending == 0 and self.tx_bytes == 0:
            self.phase += 1
            self.pending = self.expected
            if self.checker is not None:
                self.checker.completed(self)

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
    votes: list = field(default_factory=lambda: [0, 0])  # for and against, of a reduction
    results: list = field(default_factory=list)  # functions that write a reduction's result

    def vote(self, yes: int, no: int, write) -> None:
        """Count a warp's votes; ``write(yes, no)`` is called with those of all when they are in."""
        self.votes[0] += yes
        self.votes[1] += no
        self.results.append(write)

    def arrive(self, threads: int, total: int, who: str) -> None:
        if self.arrived and total != self.threads:
            raise Hazard(f"{who} uses barrier {self.number} for {total} threads, others for {self.threads}")
        self.threads = total
        self.arrived += threads
        if self.arrived > total:
            raise Hazard(f"{who}: {self.arrived} threads arrive at barrier {self.number} for {total}")
        if self.arrived == total:
            self.arrived, self.generation = 0, self.generation + 1
            for write in self.results:
                write(*self.votes)
            self.votes, self.results = [0, 0], []
