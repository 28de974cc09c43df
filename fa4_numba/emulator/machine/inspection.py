"""Looking into a machine: memories and registers, the timeline, hooks, and what to say of a deadlock."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


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
    """One entry of the timeline. ``at`` is the machine's ``time``: without a clock an order only."""

    at: int
    cta: tuple[int, int, int]
    who: str
    what: str


class Hook:
    """A registered callback; ``remove()`` takes it back."""

    def __init__(self, hooks: list, function: Callable):
        self._hooks, self.function = hooks, function
        hooks.append(self)

    def remove(self) -> None:
        if self in self._hooks:
            self._hooks.remove(self)


class Inspection:
    """What a machine shows of itself; ``cta`` is the rank in the running cluster."""

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

    def mark(self, warp, key: str, value: str) -> None:
        """A marker of the program was passed: a role begins, or a stage of it."""
        if self.trace and key == "stage":
            self.timeline.append(Event(self.time, warp.cta.index, f"{warp.role} w{warp.index}", value))

    def event(self, cta, who: str, what: str) -> None:
        """An asynchronous unit of a CTA did something."""
        if self.trace:
            self.timeline.append(Event(self.time, cta.index, who, what))

    def deadlock_report(self) -> str:
        """Return one line per waiting warp: who waits for what, and who came last."""
        lines = [f"deadlock in {self.live.where()}: no warp can run and nothing is in flight"]
        for warp in self.live.warps:
            if not warp.done and warp.waiting is not None:
                lines.append(
                    f"  warp {warp.index} ({warp.role}) {warp.waiting.describe()}; at {warp.where()}"
                )
        return "\n".join(lines)
