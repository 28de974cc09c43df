"""The machine: launches an entry over a grid and runs it cluster by cluster."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...errors import Deadlock, LaunchError, StepLimit
from ...layout import TensorMapSpec
from .. import isa
from ..checks import Checker
from ..ptx import Module, build_blocks, parse
from ..ptx.parser import DYNAMIC_SHARED_START
from ..timing import Clock, Timing, timing_arch
from . import parallel
from .blas import one_thread
from .cluster import Cluster
from .inspection import Event, Hook, Inspection, RunStats
from .loading import Loading
from .memory import GlobalMemory
from .program import costs_text, flatten, specials_of
from .schedule import Model, schedule_of
from .state import WATCH_ACCESSES, WATCH_SIGNALS, WATCH_STAGES, WATCH_TMEM_STORES, StateLayout
from .warp import Warp

_DEFAULT_MAX_STEPS = 10**10


@dataclass
class Machine(Loading, Inspection, parallel.Apart):
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
        "eager", "late", "random:SEED", "delay:ROLE-OR-UNIT", "model" (by the timing model's clock: see ``timing``), or a
        schedule of ``machine.schedule``.
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
    workers : int
        Processes that run clusters in parallel where that pays and clusters cannot communicate; None: one per core.
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
    workers: int | None = None

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
        self._hooks: list[Hook] = []
        self._pack_arguments()
        self.checker = Checker(self) if self.check else None
        self.clock = self._make_clock()
        layout = StateLayout(self.entry.register_counts, specials_of(self.pieces))
        self.live = Cluster(self, lambda cta, i: Warp(cta, i, self.entry, self.pieces, layout))
        self._choose_engine(layout)
        self._started = self._between_clusters = False

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
            self.pieces,
            layout,
            self.address_of,
            f"{self.module.text}{self.entry.name}{layout.specials}{costs_text(self.pieces)}",
        )
        for warp in self.live.warps:
            warp.engine = CompiledEngine(warp, self.program_code)

    def _make_clock(self) -> Clock | None:
        """Return the model's clock, if the schedule asks for it."""
        if not isinstance(self.schedule, Model):
            return None
        return Clock(self, timing_arch(self.schedule.target or self.module.target))

    @property
    def timing(self) -> Timing:
        """What the timing model says of the run so far."""
        if self.clock is None:
            raise LaunchError("no clock ran: make the machine with schedule='model'")
        return self.clock.timing

    @property
    def time(self) -> int:
        """Cycles of the clock; without one, executed warp-instructions: an order, not a time."""
        return self.executed if self.clock is None else int(self.clock.now)

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
        if self._next == self.total_clusters:
            return None
        self._next += 1
        return self._next - 1

    def _start(self, number: int) -> None:
        self.live.reset(number)
        self._turn = 0
        if self.clock is not None:
            self.clock.start(self.live)

    def start(self) -> None:
        """Set up the first cluster (once), so that its memory can be written before anything runs."""
        if not self._started:
            self._initial_memory = self.memory.snapshot()
            self.connect()
            self._next, self._finished = 0, False
            self._start(self.next_cluster())
            self._started, self.steps = True, 0

    def connect(self) -> None:
        """Tell compiled code where the memories lie."""
        self.global_table = self.memory.table()
        for warp in self.live.warps:
            warp.connect()

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
        self.clock = self._make_clock()
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
        self._between_clusters = False
        if not (self._move() if self.clock is None else self.clock.step()):
            if not all(w.done for w in self.live.warps):
                raise Deadlock(self.deadlock_report())
            self._finish_cluster()
            return not self._finished
        if self._executed > self.max_steps:
            raise StepLimit(
                f"{self._executed:,} warp-instructions and not finished (limit {self.max_steps:,}): an endless loop? "
                f"Raise max_steps if the kernel is just long. Last: {self.live.warps[0].where()}"
            )
        for hook in tuple(self._hooks):
            hook.function(self)
        return True

    def _move(self) -> bool:
        """Let the schedule choose a warp to run or work to land; return False if there is none."""
        runnable, queues = self._runnable(), self.live.queues
        if not runnable and not queues:
            return False
        choice = self.schedule.pick(runnable, queues)
        if choice[0] == "unit":
            self.live.land_next(choice[1])
        else:
            choice[1].run(choice[2])
            self.count(choice[1])
        return True

    def count(self, warp: Warp) -> None:
        """A warp's turn is over, or its life."""
        self.collect(warp)
        if warp.done:
            isa.end_of_warp(warp)

    def collect(self, warp: Warp) -> None:
        """Add what a warp has executed to the totals."""
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
        if self.clock is not None:
            self.clock.finish()
        self.count_cluster()
        number = self.next_cluster()
        self._finished = number is None
        if number is not None:
            self._start(number)
        self._between_clusters = True

    def run(self) -> RunStats:
        """Run to the end of the grid.

        Raises
        ------
        Deadlock, Hazard, MemoryFault, StepLimit
            As the program deserves; each names CTA, warp, role and PTX line.
        """
        before = time.perf_counter()
        self.run_until(lambda machine: machine._between_clusters)
        while not self._finished:
            per_cluster = (time.perf_counter() - before) * self.live.size / self.ctas_done
            workers = parallel.workers_for(self, per_cluster)
            if workers > 1:
                parallel.run_remaining(self, workers)
                break
            self.run_until(lambda machine: machine._between_clusters)
        return RunStats(self.executed, self.lanes_executed, self.ctas_done, time.perf_counter() - before)

    def run_until(self, condition: Callable) -> RunStats:
        """Run until ``condition(machine)`` is true after a scheduling step, or to the end."""
        before = time.perf_counter()
        collecting = gc.isenabled()
        gc.disable()  # a run makes no cycles, but many objects: collections would only scan them
        try:
            with np.errstate(all="ignore"), one_thread():
                while self._step():
                    if condition(self):
                        break
        finally:
            if collecting:
                gc.enable()
        return RunStats(self.executed, self.lanes_executed, self.ctas_done, time.perf_counter() - before)

    def hook(self, function: Callable) -> Hook:
        """Call ``function(machine)`` after every scheduling step; the result's ``remove()`` takes it back."""
        return Hook(self._hooks, function)
