"""What the clock has seen: cycles of each role and unit, who waited for whom, and the same as a Perfetto trace."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ..machine.waiting import PhaseWait
from .arch import TimingArch
from .blocks import ALU, BYTES, FMA, ISSUE, MUFU, SHARED, TMEM

_SUBCORES = 4
_NAMES = {ISSUE: "issue slots", FMA: "FMA", ALU: "ALU", MUFU: "MUFU", SHARED: "shared memory", TMEM: "TMEM"}


@dataclass
class Slice:
    """A warp ran from ``start`` to ``until``."""

    warp: object
    start: float
    until: float


@dataclass
class Wait:
    """A warp waited: for ``what``, which ``whom`` completed."""

    warp: object
    ins: object
    start: float
    until: float = 0.0
    what: str = ""
    whom: object = ""
    waiting: object = None

    def __post_init__(self):
        self.what = _what(self.waiting)


@dataclass
class UnitSlice:
    """An asynchronous unit worked."""

    rank: int
    unit: str
    start: float
    until: float
    what: str
    bytes: int = 0


def _what(waiting) -> str:
    if isinstance(waiting, PhaseWait):
        return waiting.barrier.name
    return {
        "NamedWait": lambda: f"barrier {waiting.barrier.number}",
        "ClusterWait": lambda: "cluster barrier",
        "TmemWait": lambda: "tensor memory",
        "RegisterWait": lambda: "registers",
    }.get(
        type(waiting).__name__,
        lambda: getattr(getattr(waiting, "groups", None), "what", "asynchronous copies"),
    )()


def waited_for(waiting):
    """Return who has ended a wait: a warp, or the name of a unit."""
    if not isinstance(waiting, PhaseWait):
        return ""
    last = waiting.barrier.last_arrival  # (a Place in the program, as a rule)
    prefix = getattr(last, "prefix", "")
    if prefix.startswith("tcgen05.commit"):
        return "tensor core"
    if prefix.startswith("TMA"):
        return "TMA"
    return getattr(last, "warp", str(last))


@dataclass
class ClusterRecord:
    """One cluster's run."""

    cluster: object
    slices: list = field(default_factory=list)
    waits: list = field(default_factory=list)
    units: list = field(default_factory=list)
    costs: dict = field(default_factory=dict)  # warp → what it executed, as pieces count it
    cycles: float = 0.0
    issued: dict = field(default_factory=lambda: defaultdict(set))  # warp → units that it gave work
    roles: dict = field(default_factory=dict)

    def executed(self, warp, costs: np.ndarray) -> None:
        self.costs[warp] = self.costs.get(warp, 0) + costs

    def end(self, now: float) -> None:
        self.cycles = now
        self.roles = {warp: self._role(warp) for warp in self.cluster.warps}

    def _role(self, warp) -> str:
        """Return the role that the program's markers name, or what the warp did most."""
        if warp.role != f"warp {warp.index}" or warp not in self.costs:
            return warp.role
        units, costs = self.issued[warp], self.costs[warp]
        for name, wanted in (("mma", "tensor core"), ("load", "tma"), ("store", "tma store")):
            if wanted in units:
                return f"({name})"
        if costs[MUFU] > 2 * costs[ISSUE] / 4:
            return "(exponentials)"
        return "(tensor memory)" if costs[TMEM] > costs[ISSUE] / 8 else "(other)"

    def name(self, who) -> str:
        """Return the role of a warp; units have names."""
        return self.roles.get(who, who if isinstance(who, str) else who.role)


