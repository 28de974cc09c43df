"""Looking for a schedule that a kernel does not survive, and for the simplest such one."""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Fa4Error
from .machine.schedule import Random


@dataclass(frozen=True)
class Failure:
    """A schedule under which a kernel went wrong. ``decisions``: how many of its decisions are random; ``message``: how."""

    schedule: Random
    decisions: int
    message: str


def run_seeds(attempt: Callable, seeds, progress: Callable | None = None) -> list[Failure]:
    """Run ``attempt(schedule)`` for every seed.

    Parameters
    ----------
    attempt : callable
        Launches and runs the kernel anew under a schedule; returns "" if the result is right, else what is wrong. An
        ``Fa4Error`` (deadlock, hazard, fault) is a failure, too.
    seeds : sequence of int
    progress : callable
        ``progress(done, total)`` after each seed.

    Returns
    -------
    list of Failure
    """
    failures, total = [], len(seeds)
    for done, seed in enumerate(seeds, 1):
        schedule = Random(seed)
        message = _message(attempt, schedule)
        if message:
            failures.append(Failure(schedule, schedule.decisions, message))
        if progress is not None:
            progress(done, total)
    return failures


def minimise(attempt: Callable, failure: Failure) -> Failure:
    """Return a failure of the same seed with as few random decisions as can be found (delta debugging).

    First the shortest prefix of random decisions that still fails is sought, then whole parts of it are made eager, and
    smaller and smaller ones, as long as the run still fails.
    """
    seed, best = failure.schedule.seed, failure

    def fails(kept) -> bool:
        nonlocal best
        schedule = Random(seed, frozenset(kept))
        message = _message(attempt, schedule)
        if message and len(kept) < best.decisions:
            best = Failure(schedule, len(kept), message)
        return bool(message)

    low, high = 0, failure.decisions  # the first ``high`` decisions are enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(range(middle)) else (middle + 1, high)
    kept, parts = list(range(high)), 2
    while kept and parts <= len(kept):
        size = -(-len(kept) // parts)
        for first in range(0, len(kept), size):
            rest = kept[:first] + kept[first + size :]
            if fails(rest):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            parts = 2 * parts if parts < len(kept) else len(kept) + 1
    return best


def _message(attempt: Callable, schedule: Random) -> str:
    try:
        return attempt(schedule)
    except Fa4Error as error:
        return f"{type(error).__name__}: {error}"
