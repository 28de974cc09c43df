"""Groups of asynchronous work that a warp commits and waits for: bulk copies, cp.async, wgmma."""


class Groups:
    """Operations join the open group; ``commit`` closes it; a wait allows the newest few groups to be incomplete."""

    def __init__(self, what: str):
        self.what = what
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._committed: list[list] = []  # each a list of one count: operations in flight
        self._open = [0]

    def begin(self) -> list:
        """An operation begins: return its group, to be given to :meth:`end`."""
        self._open[0] += 1
        return self._open

    def end(self, group: list) -> None:
        """An operation of a group is complete."""
        group[0] -= 1

    def commit(self) -> None:
        """Close the open group, empty or not."""
        self._committed.append(self._open)
        self._open = [0]

    def settled(self, allowed: int) -> bool:
        """Return whether all committed groups but the newest ``allowed`` are complete."""
        older = self._committed[: len(self._committed) - allowed]
        if any(group[0] for group in older):
            return False
        del self._committed[: len(older)]
        return True

    def idle(self) -> bool:
        """Return whether nothing is in flight, committed or not."""
        return not self._open[0] and not any(group[0] for group in self._committed)

    def describe(self, allowed: int) -> str:
        incomplete = sum(1 for group in self._committed if group[0])
        return f"waits for {self.what}: {incomplete} of {len(self._committed)} groups incomplete, {allowed} allowed"
