"""Schedules: in which order warps run, and when asynchronous work lands."""

from ...errors import LaunchError
from .state import WATCH_SIGNALS, WATCH_TMEM_STORES

TURN = 1 << 20  # steps a warp may run before the next one's turn, where nothing else ends it


class Eager:
    """Asynchronous work lands at once."""

    at_once = True
    repeatable = True  # a cluster runs the same way whatever ran before it
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


class Model(Eager):
    """In the order, and at the times, of the timing model. ``target``: whose numbers it takes, as PTX spells it."""

    at_once = False
    repeatable = False  # the clock's records are kept in this process
    watches = WATCH_SIGNALS

    def __init__(self, target: str):
        self.target = target


class Delayed(Late):
    """One role or unit is as slow as can be: it moves only when nothing else can. All other work lands at once.

    ``who``: a role ("softmax0", "warp 3"), or part of a unit's name ("tma", "tensor core").
    """

    watches = WATCH_TMEM_STORES

    def __init__(self, who: str):
        self.who = who

    def store_lands_now(self) -> bool:
        return True

    def pick(self, runnable: list, queues: dict):
        others = [key for key in queues if self.who not in _unit_name(key)]
        if others:
            return ("unit", others[0])
        quick = [warp for warp in runnable if self.who not in (warp.role, f"warp {warp.index}")]
        if quick:
            return ("warp", quick[0], TURN)
        if runnable:
            return ("warp", runnable[0], 1)
        return ("unit", next(iter(queues)))


def _unit_name(key: tuple) -> str:
    unit = key[1]
    return unit if isinstance(unit, str) else unit[0]


class Random:
    """Warps are preempted at random, work lands in random order (FIFO within a unit), by seed.

    A warp that has just signalled a barrier is the interesting one to stop: whatever it does later must not be needed
    yet. So now and then it is put aside until much else has happened, or nothing else can.

    Every decision has a number and depends on it and the seed alone. ``kept``: the numbers of the decisions that are
    made at random, None for all; at the others the schedule does what ``Eager`` does. So a failing run can be made
    simpler decision by decision (see ``search.minimise``).
    """

    at_once = False
    repeatable = False
    watches = WATCH_TMEM_STORES | WATCH_SIGNALS

    def __init__(self, seed: int, kept: frozenset[int] | None = None):
        self.seed, self.kept = seed, kept
        self.decisions = self.picks = 0
        self.aside: dict[object, int] = {}  # warp → pick until which it is put aside

    def _dice(self) -> "_Dice | None":
        """Return the dice of the next decision, or None if it is not to be random."""
        number = self.decisions
        self.decisions += 1
        if self.kept is not None and number not in self.kept:
            return None
        return _Dice(self.seed * 0x9E3779B97F4A7C15 + number)

    def store_lands_now(self) -> bool:
        dice = self._dice()
        return dice is None or dice.chance() < 0.5

    def signalled(self, warp) -> None:
        """Maybe stop a warp that has arrived at a barrier."""
        dice = self._dice()
        if dice is None:
            return
        chance = dice.chance()
        if chance < 0.5:
            warp.budget = 0
        if chance < 0.25:
            self.aside[warp] = self.picks + 1 + dice.below(100)

    def pick(self, runnable: list, queues: dict):
        self.picks += 1
        dice = self._dice()
        if dice is None:
            return ("unit", next(iter(queues))) if queues else ("warp", runnable[0], TURN)
        ready = [warp for warp in runnable if self.aside.get(warp, 0) <= self.picks]
        if queues and (not ready or dice.chance() < 0.3):
            return ("unit", list(queues)[dice.below(len(queues))])
        among = ready or runnable
        return ("warp", among[dice.below(len(among))], 1 + dice.below(40))


class _Dice:
    """A small generator (splitmix64) that costs nothing to start: one per decision."""

    def __init__(self, state: int):
        self.state = state & _MASK

    def _next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
        return z ^ z >> 31

    def chance(self) -> float:
        return self._next() / 2.0**64

    def below(self, n: int) -> int:
        return self._next() % n


_MASK = (1 << 64) - 1


def schedule_of(schedule):
    """Return the schedule for "eager", "late", "random:SEED" or "delay:ROLE-OR-UNIT"; schedules stay as they are."""
    if hasattr(schedule, "pick"):
        return schedule
    kind, _, rest = str(schedule).partition(":")
    if kind == "eager" and not rest:
        return Eager()
    if kind == "late" and not rest:
        return Late()
    if kind == "random" and (rest.isdigit() or not rest):
        return Random(int(rest or 0))
    if kind == "model":
        return Model(rest)
    if kind == "delay" and rest:
        return Delayed(rest)
    raise LaunchError(
        f"schedule = {schedule!r}: take 'eager', 'late', 'random:SEED' with an integer seed, 'model' (or 'model:sm_90', …), "
        "or 'delay:NAME' with a role (softmax0, load, mma, 'warp 3') or unit ('tma', 'tensor core')"
    )
