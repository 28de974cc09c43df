"""Shadow memory: for every granule who wrote it last, and who has read it since."""

import numpy as np

NOBODY = 0  # the event of granules that nobody has touched
UNKNOWN = np.iinfo(np.int32).max  # the time of an event that has not completed


class Events:
    """All accesses so far: whose clock tells when one is complete, at which time of that clock, and where it was."""

    def __init__(self):
        self.component = np.zeros(1024, np.int32)
        self.time = np.zeros(1024, np.int32)
        self.thread = np.zeros(1024, bool)  # made through the generic proxy
        self.places: list = [None]
        self.kinds: list[str] = [""]

    def add(self, component: int, time: int, place, kind: str) -> int:
        """Record an access and return its number."""
        number = len(self.places)
        if number == len(self.time):
            self.component = np.concatenate([self.component, np.zeros_like(self.component)])
            self.time = np.concatenate([self.time, np.zeros_like(self.time)])
            self.thread = np.concatenate([self.thread, np.zeros_like(self.thread)])
        self.component[number], self.time[number] = component, time
        self.thread[number] = kind in ("thread", "atomic", "cp.async")
        self.places.append(place)
        self.kinds.append(kind)
        return number

    def unseen(self, numbers: np.ndarray, clock: np.ndarray) -> np.ndarray:
        """Return which of the events a clock need not have seen complete."""
        return self.time[numbers] > clock[self.component[numbers]]


class Shadow:
    """The shadow of one memory of one CTA."""

    def __init__(self, granules):
        self.writer = np.zeros(granules, np.int32)
        self.readers: dict[int, np.ndarray] = {}  # component → its last reading event of each granule

    def read(self, granules, component: int, event: int) -> None:
        row = self.readers.get(component)
        if row is None:
            row = self.readers[component] = np.zeros_like(self.writer)
        row[granules] = event

    def write(self, granules, event: int) -> None:
        self.writer[granules] = event
        for row in self.readers.values():
            row[granules] = NOBODY
