"""A CTA: its memories, barriers, asynchronous units and warps."""

from collections import deque

import numpy as np

from ...errors import Hazard, MemoryFault
from .barriers import MBarrier, NamedBarrier
from .memory import RANK_SHIFT, WINDOW_BYTES

POISON = 0xFF  # uninitialised bytes: every float of them is NaN
TMEM_LANES, TMEM_COLS = 128, 512


class CTA:
    """State of one CTA. The arrays are reused by the next CTA: instructions stay bound to them.

    Every access to shared or tensor memory goes through ``touch_shared`` or ``touch_tmem``: they check bounds and
    tell the machine's checker, if it has one.
    """

    def __init__(self, machine, cluster, rank: int, shared: np.ndarray):
        self.machine, self.cluster, self.rank = machine, cluster, rank
        # 16-byte pieces past the end never exist: an access beyond shared_bytes is a fault
        self.shared_bytes = machine.shared_bytes
        self.shared = shared
        self.shared16 = self.shared.view(np.uint64).reshape(-1, 2)
        self.shared128 = self.shared.view(np.complex128)  # 16-byte pieces, never read as numbers
        self.tmem = np.empty((TMEM_LANES, TMEM_COLS), np.uint32)
        self.allocated_groups = np.zeros(1, np.uint64)  # a bit per 32 allocated TMEM columns
        self.barrier_table: np.ndarray  # this CTA's part of the cluster's table of mbarriers
        self.warps = []
        self.index = (0, 0, 0)

    def reset(self, index: tuple[int, int, int]) -> None:
        """Start CTA ``index``: poisoned memory, no barriers."""
        self.index = index
        self.shared.fill(POISON)
        self.tmem.fill(0xFFFFFFFF)
        self.barrier_table.fill(0)
        self.mbarriers: dict[int, MBarrier] = {}
        self.named = {i: NamedBarrier(i) for i in range(16)}
        self.allocated: dict[int, int] = {}  # first TMEM column → columns
        self.allocation_changed()
        self.alloc_relinquished = False
        self.multiplies = None  # matrix multiplies collected to be done as one
        self.tensor_work = 0  # pieces of work on tensor memory in flight
        self.free_registers = 0

    # -- asynchronous work --------------------------------------------------------
    def issue(self, unit, land, what, amount=0) -> None:
        """Hand work to an asynchronous unit; ``land()`` happens when the schedule says so, FIFO per unit.

        ``amount``: what a clock asks about it: bytes of a copy, ``Batch.amount`` of multiplies.
        """
        if self.machine.checker is not None:
            land = self.machine.checker.issued(self, unit, land)
        if self.machine.schedule.at_once:
            land()
        else:
            self.cluster.queues.setdefault((self.rank, unit), deque()).append((land, what))
            if self.machine.clock is not None:
                self.machine.clock.issued(self, unit, what, amount)

    def event(self, who: str, what: str) -> None:
        """An asynchronous unit did something: an entry of the timeline."""
        self.machine.event(self, who, what)

    def allocation_changed(self) -> None:
        """Note the columns of ``allocated`` for compiled code."""
        bits = sum(((1 << n // 32) - 1) << first // 32 for first, n in self.allocated.items())
        self.allocated_groups[0] = bits

    # -- shared memory --------------------------------------------------------------
    def address_of(self, symbol: str) -> int:
        """Return the address of a parameter, or of this CTA's instance of a shared variable."""
        address = self.machine.address_of(symbol)
        return address | self.rank << RANK_SHIFT if address < WINDOW_BYTES else address

    def reach(self, address: int, what) -> tuple["CTA", int]:
        """Return (CTA, offset in its shared memory) of a shared::cluster address."""
        rank = address >> RANK_SHIFT
        if not 0 <= rank < self.cluster.size:
            raise MemoryFault(
                f"{what}: shared address {address:#x} names CTA rank {rank}; the cluster has {self.cluster.size} CTAs"
            )
        return self.cluster.ctas[rank], address & (WINDOW_BYTES - 1)

    def own(self, address: int, what) -> int:
        """Return the offset of a shared::cta address: the address must be this CTA's."""
        cta, offset = self.reach(address, what)
        if cta is not self:
            raise MemoryFault(
                f"{what}: shared address {address:#x} belongs to CTA rank {cta.rank}, this is rank {self.rank}: "
                "this instruction reaches only its own CTA (shared::cta)"
            )
        return offset

    def touch_shared(self, offsets, size: int, what, *, write: bool = False) -> None:
        """Say that ``size`` bytes at each offset (an int, or an array) are accessed; fault if any is outside."""
        low, high = (
            (offsets, offsets) if isinstance(offsets, int) else (int(offsets.min()), int(offsets.max()))
        )
        self.check_shared(low if low < 0 else high, size, what)
        if self.machine.checker is not None:
            self.machine.checker.shared(self, offsets, size, what, write)

    def check_shared(self, offset: int, size: int, what) -> None:
        """Fault unless [offset, offset + size) is shared memory of this CTA."""
        if offset < 0 or offset + size > self.shared_bytes:
            raise MemoryFault(
                f"{what}: shared address {offset:#x} ({size} bytes) is outside of the {self.shared_bytes} bytes of this CTA"
            )

    def touch_pieces(self, pieces, first: int, low: int, high: int, what) -> None:
        """Say that the 16-byte pieces ``first + pieces`` are read; ``low`` to ``high`` are known to bound them."""
        if (high + 1) << 4 > self.shared_bytes or self.machine.checker is not None:
            self.touch_shared((pieces + first) << 4, 16, what)

    # -- tensor memory ----------------------------------------------------------------
    def touch_tmem(self, lanes, col: int, cols: int, what, *, write: bool = False) -> None:
        """Say that columns [col, col + cols) of ``lanes`` are accessed; fault unless they are allocated."""
        if not any(first <= col and col + cols <= first + n for first, n in self.allocated.items()):
            have = ", ".join(f"{a}-{a + n - 1}" for a, n in self.allocated.items()) or "none"
            raise MemoryFault(
                f"{what}: tensor memory columns {col}-{col + cols - 1} are not allocated (allocated: {have})"
            )
        if self.machine.checker is not None:
            self.machine.checker.tmem(self, lanes, col, cols, what, write)

    def free_tmem(self, columns: int) -> int | None:
        """Return the first column where ``columns`` more fit, or None."""
        taken = np.zeros(TMEM_COLS, bool)
        for first, count in self.allocated.items():
            taken[first : first + count] = True
        starts = range(0, TMEM_COLS, columns)
        return next((s for s in starts if not taken[s : s + columns].any()), None)

    # -- mbarriers --------------------------------------------------------------------
    def mbarrier(self, address: int, what) -> MBarrier:
        """Return the initialised mbarrier at a shared::cluster address."""
        cta, offset = (
            (self, address) if address < WINDOW_BYTES and not self.rank else self.reach(address, what)
        )
        barrier = cta.mbarriers.get(offset)
        if barrier is None:
            raise Hazard(
                f"{what}: no mbarrier was initialised at shared address {address:#x}{cta.label(offset)}"
            )
        return barrier

    def barrier_cells(self, offset: int) -> np.ndarray:
        """Return the row of the barrier table for an mbarrier at an offset in shared memory."""
        return self.barrier_table[offset >> 3]

    def place(self, warp: int, pc: int):
        """Return a place in the program, for messages; ``warp``: its number in the cluster."""
        warp = self.cluster.warps[warp]
        return warp.where(warp.pieces[pc].instruction)

    def ranks_of(self, mask: int, what) -> list[int]:
        """Return the ranks whose bits a multicast mask has."""
        if mask >> self.cluster.size or not mask:
            raise Hazard(f"{what}: multicast mask {mask:#x}; the cluster has {self.cluster.size} CTAs")
        return [rank for rank in range(self.cluster.size) if mask >> rank & 1]

    def multicast_barriers(self, address: int, mask: int, what) -> list[MBarrier]:
        """Return the mbarriers at the address's offset in every CTA of a multicast mask."""
        _, offset = self.reach(address, what)
        return [self.mbarrier(rank << RANK_SHIFT | offset, what) for rank in self.ranks_of(mask, what)]

    def init_mbarrier(self, offset: int, count: int, what) -> None:
        """Make the 8 bytes at an offset of this CTA's shared memory an mbarrier."""
        self.touch_shared(offset, 8, what, write=True)
        if offset % 8 or not 1 <= count < 1 << 20:
            raise MemoryFault(
                f"{what}: an mbarrier needs an 8-byte aligned address and a count of 1 to 2**20 - 1, got {count}"
            )
        barrier = self.mbarriers[offset] = MBarrier(offset, self.name_of(offset), count, self)
        if self.machine.checker is not None:
            self.machine.checker.initialised(barrier)

    def name_of(self, offset: int) -> str:
        """Return the name of an mbarrier, with its CTA's rank in a cluster of several."""
        name = self.machine.shared_names.get(offset, f"mbarrier at {offset:#x}")
        return name if self.cluster.size == 1 else f"{name} of CTA rank {self.rank}"

    def label(self, offset: int) -> str:
        """Return `` (name)`` of an mbarrier that has one, for messages."""
        name = self.machine.shared_names.get(offset)
        return f" ({name})" if name else ""
