"""The checker: told by the machine what every warp and unit does, it keeps their clocks and judges their accesses."""

import warnings
from dataclasses import dataclass, field

import numpy as np

from ...errors import Hazard
from ...layout.banks import bank_conflicts
from .clocks import Clock, Components
from .reports import FIXES, HazardWarning, Report, Severity
from .shadow import NOBODY, UNKNOWN, Events, Shadow

_GRANULE = 4  # bytes of shared memory that share a shadow
_BARRIERS = 1024  # mbarriers of a cluster that get a component


@dataclass
class Agent:
    """Whoever acts: a warp, or one asynchronous operation. ``component``: whose time tells when its accesses are done."""

    clock: Clock
    component: int
    kind: (
        str  # of its accesses: "thread", "multiply", "copy" (time unknown until it completes) or "bulk store"
    )
    time: int = 0
    cta: object = None
    events: dict = field(default_factory=dict)  # a copy's writing event in each CTA …
    reads: list = field(default_factory=list)  # … and its reading ones

    @property
    def asynchronous(self) -> bool:
        return self.kind != "thread"


@dataclass
class _Barrier:
    """What the checker knows of an mbarrier: its component, and the clocks that its phases hand on."""

    component: int
    base: int  # time of the component when it was initialised
    maker: int  # component and time of its initialisation
    made: int
    gathered: Clock
    released: Clock
    arrived: dict = field(default_factory=dict)  # component → (time, place) of its last arrival
    observed: dict = field(default_factory=dict)  # warp → phases that it has seen complete


