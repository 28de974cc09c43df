"""Schedules: in which order warps run, and when asynchronous work lands."""

import random

from ...errors import LaunchError
from .state import WATCH_SIGNALS, WATCH_TMEM_STORES

TURN = 1 << 20  # steps a warp may run before the next one's turn, where nothing else ends it


class Eager:
    """Asynchronous work lands at once."""

    at_once = True
    watches = 0  # instructions that the schedule has a say in: bits of machine.state

    def store_lands_now(self) -> bool:
        return True

    def signalled(self, warp) -> None:
        """A warp has arrived at a barrier."""

    def pick(self, runnable: list, queues: dict):
        """Return ("warp", warp, steps) or ("unit", key)."""
        return ("warp", runnable[0], TURN) if runnable else ("unit", next(iter(queues)))


class Late(Eager):
    """Asynchronous work lands only when no warp can run: as late as a correct program allows."""

    at_once = False
    watches = WATCH_TMEM_STORES

    def store_lands_now(self) -> bool:
        return False


class Random:
    """Warps are preempted at random, work lands in random order (FIFO within a unit), by seed.

    A warp that has just signalled a barrier is the interesting one to stop: whatever it does later must not be needed
    yet. So now and then it is put aside until much else has happened, or nothing else can.
    """

    at_once = False
    watches = WATCH_TMEM_STORES | WATCH_SIGNALS

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.picks = 0
        self.aside: dict[object, int] = {}  # warp → pick until which it is put aside

    def store_lands_now(self) -> bool:
        return self.random.random() < 0.5

    def signalled(self, warp) -> None:
        """Maybe stop a warp that has arrived at a barrier."""
        chance = self.random.random()
        if chance < 0.5:
            warp.budget = 0
        if chance < 0.25:
            self.aside[warp] = self.picks + self.random.randint(1, 100)

    def pick(self, runnable: list, queues: dict):
        self.picks += 1
        ready = [warp for warp in runnable if self.aside.get(warp, 0) <= self.picks]
        if queues and (not ready or self.random.random() < 0.3):
            return ("unit", self.random.choice(list(queues)))
        return ("warp", self.random.choice(ready or runnable), self.random.randint(1, 40))


def schedule_of(name: str):
    """Return the schedule for "eager", "late" or "random:SEED"."""
    kind, _, seed = str(name).partition(":")
    if kind == "eager" and not seed:
        return Eager()
    if kind == "late" and not seed:
        return Late()
    if kind == "random" and (seed.isdigit() or not seed):
        return Random(int(seed or 0))
    raise LaunchError(f"schedule = {name!r}: take 'eager', 'late' or 'random:SEED' with an integer seed")
