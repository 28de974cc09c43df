"""The machine: launches an entry over a grid and runs it cluster by cluster."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...errors import Deadlock, LaunchError, StepLimit
from ...hw import SM_100A
from ...layout import TensorMapSpec
from .. import isa
from ..checks import Checker
from ..ptx import Module, build_blocks, parse
from ..ptx.parser import DYNAMIC_SHARED_START
from .cluster import Cluster
from .memory import LOCAL_WINDOW, MAX_CLUSTER_CTAS, PARAM_WINDOW, GlobalMemory
from .program import flatten, specials_of
from .schedule import schedule_of
from .state import WATCH_ACCESSES, WATCH_SIGNALS, WATCH_STAGES, WATCH_TMEM_STORES, StateLayout
from .warp import Warp

_DEFAULT_MAX_STEPS = 10**10


@dataclass(frozen=True)
class RunStats:
    """What a run executed. ``seconds`` is wall-clock time of the emulation."""

    warp_instructions: int
    lane_instructions: int
    ctas: int
    seconds: float

    def __str__(self):
        rate = self.warp_instructions / max(self.seconds, 1e-9)
        return (
            f"{self.warp_instructions:,} warp-instructions ({self.lane_instructions:,} lane-instructions) in {self.ctas} "
            f"CTAs, {self.seconds:.2f} s, {rate / 1e3:,.0f} k warp-instructions/s"
        )


@dataclass(frozen=True)
class Event:
    """One entry of the timeline. ``at`` counts executed warp-instructions: order, not time."""

    at: int
    cta: tuple[int, int, int]
    who: str
    what: str


class _Hook:
    """A registered callback; ``remove()`` takes it back."""

    def __init__(self, hooks: list, function: Callable):
        self._hooks, self.function = hooks, function
        hooks.append(self)

    def remove(self) -> None:
        if self in self._hooks:
            self._hooks.remove(self)


@dataclass
class Machine:
    """Runs one PTX kernel on the CPU.

    Parameters
    ----------
    program : str or Module
        PTX text, or a parsed module.
    grid, block : tuple of int
        CTAs and threads, (x, y, z).
    cluster : tuple of int
        CTAs of a cluster, (x, y, z); default: what the kernel requires (``.reqnctapercluster``), or one CTA.
    args : sequence
        Kernel arguments in order: ints (addresses too), floats, numpy scalars, :class:`TensorMapSpec`, or the
        parameter's bytes.
    memory : GlobalMemory
    dynamic_smem_bytes : int
    entry : str
        Kernel name; needed if the module has several.
    schedule : str
        "eager", "late", "random:SEED", "delay:ROLE-OR-UNIT", or a schedule of ``machine.schedule``.
    trace : bool
        Record a timeline of roles, stages and asynchronous units.
    shared_names : dict
        Names of mbarriers by byte offset in dynamic shared memory, for messages.
    max_steps : int
        Warp-instructions after which the run is given up.
    engine : str
        "compiled" (needs llvmlite), "interpreter", or "auto": compiled where llvmlite is installed.
    check : bool
        Track hazards (slower): ``machine.checker.reports`` afterwards.
    progress : callable
        Called as ``progress(ctas_done, ctas)`` after each cluster.

    Raises
    ------
    PtxSyntaxError, UnknownInstructionError
        When the program is loaded.
    LaunchError
        If grid, block, cluster, shared memory or arguments do not fit.
    """

    program: str | Module
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple = ()
    memory: GlobalMemory = field(default_factory=GlobalMemory)
    dynamic_smem_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    entry: str | None = None
    schedule: str = "eager"
    trace: bool = False
    shared_names: dict = field(default_factory=dict)
    max_steps: int = _DEFAULT_MAX_STEPS
    progress: Callable | None = None
    engine: str = "auto"
    check: bool = False

    def __post_init__(self):
        self.module = parse(self.program) if not isinstance(self.program, Module) else self.program
        self._choose_entry()
        # static variables come first, then the dynamic array on the next kilobyte
        self.dynamic_start = DYNAMIC_SHARED_START * (
            1 + -(-self.module.static_shared_bytes // DYNAMIC_SHARED_START)
        )
        self._check_launch()
        self._schedule_name = self.schedule
        self.schedule = schedule_of(self.schedule)
        isa.check(self.entry.instructions)
        self.pieces = flatten(build_blocks(self.entry))
        self.shared_names = {self.dynamic_start + k: v for k, v in self.shared_names.items()}
        self._executed = self._lanes_executed = self.ctas_done = 0
        self.tensor_maps: dict[bytes, TensorMapSpec] = {}
        self.timeline: list[Event] = []
        self._hooks: list[_Hook] = []
        self._pack_arguments()
        self.checker = Checker(self) if self.check else None
        layout = StateLayout(self.entry.register_counts, specials_of(self.pieces))
        self.live = Cluster(self, lambda cta, i: Warp(cta, i, self.entry, self.pieces, layout))
        self._choose_engine(layout)
        self._started = False

    # -- loading --------------------------------------------------------------------
    def _choose_entry(self):
        names = list(self.module.entries)
        if self.entry is None and len(names) != 1:
            raise LaunchError(f"the module has {len(names)} entries {names}: pass entry=")
        name = self.entry or names[0]
        if name not in self.module.entries:
            raise LaunchError(f"entry {name!r} is not in the module; it has {names}")
        self.entry = self.module.entries[name]

    def _check_launch(self):
        self.explicit_cluster = self.cluster is not None or self.entry.cluster is not None
        self.cluster = self._cluster_shape()
        for name in ("grid", "block", "cluster"):
            value = tuple(int(n) for n in getattr(self, name))
            if len(value) != 3 or min(value) < 1:
                raise LaunchError(f"{name} = {getattr(self, name)}: takes three positive numbers (x, y, z)")
            setattr(self, name, value)
        self.threads = int(np.prod(self.block))
        limit = self.entry.max_threads or SM_100A.max_threads_per_block
        if self.threads > min(limit, SM_100A.max_threads_per_block):
            raise LaunchError(
                f"block = {self.block} has {self.threads} threads; the kernel takes at most {limit}"
            )
        if np.prod(self.cluster) > MAX_CLUSTER_CTAS:
            raise LaunchError(f"cluster = {self.cluster}: a cluster has at most {MAX_CLUSTER_CTAS} CTAs")
        if any(g % c for g, c in zip(self.grid, self.cluster)):
            raise LaunchError(
                f"grid = {self.grid} must be divisible by cluster = {self.cluster}, axis by axis"
            )
        self.clusters = tuple(g // c for g, c in zip(self.grid, self.cluster))
        if max(self.grid[1:]) > 65535 or self.grid[0] >= 1 << 31:
            raise LaunchError(f"grid = {self.grid}: x is limited to 2**31 - 1, y and z to 65535")
        self.shared_bytes = self.dynamic_start + int(self.dynamic_smem_bytes)
        most = SM_100A.smem_bytes_per_block
        if not 0 <= self.dynamic_smem_bytes <= most or self.shared_bytes > most + DYNAMIC_SHARED_START:
            raise LaunchError(
                f"{self.dynamic_smem_bytes} bytes of dynamic shared memory: a CTA has at most {most}"
            )
        self.entry_registers = min(255, SM_100A.registers_per_sm // max(self.threads, 1)) // 8 * 8

    def _cluster_shape(self) -> tuple:
        """Return the cluster's shape: the launch's, or what the kernel requires."""
        required = self.entry.cluster
        if self.cluster is None:
            return required or (1, 1, 1)
        if required is not None and tuple(self.cluster) != required:
            raise LaunchError(
                f"cluster = {self.cluster}: the kernel requires {required} (.reqnctapercluster)"
            )
        return self.cluster

    def _pack_arguments(self):
        offsets, size = self.entry.param_offsets()
        params = self.entry.params
        if len(self.args) != len(params):
            raise LaunchError(f"{self.entry.name} takes {len(params)} arguments, got {len(self.args)}")
        self.param_bytes = np.zeros(max(size, 1), np.uint8)
        self._addresses = {name: PARAM_WINDOW + offset for name, offset in offsets.items()}
        self._addresses |= {name: LOCAL_WINDOW + offset for name, offset in self.entry.locals.items()}
        for name, initial in self.module.variables.items():
            data = np.frombuffer(bytearray(initial), np.uint8)
            self._addresses[name] = self.memory.bind(data, name, writable=True)
        floats = {name for name in offsets if f".f32 {name}" in self.module.text}
        for value, (name, count, _) in zip(self.args, params):
            at = offsets[name]
            self.param_bytes[at : at + count] = np.frombuffer(
                _argument(value, name, count, name in floats), np.uint8
            )

    def address_of(self, symbol: str) -> int:
        """Return the address of a parameter or variable in its own state space."""
        if symbol in self._addresses:
            return self._addresses[symbol]
        if symbol in self.module.dynamic_shared:
            return self.dynamic_start
        if symbol in self.module.shared:
            return DYNAMIC_SHARED_START + self.module.shared[symbol]
        raise LaunchError(f"variable {symbol!r} has no address")

    def _choose_engine(self, layout: StateLayout) -> None:
        """Let the warps run compiled code, where it is wanted and can be had."""
        if self.engine not in ("auto", "compiled", "interpreter"):
            raise LaunchError(f"engine = {self.engine!r}: take 'auto', 'compiled' or 'interpreter'")
        if self.engine == "interpreter":
            return
        try:
            from ..compiled.engine import CompiledEngine, CompiledProgram
        except ImportError as error:
            if self.engine == "compiled":
                raise LaunchError(
                    f"engine = 'compiled' needs llvmlite: pip install llvmlite ({error})"
                ) from error
            return
        self.program_code = CompiledProgram(
            self.pieces, layout, self.address_of, f"{self.module.text}{self.entry.name}{layout.specials}"
        )
        for warp in self.live.warps:
            warp.engine = CompiledEngine(warp, self.program_code)

    @property
    def watches(self) -> int:
        """What compiled code must leave to the machine: bits of ``machine.state``."""
        bits = self.schedule.watches | (WATCH_STAGES if self.trace else 0)
        return bits if self.checker is None else bits | WATCH_ACCESSES | WATCH_SIGNALS | WATCH_TMEM_STORES

    # -- running ----------------------------------------------------------------------
    @property
    def cta(self):
        """The CTA of rank 0 of the running cluster."""
        return self.live.ctas[0]

    def next_cluster(self) -> int | None:
        """Hand out the number of the first cluster that has not been started; None when there is none."""
        if self._next == np.prod(self.clusters, dtype=np.int64):
            return None
        self._next += 1
        return self._next - 1

    def _start(self, number: int) -> None:
        self.live.reset(number)
        self._turn = 0

    def start(self) -> None:
        """Set up the first cluster (once), so that its memory can be written before anything runs."""
        if not self._started:
            self._initial_memory = self.memory.snapshot()
            self.global_table = self.memory.table()
            for warp in self.live.warps:
                warp.connect()
            self._next, self._finished = 0, False
            self._start(self.next_cluster())
            self._started, self.steps = True, 0

    def checkpoint(self) -> int:
        """Return a mark of the present state for :meth:`restore`: the number of scheduling steps done."""
        self.start()
        return self.steps

    def restore(self, checkpoint: int) -> None:
        """Go back (or forward) to a checkpoint of this machine.

        Runs are deterministic, so the state is made again: writable global arrays get their initial contents, and the
        program is replayed. What was written by hand since the start is lost; hooks are not called.
        """
        if self._started:
            self.memory.restore(self._initial_memory)
        self.schedule = schedule_of(self._schedule_name)
        self._executed = self._lanes_executed = self.ctas_done = 0
        self.timeline.clear()
        self._started = False
        self.start()
        hooks, self._hooks = self._hooks, []
        try:
            if checkpoint:
                self.run_until(lambda machine: machine.steps >= checkpoint)
        finally:
            self._hooks = hooks

    def step(self) -> bool:
        """Do one scheduling step (a warp runs until it waits, or one asynchronous operation lands).

        Returns
        -------
        bool
            False when the whole grid has finished.
        """
        with np.errstate(all="ignore"):
            return self._step()

    def _step(self) -> bool:
        self.start()
        if self._finished:
            return False
        self.steps += 1
        runnable, queues = self._runnable(), self.live.queues
        if not runnable and not queues:
            if not all(w.done for w in self.live.warps):
                raise Deadlock(self.deadlock_report())
            self._finish_cluster()
            return not self._finished
        choice = self.schedule.pick(runnable, queues)
        if choice[0] == "unit":
            self.live.land_next(choice[1])
        else:
            warp = choice[1]
            warp.run(choice[2])
            self._count(warp)
            if warp.done:
                isa.end_of_warp(warp)
        if self._executed > self.max_steps:
            raise StepLimit(
                f"{self._executed:,} warp-instructions and not finished (limit {self.max_steps:,}): an endless loop? "
                f"Raise max_steps if the kernel is just long. Last: {self.live.warps[0].where()}"
            )
        for hook in tuple(self._hooks):
            hook.function(self)
        return True

    def _count(self, warp: Warp) -> None:
        """Collect what a warp has executed."""
        self._executed += int(warp.state["executed"])
        self._lanes_executed += int(warp.state["lanes_executed"])
        warp.state["executed"] = warp.state["lanes_executed"] = 0

    @property
    def executed(self) -> int:
        """Warp-instructions executed so far."""
        return self._executed + sum(int(warp.state["executed"]) for warp in self.live.warps)

    @property
    def lanes_executed(self) -> int:
        """Lane-instructions executed so far."""
        return self._lanes_executed + sum(int(warp.state["lanes_executed"]) for warp in self.live.warps)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return int(np.prod(self.grid, dtype=np.int64))

    def _runnable(self) -> list[Warp]:
        """Return the warps that can run, the one whose turn it is first."""
        warps, out, first = self.live.warps, [], 0
        count = len(warps)
        for k in range(count):
            at = (self._turn + k) % count
            warp = warps[at]
            if warp.done:
                continue
            if warp.waiting is not None and warp.waiting.ready():
                if self.checker is not None and hasattr(warp.waiting, "meeting"):
                    self.checker.released(warp, warp.waiting.meeting)
                warp.waiting = None
            if warp.waiting is None:
                if not out:
                    first = at
                out.append(warp)
        if out:
            self._turn = first + 1
        return out

    def count_cluster(self) -> None:
        """A cluster has run, or its work was taken over by a running one."""
        self.ctas_done += self.live.size
        if self.progress is not None:
            self.progress(self.ctas_done, self.ctas)

    def _finish_cluster(self):
        if self.checker is not None:
            self.checker.finish()
        self.count_cluster()
        number = self.next_cluster()
        self._finished = number is None
        if number is not None:
            self._start(number)

    def run(self) -> RunStats:
        """Run to the end of the grid.

        Raises
        ------
        Deadlock, Hazard, MemoryFault, StepLimit
            As the program deserves; each names CTA, warp, role and PTX line.
        """
        return self.run_until(lambda machine: False)

    def run_until(self, condition: Callable) -> RunStats:
        """Run until ``condition(machine)`` is true after a scheduling step, or to the end."""
        before = time.perf_counter()
        collecting = gc.isenabled()
        gc.disable()  # a run makes no cycles, but many objects: collections would only scan them
        try:
            with np.errstate(all="ignore"):
                while self._step():
                    if condition(self):
                        break
        finally:
            if collecting:
                gc.enable()
        return RunStats(self.executed, self.lanes_executed, self.ctas_done, time.perf_counter() - before)

    def hook(self, function: Callable) -> _Hook:
        """Call ``function(machine)`` after every scheduling step; the result's ``remove()`` takes it back."""
        return _Hook(self._hooks, function)

    # -- looking inside: ``cta`` is the rank in the running cluster -----------------------
    def read_shared(self, offset: int, size: int, cta: int = 0) -> np.ndarray:
        """Return a copy of bytes of a CTA's dynamic shared memory."""
        at, owner = self.dynamic_start + offset, self.live.ctas[cta]
        owner.touch_shared(at, size, "read_shared")
        return owner.shared[at : at + size].copy()

    def write_shared(self, offset: int, data, cta: int = 0) -> None:
        """Overwrite bytes of a CTA's dynamic shared memory."""
        data = np.frombuffer(bytes(data), np.uint8)
        at, owner = self.dynamic_start + offset, self.live.ctas[cta]
        owner.touch_shared(at, data.size, "write_shared", write=True)
        owner.shared[at : at + data.size] = data

    def read_tmem(self, first_col: int = 0, cols: int = 512, cta: int = 0) -> np.ndarray:
        """Return a copy of tensor memory columns as uint32 (128, cols)."""
        return self.live.ctas[cta].tmem[:, first_col : first_col + cols].copy()

    def write_tmem(self, first_col: int, cells: np.ndarray, cta: int = 0) -> None:
        """Overwrite tensor memory columns with uint32 ``cells`` (128, n)."""
        self.live.ctas[cta].tmem[:, first_col : first_col + cells.shape[1]] = cells

    def registers(self, warp: int, width: int = 32, cta: int = 0) -> np.ndarray:
        """Return a copy of a warp's registers of one width: (registers, 32 lanes)."""
        return self.live.ctas[cta].warps[warp].registers[width].copy()

    def write_registers(self, warp: int, values: np.ndarray, width: int = 32, cta: int = 0) -> None:
        """Overwrite a warp's registers of one width: (registers, 32 lanes)."""
        self.live.ctas[cta].warps[warp].registers[width][...] = values

    def mark(self, warp: Warp, key: str, value: str) -> None:
        """A marker of the program was passed: a role begins, or a stage of it."""
        if self.trace and key == "stage":
            self.timeline.append(Event(self.executed, warp.cta.index, f"{warp.role} w{warp.index}", value))

    def event(self, cta, who: str, what: str) -> None:
        """An asynchronous unit of a CTA did something."""
        if self.trace:
            self.timeline.append(Event(self.executed, cta.index, who, what))

    def deadlock_report(self) -> str:
        """Return one line per waiting warp: who waits for what, and who came last."""
        lines = [f"deadlock in {self.live.where()}: no warp can run and nothing is in flight"]
        for warp in self.live.warps:
            if not warp.done and warp.waiting is not None:
                lines.append(
                    f"  warp {warp.index} ({warp.role}) {warp.waiting.describe()}; at {warp.where()}"
                )
        return "\n".join(lines)


def _argument(value, name: str, size: int, is_float: bool) -> bytes:
    """Return the bytes of one kernel argument."""
    if isinstance(value, TensorMapSpec):
        data = value.pack()
    elif isinstance(value, bytes | np.generic):
        data = bytes(value)
    elif is_float or isinstance(value, float):
        data = np.array(value, f"f{size}").tobytes()
    elif isinstance(value, int):
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise LaunchError(f"argument {name} = {value}: does not fit {size} bytes")
        data = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    else:
        raise LaunchError(
            f"argument {name}: cannot pass a {type(value).__name__}; take an int, float or TensorMapSpec"
        )
    if len(data) != size:
        raise LaunchError(f"argument {name} has {len(data)} bytes, the kernel declares {size}")
    return data