class Timing:
    """The *model's* view of a run: ``clusters`` in the order in which they ran."""

    def __init__(self, arch: TimingArch):
        self.arch = arch
        self.clusters: list[ClusterRecord] = []

    def begin(self, cluster) -> ClusterRecord:
        self.clusters.append(ClusterRecord(cluster))
        return self.clusters[-1]

    @property
    def last(self) -> ClusterRecord:
        """The cluster that ended last, or the running one if none has."""
        return next((record for record in reversed(self.clusters) if record.cycles), self.clusters[-1])

    @property
    def cycles(self) -> float:
        """Cycles of the cluster that took longest so far."""
        return max((record.cycles for record in self.clusters), default=0.0)

    def utilisation(self, record: ClusterRecord | None = None) -> dict[str, float]:
        """Return what part of the cycles each unit worked: mean over sub-cores and CTAs."""
        record = record or self.last
        ctas, cycles = record.cluster.size, max(record.cycles, 1.0)
        total = sum(record.costs.values(), np.zeros(8))
        out = {
            name: float(total[k]) / cycles / ctas / (1 if k == SHARED else _SUBCORES)
            for k, name in _NAMES.items()
        }
        out["L2 port"] = float(total[BYTES]) / self.arch.l2_port / cycles / ctas
        busy = defaultdict(float)
        for unit in record.units:
            parts = _SUBCORES if unit.unit[-1].isdigit() else 1
            busy[unit.unit.rstrip(" 0123")] += (unit.until - unit.start) / parts
        return out | {name: value / cycles / ctas for name, value in busy.items()}

    def bytes_moved(self, record: ClusterRecord | None = None) -> float:
        """Return the bytes of global memory that a cluster asked for."""
        record = record or self.last
        return sum(unit.bytes for unit in record.units) + float(sum(c[BYTES] for c in record.costs.values()))

    def waiting(self, record: ClusterRecord | None = None) -> list[tuple]:
        """Return (role, what, whom, times, cycles per warp), the longest first."""
        record = record or self.last
        table, warps = defaultdict(lambda: [0, 0.0]), defaultdict(set)
        for wait in record.waits:
            row = table[record.name(wait.warp), wait.what, record.name(wait.whom)]
            row[0] += 1
            row[1] += wait.until - wait.start
        for warp, role in record.roles.items():
            warps[role].add(warp)
        rows = [(*key, n, cycles / max(len(warps[key[0]]), 1)) for key, (n, cycles) in table.items()]
        return sorted(rows, key=lambda row: -row[-1])

    def roles(self, record: ClusterRecord | None = None) -> dict[str, dict]:
        """Return role → mean cycles of its warps: running, waiting, and issue slots."""
        record = record or self.last
        ran, waited = defaultdict(float), defaultdict(float)
        for part in record.slices:
            ran[part.warp] += part.until - part.start
        for wait in record.waits:
            waited[wait.warp] += wait.until - wait.start
        out = defaultdict(lambda: {"warps": 0, "running": 0.0, "waiting": 0.0, "issue slots": 0.0})
        for warp, role in record.roles.items():
            row = out[role]
            row["warps"] += 1
            row["running"] += ran[warp]
            row["waiting"] += waited[warp]
            row["issue slots"] += float(record.costs[warp][ISSUE]) if warp in record.costs else 0.0
        return {
            role: {k: v if k == "warps" else v / row["warps"] for k, v in row.items()}
            for role, row in out.items()
        }

    def perfetto(self, record: ClusterRecord | None = None) -> str:
        """Return a trace in model time: one microsecond stands for one cycle."""
        record = record or self.last
        entries = []
        put = lambda name, rank, who, start, until: entries.append(
            {
                "name": name,
                "ph": "X",
                "ts": start,
                "dur": max(until - start, 0.01),
                "pid": f"CTA rank {rank} (model)",
                "tid": who,
            }
        )
        track = lambda warp: f"{record.roles.get(warp, warp.role)} w{warp.index}"
        for part in record.slices:
            put("run", part.warp.cta.rank, track(part.warp), part.start, part.until)
        for wait in record.waits:
            whom = record.name(wait.whom)
            name = f"wait {wait.what}" + (f" ({whom})" if whom else "")
            put(name, wait.warp.cta.rank, track(wait.warp), wait.start, wait.until)
        for unit in record.units:
            put(unit.what[:60], unit.rank, unit.unit, unit.start, unit.until)
        return json.dumps({"traceEvents": entries, "displayTimeUnit": "ns"})

    def __str__(self):
        if not self.clusters:
            return "model: nothing ran"
        lines = [f"model ({self.arch.name}): {self.cycles:,.0f} cycles"]
        lines += [f"  {name}: {value:.0%}" for name, value in self.utilisation().items() if value >= 0.005]
        for role, row in self.roles().items():
            lines.append(
                f"  {role} ({row['warps']} warps): runs {row['running']:,.0f}, waits {row['waiting']:,.0f}, "
                f"{row['issue slots']:,.0f} issue slots"
            )
        for role, what, whom, times, cycles in self.waiting()[:20]:
            lines.append(
                f"  {role} waits {cycles:,.0f} cycles for {what}"
                + (f" of {whom}" if whom else "")
                + f" ({times}x)"
            )
        return "\n".join(lines)
