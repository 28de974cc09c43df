"""What a warp can wait for.

``ready()`` says whether it may go on, ``describe()`` is its line in a deadlock report; ``advance`` is False where the
waiting instruction runs again afterwards.
"""

from dataclasses import dataclass

from .barriers import MBarrier, NamedBarrier
from .copy_groups import Groups


@dataclass
class PhaseWait:
    """Waits for an mbarrier's phase; the waiting instruction runs again afterwards."""

    advance = False

    barrier: MBarrier
    parity: int
    peeks: bool = False  # the program may want to hear that the phase has not completed

    def ready(self) -> bool:
        return self.barrier.passed(self.parity)

    def describe(self) -> str:
        return f"waits for parity {self.parity} of {self.barrier.describe()}"


@dataclass
class NamedWait:
    """Waits until a named barrier has released the generation it joined."""

    advance = True

    barrier: NamedBarrier
    generation: int
    meeting: tuple

    def ready(self) -> bool:
        return self.barrier.generation != self.generation

    def describe(self) -> str:
        b = self.barrier
        return f"waits at barrier {b.number}: {b.arrived} of {b.threads} threads have arrived"


@dataclass
class ClusterWait:
    """Waits until every thread of the cluster has arrived ``wanted`` times at its barrier."""

    advance = True

    barrier: object
    wanted: int

    @property
    def meeting(self) -> tuple:
        return "cluster", self.wanted

    def ready(self) -> bool:
        return self.barrier.completed() >= self.wanted

    def describe(self) -> str:
        return f"waits at the cluster barrier for its phase {self.wanted}: not arrived: {self.barrier.missing(self.wanted)}"


@dataclass
class GroupWait:
    """Waits until all groups of asynchronous work but the newest ``allowed`` are complete."""

    advance = True

    groups: Groups
    allowed: int

    def ready(self) -> bool:
        return self.groups.settled(self.allowed)

    def describe(self) -> str:
        return self.groups.describe(self.allowed)


@dataclass
class IdleWait:
    """Waits until no asynchronous work of these groups is in flight."""

    advance = True

    groups: Groups

    def ready(self) -> bool:
        return self.groups.idle()

    def describe(self) -> str:
        return self.groups.describe(0)


@dataclass
class TmemWait:
    """Waits until enough tensor memory is free for ``tcgen05.alloc``."""

    advance = False

    cta: object
    columns: int

    def ready(self) -> bool:
        return self.cta.free_tmem(self.columns) is not None

    def describe(self) -> str:
        have = ", ".join(f"{first}-{first + n - 1}" for first, n in self.cta.allocated.items())
        return f"waits for {self.columns} free columns of tensor memory (allocated: {have})"


@dataclass
class RegisterWait:
    """Waits until the CTA's pool holds enough registers for ``setmaxnreg.inc``."""

    advance = False

    cta: object
    needed: int

    def ready(self) -> bool:
        return self.cta.free_registers >= self.needed

    def describe(self) -> str:
        return f"waits for {self.needed} registers, the pool holds {self.cta.free_registers} (setmaxnreg budgets too large?)"
