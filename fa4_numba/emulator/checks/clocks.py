"""Vector clocks: one component per warp, per asynchronous unit of a warp or CTA, and per mbarrier."""

import numpy as np


class Clock:
    """What somebody has seen: ``seen[c]``: all of component c up to that time; ``fenced[c]``: of thread c's writes, up to
    which time a proxy fence has made them visible to the async proxy.
    """

    __slots__ = ("fenced", "seen")

    def __init__(self, size: int):
        self.seen, self.fenced = np.zeros(size, np.int32), np.zeros(size, np.int32)

    def copy(self) -> "Clock":
        other = Clock.__new__(Clock)
        other.seen, other.fenced = self.seen.copy(), self.fenced.copy()
        return other

    def join(self, other: "Clock") -> None:
        """Learn what another has seen."""
        np.maximum(self.seen, other.seen, out=self.seen)
        np.maximum(self.fenced, other.fenced, out=self.fenced)


class Components:
    """Hands out numbers of components. ``limit``: how many there can be."""

    def __init__(self, limit: int):
        self.limit = limit
        self.names: list[str] = ["nobody"]

    def new(self, name: str) -> int:
        if len(self.names) == self.limit:
            raise OverflowError
        self.names.append(name)
        return len(self.names) - 1
