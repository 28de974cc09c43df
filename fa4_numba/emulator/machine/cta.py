"""A CTA: its memories, barriers, asynchronous units and warps."""

from collections import deque

import numpy as np

from ...errors import Hazard, MemoryFault
from .barriers import MBarrier, NamedBarrier

POISON = 0xFF  # uninitialised bytes: every float of them is NaN
TMEM_LANES, TMEM_COLS = 128, 512
SHARED_LIMIT_BYTES = 232448 + 1024


class CTA:
    """State of one CTA. The arrays are reused by the next CTA: instructions stay bound to them."""

    def __init__(self, machine, shared_bytes: int):
        self.machine = machine
        # 16-byte pieces past the end never exist: an access beyond shared_bytes is a fault
        self.shared_bytes = shared_bytes
        self.shared = np.empty(-(-shared_bytes // 1024) * 1024, np.uint8)
        self.shared16 = self.shared.view(np.uint64).reshape(-1, 2)
        self.tmem = np.empty((TMEM_LANES, TMEM_COLS), np.uint32)
        self.allocated_groups = np.zeros(1, np.uint64)  # a bit per 32 allocated TMEM columns
        self.warps = []
        self.index = (0, 0, 0)

    def reset(self, index: tuple[int, int, int]) -> None:
        """Start CTA ``index``: poisoned memory, no barriers."""
        self.index = index
        self.shared.fill(POISON)
        self.tmem.fill(0xFFFFFFFF)
        self.mbarriers: dict[int, MBarrier] = {}
        self.named = {i: NamedBarrier(i) for i in range(16)}
        self.allocated: dict[int, int] = {}  # first TMEM column → columns
        self.allocation_changed()
        self.free_registers = 0
        self.queues: dict[object, deque] = {}  # asynchronous work: one FIFO per unit

    # -- asynchronous work --------------------------------------------------------
    def issue(self, unit, land, what: str) -> None:
        """Hand work to an asynchronous unit; ``land()`` happens when the schedule says so, FIFO per unit."""
        schedule = self.machine.schedule
        if schedule.at_once:
            land()
        else:
            self.queues.setdefault(unit, deque()).append((land, what))

    def land_next(self, unit) -> str:
        """Let the oldest work of ``unit`` land."""
        queue = self.queues[unit]
        land, what = queue.popleft()
        if not queue:
            del self.queues[unit]
        land()
        return what

    def allocation_changed(self) -> None:
        """Note the columns of ``allocated`` for compiled code."""
        bits = sum(((1 << n // 32) - 1) << first // 32 for first, n in self.allocated.items())
        self.allocated_groups[0] = bits

    # -- memory ---------------------------------------------------------------------
    def check_shared(self, low: int, size: int, what: str) -> int:
        """Return ``low`` if [low, low + size) is shared memory of this CTA."""
        if low < 0 or low + size > self.shared_bytes:
            raise MemoryFault(
                f"{what}: shared address {low:#x} ({size} bytes) is outside of the {self.shared_bytes} bytes of this CTA"
            )
        return low

    def check_tmem(self, col: int, cols: int, what: str) -> None:
        """Fault unless columns [col, col + cols) are allocated."""
        if not any(first <= col and col + cols <= first + n for first, n in self.allocated.items()):
            have = ", ".join(f"{a}-{a + n - 1}" for a, n in self.allocated.items()) or "none"
            raise MemoryFault(
                f"{what}: tensor memory columns {col}-{col + cols - 1} are not allocated (allocated: {have})"
            )

    def mbarrier(self, address: int, what: str) -> MBarrier:
        """Return the initialised mbarrier at a shared address."""
        barrier = self.mbarriers.get(address)
        if barrier is None:
            raise Hazard(
                f"{what}: no mbarrier was initialised at shared address {address:#x}{self._name(address)}"
            )
        return barrier

    def init_mbarrier(self, address: int, count: int, what: str) -> None:
        self.check_shared(address, 8, what)
        if address % 8 or not 1 <= count < 1 << 20:
            raise MemoryFault(
                f"{what}: an mbarrier needs an 8-byte aligned address and a count of 1 to 2**20 - 1, got {count}"
            )
        self.mbarriers[address] = MBarrier(address, self.name_of(address), count)

    def name_of(self, address: int) -> str:
        return self.machine.shared_names.get(address, f"mbarrier at {address:#x}")

    def _name(self, address: int) -> str:
        name = self.machine.shared_names.get(address)
        return f" ({name})" if name else ""
