"""A named interval of shared or tensor memory, and the list that places one after another."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Region:
    """A named interval: bytes of shared memory or columns of tensor memory.

    Attributes
    ----------
    name : str
        Unique within a map; ring slots and barriers end in ``[index]``.
    start, end : int
        First byte or column, and the one after the last.
    kind : str
        Group of regions of one purpose ("q", "kv", "k", "v", "statistics", "scale", "barrier", ...).
    note : str
        What it holds, or what has happened when a barrier completes.
    arrivals : int
        Of an mbarrier: arrivals that complete a phase (0: reserved, never initialised).
    tx : bool
        Of an mbarrier: a phase also waits for the bytes of a TMA copy.
    """

    name: str
    start: int
    end: int
    kind: str
    note: str = ""
    arrivals: int = 0
    tx: bool = False

    @property
    def size(self) -> int:
        """Length: bytes, or columns in a map of tensor memory."""
        return self.end - self.start


class Layout:
    """Places regions one after another; ``at`` is the end of the last one."""

    def __init__(self, start: int = 0):
        self.at = start
        self.regions: list[Region] = []

    def add(
        self, name: str, length: int, kind: str, note: str = "", arrivals: int = 0, tx: bool = False
    ) -> None:
        """Append a region of ``length`` bytes."""
        self.regions.append(Region(name, self.at, self.at + length, kind, note, arrivals, tx))
        self.at += length
