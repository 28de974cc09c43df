"""Clusters in parallel: worker processes share the writable arrays and run every n-th cluster each.

Only programs whose clusters cannot talk to each other are run so: no atomics, no acquire or release in global memory, no
cluster launch control. Workers are forked, so that they have the machine as it stands.
"""

import contextlib
import ctypes
import mmap
import multiprocessing
import os
import pickle
import re
import warnings
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

from ...errors import EmulatorError

_WORTH_SECONDS = 1.0  # of remaining work; below, forking costs more than it saves
_TALKING = ("atom", "red", "multimem", "clusterlaunchcontrol", "cp.reduce", "tensormap")
_ORDERED = ("acquire", "release", "acq_rel", "relaxed", "volatile", "mmio")


def may_run_apart(instructions) -> bool:
    """Return whether no instruction lets clusters communicate."""
    for ins in instructions:
        if ins.parts[0] in _TALKING or ins.op.startswith(_TALKING):
            return False
        if ins.parts[0] in ("ld", "st") and any(part in _ORDERED for part in ins.parts):
            return False
    return True


def workers_for(machine, seconds_per_cluster: float) -> int:
    """Return how many processes shall run the clusters that remain; 1: this one alone."""
    remaining = machine.remaining_clusters
    possible = (
        hasattr(os, "fork")
        and machine.schedule.repeatable
        and not (machine.hooked or machine.trace or machine.checker is not None)
        and may_run_apart(machine.entry.instructions)
    )
    if not possible or remaining * seconds_per_cluster < _WORTH_SECONDS:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores if machine.workers is None else machine.workers, remaining)


def run_remaining(machine, workers: int) -> None:
    """Run the clusters that remain in ``workers`` processes; the machine has then finished.

    Raises
    ------
    Fa4Error
        What the first failing cluster raised.
    """
    context = multiprocessing.get_context("fork")
    first = machine.next_number
    with _shared_arrays(machine.memory), warnings.catch_warnings():
        machine.connect()
        # of forking a process with threads: the workers use none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        pipes = {}
        for k in range(workers):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(machine, first + k, workers, sender), daemon=True)
            process.start()
            sender.close()
            pipes[receiver] = process
        errors = _collect(machine, pipes)
    machine.connect()
    if errors:
        raise min(errors, key=lambda pair: pair[0])[1]
    machine.finished_elsewhere()


def _collect(machine, pipes: dict) -> list:
    """Read the workers' reports until all are done; return (cluster, exception) of those that failed."""
    errors = []
    while pipes:
        for receiver in wait(list(pipes)):
            try:
                kind, *what = receiver.recv()
            except EOFError:
                process = pipes.pop(receiver)
                process.join()
                if process.exitcode:
                    errors.append(
                        (1 << 62, EmulatorError(f"a worker process ended with status {process.exitcode}"))
                    )
                continue
            if kind == "cluster":
                machine.add_counts(*what)
            else:
                errors.append((what[0], pickle.loads(what[1])))
    return errors


def _work(machine, first: int, stride: int, sender) -> None:
    """Run clusters ``first``, ``first + stride``, … and report each."""
    _one_blas_thread()
    progress, machine.progress = machine.progress, None
    del progress
    try:
        for number in range(first, machine.total_clusters, stride):
            sender.send(("cluster", *machine.run_cluster(number)))
    except Exception as error:
        sender.send(("error", number, pickle.dumps(_portable(error))))
    sender.close()


def _portable(error: Exception) -> Exception:
    """Return an exception of the same class that holds text only."""
    return (
        type(error)(str(error))
        if isinstance(error, EmulatorError)
        else EmulatorError(f"{type(error).__name__}: {error}")
    )


@contextlib.contextmanager
def _shared_arrays(memory):
    """Let writable arrays lie in memory that processes share; their contents return to the host arrays at the end."""
    own = []
    for array in memory.writable_arrays():
        if not array.data.size:
            continue
        shared = np.frombuffer(mmap.mmap(-1, array.data.size), np.uint8)
        shared[:] = array.data
        own.append((array, array.data))
        array.data = shared
    try:
        yield
    finally:
        for array, data in own:
            data[:] = array.data
            array.data = data


def _one_blas_thread() -> None:
    """Workers have a core each: more threads in the BLAS would only get in each other's way."""
    with contextlib.suppress(OSError, AttributeError):
        paths = re.findall(r"\S*openblas\S*\.so\S*", Path("/proc/self/maps").read_text())
        for path in set(paths):
            library = ctypes.CDLL(path)
            for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads"):
                with contextlib.suppress(AttributeError):
                    getattr(library, name)(1)


class Apart:
    """What a machine does so that its clusters can run in several processes."""

    @property
    def total_clusters(self) -> int:
        return int(np.prod(self.clusters, dtype=np.int64))

    @property
    def remaining_clusters(self) -> int:
        """Clusters that have not begun to run."""
        return self.total_clusters - self.next_number

    @property
    def next_number(self) -> int:
        """Number of the first cluster that has not begun to run (it is set up already)."""
        return self._next - 1

    @property
    def hooked(self) -> bool:
        return bool(self._hooks)

    def run_cluster(self, number: int) -> tuple[int, int, int]:
        """Run one cluster; return its warp- and lane-instructions and its CTAs."""
        executed, lanes = self._executed, self._lanes_executed
        self._next, self._finished = self.total_clusters, False
        self._start(number)
        self.run_until(lambda machine: False)
        return self._executed - executed, self._lanes_executed - lanes, self.live.size

    def add_counts(self, executed: int, lanes: int, ctas: int) -> None:
        """Count a cluster that ran elsewhere."""
        self._executed += executed
        self._lanes_executed += lanes
        self.ctas_done += ctas
        if self.progress is not None:
            self.progress(self.ctas_done, self.ctas)

    def finished_elsewhere(self) -> None:
        """All remaining clusters ran elsewhere."""
        self._next, self._finished = self.total_clusters, True
