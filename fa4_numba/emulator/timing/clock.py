"""The clock: warps share their scheduler's issue slots and pipes, units work in order, waiting warps resume in time.

A warp runs until the machine is needed; what it has executed becomes a *job* with the cycles it takes alone and what
it asks of each pipe. Jobs at the same time share: where a pipe is asked for more than it has, the greedy get less,
those who need little get what they need. When a job is done the machine does the instruction that ended it, so every
arrival, wait and asynchronous operation happens at its time, in order.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ..machine.interpreter import EFFECT
from .arch import TimingArch
from .blocks import ALU, BYTES, CYCLES, FMA, ISSUE, MUFU, SHARED, TMEM, assign_costs
from .report import Slice, Timing, Wait, waited_for
from .units import Units

_TURN = 512  # pieces of a job
_SUBCORES = 4
_SM_WIDE = (SHARED, BYTES)  # pipes that all sub-cores share


@dataclass
class Job:
    """Work of a warp: ``left`` cycles, were it alone; ``uses``: (pipe, its share of the pipe's time while it runs)."""

    warp: object
    why: int | None
    left: float
    start: float
    uses: list = field(default_factory=list)
    rate: float = 1.0


class Clock:
    """Model time of one machine."""

    def __init__(self, machine, arch: TimingArch):
        self.machine, self.arch = machine, arch
        assign_costs(machine.pieces, arch)
        self.timing = Timing(arch)

    def start(self, cluster) -> None:
        """A cluster begins at time 0."""
        self.cluster = cluster
        self.now = 0.0
        self.jobs: dict[object, Job] = {}
        self.waits: dict[object, Wait] = {}
        self.owed: dict[object, np.ndarray] = {}  # warp → what it used in no time
        self.landings: list[tuple] = []
        self._events = 0
        self.current = None  # the warp whose instruction the machine does
        self._changed = True
        self.units = Units(self)
        self.record = self.timing.begin(cluster)

    # -- what the machine asks for -------------------------------------------------------------------
    def step(self) -> bool:
        """Let the next thing happen; return False if nothing can."""
        self._start_warps()
        if self._changed:
            self._share()
        at = min((self.now + job.left / job.rate for job in self.jobs.values()), default=np.inf)
        if self.landings and self.landings[0][0] <= at:
            time, _, action = heapq.heappop(self.landings)
            self._pass(time)
            action()
            return True
        if not self.jobs:
            return self._give_up()
        self._pass(at)
        for job in [job for job in self.jobs.values() if job.left < 1e-6]:
            self._finish(job)
        return True

    def _give_up(self) -> bool:
        """Nothing moves: let the waits that may be peeking answer no, as the hardware does after a while."""
        peeking = [w for w in self.waits if getattr(w.waiting, "peeks", False)]
        for warp in peeking:
            warp.patient = False
            self._wake(warp)
        return bool(peeking)

    def issued(self, cta, unit, what, amount) -> None:
        """Work was handed to an asynchronous unit: decide when it lands."""
        self.record.issued[self.current].add(unit if isinstance(unit, str) else unit[0])
        self.units.take(cta, unit, what, amount, lambda: self.cluster.land_next((cta.rank, unit)))

    def at(self, time: float, action) -> None:
        """Let something happen at a time."""
        self._events += 1
        heapq.heappush(self.landings, (max(time, self.now), self._events, action))

    def finish(self) -> None:
        """The cluster has ended."""
        self.record.end(self.now)

    # -- warps ------------------------------------------------------------------------------------------
    def _start_warps(self) -> None:
        """Give a job to every warp that can go on."""
        for warp in self.cluster.warps:
            if warp.done or warp in self.jobs:
                continue
            if warp.waiting is not None:
                if warp.waiting.ready():
                    self._wake(warp)
                continue
            if not self.units.full(warp):
                self._run(warp)

    def _run(self, warp) -> None:
        why = warp.run_to_effect(_TURN)
        costs = np.array(warp.state["costs"], float)
        warp.state["costs"] = 0
        self.record.executed(warp, costs)
        self.machine.collect(warp)
        costs += self.owed.pop(warp, 0.0)
        job = Job(warp, why, costs[CYCLES], self.now)
        if job.left:
            job.uses = list(self._uses(warp, costs, job.left))
        else:  # in the shadow of other work: what it asks of pipes is charged with what comes next
            self.owed[warp] = costs
        self.jobs[warp] = job
        self._changed = True

    def _uses(self, warp, costs, cycles: float):
        rank, subcore = warp.cta.rank, warp.index % _SUBCORES
        for pipe in (ISSUE, FMA, ALU, MUFU, TMEM, SHARED, BYTES):
            share = costs[pipe] / cycles / (self.arch.l2_port if pipe == BYTES else 1)
            if share:
                yield (rank, None if pipe in _SM_WIDE else subcore, pipe), share

    def _wake(self, warp) -> None:
        """What the warp waited for has happened: it goes on after the latency of its wait."""
        waiting, warp.waiting = warp.waiting, None
        if self.machine.checker is not None and hasattr(waiting, "meeting"):
            self.machine.checker.released(warp, waiting.meeting)
        latency = self.arch.wake.get(type(waiting).__name__, 0)
        wait = self.waits.pop(warp)
        wait.until = self.now + latency
        wait.whom = waited_for(waiting)
        self.record.waits.append(wait)
        self.jobs[warp] = Job(warp, None, latency, self.now)
        self._changed = True

    def _finish(self, job: Job) -> None:
        """A job is done: the machine does the instruction that ended it."""
        warp = job.warp
        del self.jobs[warp]
        self._changed = True
        if job.why is None:
            return
        if self.now > job.start:
            self.record.slices.append(Slice(warp, job.start, self.now))
        if job.why == EFFECT:
            self.current = warp
            warp.deal_with(EFFECT)
        if warp.waiting is not None:
            self.waits[warp] = Wait(warp, warp.current, self.now, waiting=warp.waiting)
        self.machine.count(warp)

    # -- time -----------------------------------------------------------------------------------------------
    def _pass(self, time: float) -> None:
        passed = max(time - self.now, 0.0)
        if passed:
            for job in self.jobs.values():
                job.left = max(job.left - passed * job.rate, 0.0)
            self.now = time

    def _share(self) -> None:
        """Set every job's rate: what a pipe has is shared so that nobody gets less than an equal part he needs."""
        self._changed = False
        users = defaultdict(list)
        for job in self.jobs.values():
            job.rate = 1.0
            for pipe, share in job.uses:
                users[pipe].append((share, job))
        for asking in users.values():
            if sum(share for share, _ in asking) <= 1.0:
                continue
            level = _water_level([share for share, _ in asking])
            for share, job in asking:
                if share > level:
                    job.rate = min(job.rate, level / share)


def _water_level(shares: list[float]) -> float:
    """Return the share at which all get at most that much and the whole is given away."""
    left, rest = 1.0, len(shares)
    for share in sorted(shares):
        if share * rest >= left:
            return left / rest
        left, rest = left - share, rest - 1
    return 1.0