class Checker:
    """Happens-before tracking for one machine.

    Attributes
    ----------
    reports : list of Report
        What was found, each kind at each pair of places once.
    conflicts : dict
        PTX line → [accesses, wavefronts that bank conflicts add] of threads' shared-memory accesses.
    """

    def __init__(self, machine):
        self.machine = machine
        self._found: dict[tuple, Report] = {}
        self.conflicts: dict[object, list[int]] = {}
        self.agent: Agent | None = None
        self._suspicions: list[tuple] = []  # writes that race unless they write what is there already

    @property
    def reports(self) -> list[Report]:
        """Everything found, the worst first."""
        return sorted(self._found.values(), key=lambda report: -report.severity)

    def verdict(self) -> None:
        """Raise ``Hazard`` if there are errors; warn of warnings."""
        for report in self.of(Severity.WARNING):
            warnings.warn(str(report), HazardWarning, stacklevel=3)
        errors = self.of(Severity.ERROR)
        if errors:
            raise Hazard("\n".join([f"{len(errors)} hazards", *map(str, errors)]))

    def of(self, severity: Severity) -> list[Report]:
        return [report for report in self.reports if report.severity is severity]

    def _report(self, kind: str, place, other, what: str) -> None:
        key = kind, _where(place), _where(other)
        if key in self._found:
            self._found[key].count += 1
        else:
            self._found[key] = Report(kind, str(place), None if other is None else str(other), what)

    # -- the cluster ---------------------------------------------------------------------------
    def start(self, cluster) -> None:
        """A cluster begins: nobody has seen anything of anybody."""
        warps = cluster.warps
        self.size = 1 + 3 * len(warps) + len(cluster.ctas) + _BARRIERS
        self.components, self.events = Components(self.size), Events()
        self.cluster = cluster
        self.shared_shadow = {cta: Shadow(-(-cta.shared_bytes // _GRANULE)) for cta in cluster.ctas}
        self.tmem_shadow = {cta: Shadow((128, 512)) for cta in cluster.ctas}
        self.warp, self.stores, self.bulk, self.tensor = {}, {}, {}, {}
        for warp in warps:
            name = f"CTA {warp.cta.rank} warp {warp.index}"
            component = self.components.new(name)
            clock = Clock(self.size)
            clock.seen[component] = 1
            self.warp[warp] = Agent(clock, component, "thread", cta=warp.cta)
            self.stores[warp] = [self.components.new(f"tcgen05.st of {name}"), 0]
            self.bulk[warp] = [self.components.new(f"bulk stores of {name}"), 0]
        for cta in cluster.ctas:
            self.tensor[cta] = [self.components.new(f"tensor core of CTA {cta.rank}"), 0]
        self.barriers: dict[object, _Barrier] = {}
        self._barrier_times: dict[tuple, list] = {}
        self._meetings: dict[object, Clock] = {}
        self._released: dict[tuple, Clock] = {}
        self._atomics = Clock(self.size)
        self._stores_issued: dict = {}  # warp → (group of its last bulk store, instruction)
        self._loading: dict = {}  # warp → its tcgen05.ld that it has not waited for
        self._remote: list[tuple] = []  # (agent's component, time, the barrier's CTA, place)

    def begin(self, warp, ins) -> None:
        """A warp is about to run an instruction of the machine."""
        self.agent, self.current_warp, self.instruction = self.warp[warp], warp, ins
        self.atomic = ins.parts[0] in ("atom", "red") or any(
            p in ("volatile", "relaxed", "acquire", "release", "acq_rel") for p in ins.parts
        )

    def finish(self) -> None:
        """The cluster has ended: look for stores and arrivals that an exited CTA may have missed."""
        for warp, (group, ins) in self._stores_issued.items():
            if self.warp[warp].clock.seen[self.bulk[warp][0]] < group:
                self._report("exit under a bulk store", warp.where(ins), None, "shared memory")
        for component, time, cta, place in self._remote:
            if not any(self.warp[warp].clock.seen[component] >= time for warp in cta.warps):
                self._report("exit before arrival", place, None, f"CTA rank {cta.rank}")

    # -- accesses ------------------------------------------------------------------------------
    def shared(self, cta, offsets, size: int, what, write: bool) -> None:
        """``size`` bytes at each offset of a CTA's shared memory are accessed."""
        if isinstance(offsets, int):
            granules = slice(offsets // _GRANULE, -(-(offsets + size) // _GRANULE))
        else:
            if not self.agent.asynchronous:
                self._count_conflicts(offsets, size)
            steps = np.arange(0, max(size, _GRANULE), _GRANULE)
            granules = ((np.asarray(offsets)[..., None] + steps) // _GRANULE).reshape(-1)
        self._access(cta, self.shared_shadow[cta], granules, what, write, "shared memory")

    def tmem(self, cta, lanes, col: int, cols: int, what, write: bool) -> None:
        """Cells of a CTA's tensor memory are accessed."""
        index = (lanes, slice(col, col + cols))
        if isinstance(lanes, np.ndarray):
            index = np.ix_(lanes.reshape(-1), np.arange(col, col + cols))
        shadow = self.tmem_shadow[cta]
        if self.agent.asynchronous or not write:
            if not self.agent.asynchronous:
                self._loading[self.current_warp] = what
            self._access(cta, shadow, index, what, write, "tensor memory")
            return
        stores = self.stores[self.current_warp]  # tcgen05.st: complete at wait::st, ordered among themselves
        stores[1] += 1
        clock = self.agent.clock.copy()
        clock.seen[stores[0]] = stores[1]
        thread, self.agent = self.agent, Agent(clock, stores[0], "store", stores[1], cta)
        self._access(cta, shadow, index, what, True, "tensor memory")
        self.agent = thread

    def _access(self, cta, shadow: Shadow, granules, what, write: bool, memory: str) -> None:
        agent = self.agent
        if self.atomic and not agent.asynchronous:
            agent.clock.join(self._atomics)
        if write:
            self._judge_write(cta, shadow, granules, what, memory)
            shadow.write(granules, self._writing_event(cta, what))
        else:
            self._judge_read(shadow, granules, what, memory)
            component, time = self._now()
            event = self.events.add(component, time, what, self._kind())
            if agent.kind == "copy":
                agent.reads.append(event)
            shadow.read(granules, component, event)
        if self.atomic and not agent.asynchronous:
            self._atomics.join(agent.clock)

    def _now(self) -> tuple[int, int]:
        """Return the component and time at which the agent's access is complete."""
        agent = self.agent
        if agent.kind == "thread":
            return agent.component, int(agent.clock.seen[agent.component])
        return agent.component, agent.time

    def _kind(self) -> str:
        """Return the kind of the agent's accesses."""
        if self.agent.asynchronous:
            return self.agent.kind
        if self.atomic:
            return "atomic"
        return "cp.async" if self.instruction.op.startswith("cp.async.c") else "thread"

    def _writing_event(self, cta, what) -> int:
        agent = self.agent
        if agent.kind != "copy":
            return self.events.add(*self._now(), what, self._kind())
        if cta not in agent.events:
            agent.events[cta] = self.events.add(0, UNKNOWN, what, "copy")
        return agent.events[cta]

    def _judge_read(self, shadow: Shadow, granules, what, memory: str) -> None:
        writers, events, clock = shadow.writer[granules].reshape(-1), self.events, self.agent.clock
        late = events.unseen(writers, clock.seen)
        if late.any():
            event = int(writers[np.argmax(late)])
            if not (self.atomic and events.kinds[event] == "atomic"):
                self._report(_READ[events.kinds[event]], what, events.places[event], memory)
        elif self.agent.asynchronous and memory == "shared memory":
            unfenced = events.thread[writers] & (
                events.time[writers] > clock.fenced[events.component[writers]]
            )
            if unfenced.any():
                event = int(writers[np.argmax(unfenced)])
                copied = events.kinds[event] == "cp.async"
                kind = "cp.async without proxy fence" if copied else "missing proxy fence"
                self._report(kind, what, events.places[event], memory)
        if (writers == NOBODY).any() and not self.atomic:
            self._report("uninitialised", what, None, memory)

    def _judge_write(self, cta, shadow: Shadow, granules, what, memory: str) -> None:
        events, clock = self.events, self.agent.clock
        for row in shadow.readers.values():
            readers = row[granules].reshape(-1)
            late = events.unseen(readers, clock.seen)
            if late.any():
                event = int(readers[np.argmax(late)])
                if not (self.atomic and events.kinds[event] == "atomic"):
                    self._report(_UNDER[events.kinds[event]], what, events.places[event], memory)
        writers = shadow.writer[granules].reshape(-1)
        late = events.unseen(writers, clock.seen)
        if late.any():
            event = int(writers[np.argmax(late)])
            if self.atomic and events.kinds[event] == "atomic":
                return
            if not self.agent.asynchronous and events.thread[event]:
                before = cta.shared.view(np.uint32)[granules].copy()
                self._suspicions.append(
                    (cta, granules, before, ("two writes", what, events.places[event], memory))
                )
            else:
                self._report("two writes", what, events.places[event], memory)

    def end(self) -> None:
        """The warp has done its instruction: threads may all write the same value, as some compilers let them."""
        for cta, granules, before, report in self._suspicions:
            if not np.array_equal(cta.shared.view(np.uint32)[granules], before):
                self._report(*report)
        self._suspicions.clear()

    def _count_conflicts(self, offsets, size: int) -> None:
        counts = self.conflicts.setdefault(self.instruction.line, [0, 0])
        counts[0] += 1
        if size >= 4:
            least = -(-len(offsets) * size // 128)
            counts[1] += max(bank_conflicts(offsets, size) - least, 0)

    # -- asynchronous operations -------------------------------------------------------------------
    def issued(self, cta, unit, land):
        """Return ``land``, done by an agent that has seen what the issuing warp has."""
        agent = self._operation(cta, unit)

        def landing():
            before, self.agent = self.agent, agent
            try:
                land()
            finally:
                self.agent = before

        return landing

    def _operation(self, cta, unit) -> Agent:
        clock = self.agent.clock.copy()
        name = unit if isinstance(unit, str) else unit[0]
        if name == "tensor core":
            tensor = self.tensor[cta]
            tensor[1] += 1
            clock.seen[tensor[0]] = tensor[1]  # the tensor core works in order
            return Agent(clock, tensor[0], "multiply", tensor[1], cta)
        if name in ("tma store", "bulk store"):
            bulk = self.bulk[self.current_warp]
            self._stores_issued[self.current_warp] = bulk[1] + 1, self.instruction
            return Agent(clock, bulk[0], "bulk store", bulk[1] + 1, cta)
        return Agent(clock, 0, "copy", UNKNOWN, cta)

    def bulk_committed(self, warp) -> None:
        self.bulk[warp][1] += 1

    def bulk_waited(self, warp, allowed: int) -> None:
        component, committed = self.bulk[warp]
        seen = self.warp[warp].clock.seen
        seen[component] = max(seen[component], committed - allowed)

    def stores_waited(self, warp) -> None:
        component, count = self.stores[warp]
        self.warp[warp].clock.seen[component] = count

    def loads_waited(self, warp) -> None:
        self._loading.pop(warp, None)

    def proxy_fence(self, warp) -> None:
        """What the warp has seen written by threads becomes visible to the async proxy."""
        agent = self.warp[warp]
        np.maximum(agent.clock.fenced, agent.clock.seen, out=agent.clock.fenced)
        agent.clock.seen[agent.component] += 1

    # -- mbarriers -----------------------------------------------------------------------------------
    def initialised(self, barrier) -> None:
        """The current warp has made an mbarrier."""
        key = barrier.cta, barrier.address
        if key not in self._barrier_times:
            self._barrier_times[key] = [self.components.new(f"mbarrier {barrier.name}"), 0]
        component, base = self._barrier_times[key]
        component_of_maker, time = self._now()
        self.barriers[barrier] = _Barrier(
            component, base, component_of_maker, time, Clock(self.size), Clock(self.size)
        )

    def invalidated(self, barrier, what) -> None:
        known, seen = self.barriers[barrier], self.agent.clock.seen
        for component, (time, place) in known.arrived.items():
            if seen[component] < time:
                self._report("invalidated in flight", what, place, barrier.name)
        if barrier.tx_bytes:
            self._report(
                "invalidated in flight", what, None, f"{barrier.name} awaits {barrier.tx_bytes} bytes"
            )

    def _must_exist(self, barrier, what) -> _Barrier:
        known = self.barriers[barrier]
        if self.agent.clock.seen[known.maker] < known.made:
            self._report("barrier not initialised yet", what, None, barrier.name)
        return known

    def arriving(self, barrier, what) -> None:
        """The agent is about to arrive: the phase hands on what it has seen."""
        agent, known = self.agent, self._must_exist(barrier, what)
        self._must_be_fenced(known, barrier, what)
        known.gathered.join(agent.clock)
        component, time = self._now()
        known.arrived[component] = time, what
        if agent.cta is not barrier.cta:
            self._remote.append((component, time, barrier.cta, what))
        if not agent.asynchronous and self.current_warp in self._loading:
            self._report("loads not awaited", what, self._loading.pop(self.current_warp), barrier.name)
        self._tick()

    def _must_be_fenced(self, known: _Barrier, barrier, what) -> None:
        if self.agent.asynchronous and self.agent.clock.fenced[known.maker] < known.made:
            self._report("initialisation not fenced", what, None, barrier.name)

    def _tick(self) -> None:
        """Later accesses of a thread are not covered by what it has just released."""
        if not self.agent.asynchronous:
            self.agent.clock.seen[self.agent.component] += 1

    def landing(self, barrier) -> None:
        """A copy's bytes are about to complete on an mbarrier: whoever sees the phase complete sees them."""
        known, events = self.barriers[barrier], self.agent.events
        self._must_be_fenced(known, barrier, barrier.last_arrival)
        chosen = [barrier.cta] if barrier.cta in events else list(events)
        done = [events.pop(cta) for cta in chosen] + self.agent.reads
        self.agent.reads = []
        for event in done:
            self.events.component[event], self.events.time[event] = (
                known.component,
                known.base + barrier.phase + 1,
            )

    def completed(self, barrier) -> None:
        """A phase has completed."""
        known = self.barriers[barrier]
        known.released, known.gathered = known.gathered, Clock(self.size)
        self._barrier_times[barrier.cta, barrier.address][1] = known.base + barrier.phase

    def passed(self, warp, barrier, what) -> None:
        """A warp has seen that a phase is complete."""
        known = self._must_exist(barrier, what)
        clock = self.warp[warp].clock
        clock.join(known.released)
        clock.seen[known.component] = known.base + barrier.phase
        before = known.observed.get(warp)
        if before is not None and barrier.phase - before > 2:
            self._report("phase overrun", what, None, f"{barrier.name}: {barrier.phase - before} phases")
        known.observed[warp] = barrier.phase

    # -- barriers that warps meet at --------------------------------------------------------------------
    def meets(self, warp, meeting) -> None:
        """A warp arrives at a named or cluster barrier's next release."""
        clock = self._meetings.setdefault(meeting, Clock(self.size))
        self.agent = self.warp[warp]
        clock.join(self.agent.clock)
        self._tick()

    def released(self, warp, meeting) -> None:
        """A warp goes on after a meeting."""
        clock = self._meetings.get(meeting)
        if clock is not None:
            self.warp[warp].clock.join(clock)


_READ = {
    "copy": "read before landed",
    "multiply": "read before multiplied",
    "store": "read before stored",
    "thread": "unordered read",
    "atomic": "unordered read",
    "cp.async": "unordered read",
}
_UNDER = {
    "multiply": "write under a multiply",
    "bulk store": "bulk store's source",
    "thread": "write under a reader",
    "atomic": "write under a reader",
    "copy": "write under a reader",
    "store": "write under a reader",
}
assert {*_READ.values(), *_UNDER.values()} <= {*FIXES}


def _where(place) -> object:
    """Return what tells one place in the program from another."""
    ins = getattr(place, "ins", None)
    return ins.line if ins is not None else str(place)
