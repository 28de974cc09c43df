"""Schedules: in which order warps run, and when asynchronous work lands."""

import random

from ...errors import LaunchError

TURN = 1 << 20  # steps a warp may run before the next one's turn, where nothing else ends it


class Eager:
    """Asynchronous work lands at once."""

    at_once = True

    def store_lands_now(self) -> bool:
        return True

    def pick(self, runnable: list, queues: dict):
        """Return ("warp", warp, steps) or ("unit", key)."""
        return ("warp", runnable[0], TURN) if runnable else ("unit", next(iter(queues)))



class Late(Eager):
    """Asynchronous work lands only when no warp can run: as late as a correct program allows."""

    at_once = False

    def store_lands_now(self) -> bool:
        return False


class Random:
    """Warps are preempted at random, work lands in random order (FIFO within a unit), by seed."""

    at_once = False

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def store_lands_now(self) -> bool:
        return self.random.random() < 0.5

    def pick(self, runnable: list, queues: dict):
        if queues and (not runnable or self.random.random() < 0.3):
            return ("unit", self.random.choice(list(queues)))
        return ("warp", self.random.choice(runnable), self.random.randint(1, 40))


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
