"""A warp: 32 lanes, their registers, and the SIMT stack that runs diverged lanes one path at a time."""

from functools import partial

import numpy as np

from ...errors import EmulatorError
from ..ptx.blocks import Block
from ..ptx.module import Imm, Reg, Special, Symbol

LANES = 32
WORD = {1: np.bool_, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.uint64}


class Place:
    """A place in the program, as messages name it. Cheap to make: nearly all are never shown."""

    __slots__ = ("ins", "prefix", "warp")

    def __init__(self, warp, ins, prefix: str):
        self.warp, self.ins, self.prefix = warp, ins, prefix

    def __str__(self):
        warp, ins = self.warp, self.ins
        text = f"{self.prefix}CTA {warp.cta.index} warp {warp.index} ({warp.role})"
        if ins is not None:
            text += f", PTX line {ins.line}: {ins.text[:120]}"
            if ins.python_line:
                text += f" [{ins.python_line}]"
        return text


class Warp:
    """One warp of a CTA. Registers are arrays (register, lane); instructions are bound to their rows once."""

    def __init__(self, cta, index: int, entry, blocks: list[Block], binder):
        self.cta, self.index, self.entry, self.blocks, self.binder = cta, index, entry, blocks, binder
        counts = entry.register_counts
        self.registers = {w: np.empty((counts.get(w, 0), LANES), WORD[w]) for w in (1, 16, 32, 64)}
        self.registers[128] = np.empty((counts.get(128, 0), LANES, 2), np.uint64)
        self.mask = np.ones(LANES, bool)
        self.mask_pairs = np.ones(2 * LANES, bool)  # for two f32 per lane
        self.bound: dict[int, tuple] = {}
        self.thread = index * LANES + np.arange(LANES)

    def reset(self) -> None:
        for width, array in self.registers.items():
            array.fill(False if width == 1 else np.iinfo(array.dtype).max)
        self.live = self.thread < self.cta.machine.threads
        self.set_mask(self.live.copy())
        self.stack: list[tuple] = []  # (meeting block, lanes, block where they start; None: they are there)
        self.block, self.step, self.done = 0, 0, False
        self.waiting = None
        self.role = f"warp {self.index}"
        self.peeked = None  # the try_wait that failed last: it sleeps when it fails again
        self.tmem_stores: list = []
        self.bulk_group, self.bulk_groups = 0, []
        self.allocation = self.cta.machine.entry_registers
        self.current = None

    # -- who am I ---------------------------------------------------------------------
    def where(self, ins=None, prefix: str = "") -> "Place":
        """Return CTA, warp, role and the PTX line, for messages: text is made only where it is shown."""
        return Place(self, ins or self.current, prefix)

    # -- lanes --------------------------------------------------------------------------
    def set_mask(self, mask: np.ndarray) -> None:
        np.copyto(self.mask, mask)
        np.copyto(self.mask_pairs.reshape(LANES, 2), mask[:, None])
        self.full = bool(mask.all())
        self.any_lane = int(mask.argmax())

    # -- operands -------------------------------------------------------------------------
    def row(self, register: Reg) -> np.ndarray:
        return self.registers[register.width][register.index]

    def source(self, operand, dtype) -> np.ndarray:
        """Return the operand's 32 lanes as ``dtype`` (a view of its register, or a constant)."""
        dtype = np.dtype(dtype)
        if isinstance(operand, Reg):
            row = self.row(operand)
            if dtype == np.bool_:
                return row
            if row.itemsize == dtype.itemsize:
                return row.view(dtype)
            if row.itemsize > dtype.itemsize:  # the low part, as in st.b16 of a 32-bit register
                return row.view(dtype).reshape(LANES, -1)[:, 0]
            raise EmulatorError(f"{self.where()}: a {8 * row.itemsize}-bit register is used as {dtype}")
        if isinstance(operand, Imm):
            return np.full(LANES, constant(operand.value, dtype), dtype)
        if isinstance(operand, Symbol):
            return np.full(LANES, self.cta.address_of(operand.name), dtype)
        if isinstance(operand, Special):
            return self.special(operand.name).astype(dtype)
        raise EmulatorError(f"{self.where()}: cannot read the operand {operand}")

    def destination(self, operand, dtype) -> np.ndarray:
        """Return the register row to write, viewed as ``dtype``."""
        row = self.row(operand)
        return row if np.dtype(dtype) == np.bool_ else row.view(dtype)

    def scalar(self, operand, dtype=np.uint32) -> partial:
        """Return a function that gives the value of the first active lane as an int."""
        lanes = self.source(operand, dtype)
        return lambda: int(lanes[self.any_lane])

    def special(self, name: str) -> np.ndarray:
        """Return a special register as 32 integers. Values that change from CTA to CTA are read by ``mov``."""
        m, lanes = self.cta.machine, np.arange(LANES)
        base, _, axis = name[1:].partition(".")
        i = "xyz".index(axis) if axis else 0
        x, y, _ = m.block
        thread = {0: self.thread % x, 1: self.thread // x % y, 2: self.thread // (x * y)}
        simple = {
            "tid": lambda: thread[i],
            "ntid": lambda: m.block[i],
            "ctaid": lambda: self.cta.index[i],
            "nctaid": lambda: m.grid[i],
            "laneid": lambda: lanes,
            "warpid": lambda: self.index,
            "nwarpid": lambda: len(self.cta.warps),
            "smid": lambda: 0,
            "gridid": lambda: 0,
            "clusterid": lambda: self.cta.index[i] // m.cluster[i],
            "nclusterid": lambda: m.clusters[i],
            "cluster_ctaid": lambda: self.cta.index[i] % m.cluster[i],
            "cluster_nctaid": lambda: m.cluster[i],
            "cluster_ctarank": lambda: self.cta.rank,
            "cluster_nctarank": lambda: self.cta.cluster.size,
            "is_explicit_cluster": lambda: m.explicit_cluster,
            "dynamic_smem_size": lambda: m.dynamic_smem_bytes,
            "total_smem_size": lambda: m.shared_bytes,
            "clock": lambda: m.executed,
            "clock64": lambda: m.executed,
            "globaltimer": lambda: m.executed,
            "lanemask_eq": lambda: 1 << lanes,
            "lanemask_lt": lambda: (1 << lanes) - 1,
            "lanemask_le": lambda: (2 << lanes) - 1,
            "lanemask_gt": lambda: 0xFFFFFFFF & ~((2 << lanes) - 1),
            "lanemask_ge": lambda: 0xFFFFFFFF & ~((1 << lanes) - 1),
        }
        if base not in simple:
            raise EmulatorError(f"{self.where()}: special register {name} is not implemented")
        return np.broadcast_to(np.asarray(simple[base](), np.int64), LANES).copy()

    # -- execution --------------------------------------------------------------------------
    def run(self, budget: int) -> None:
        """Run until the warp waits, ends, or has run ``budget`` steps (an effect with the arithmetic before it)."""
        self.budget = budget
        while not self.done and self.waiting is None and self.budget > 0:
            if self.step == 0 and self.stack and self.block == self.stack[-1][0]:
                self._reconverge()
                continue
            steps = self.bound.get(self.block)
            if steps is None:
                steps = self.bound[self.block] = self.binder(self, self.blocks[self.block])
            if self._run_steps(steps):
                self._leave(self.blocks[self.block])

    def _run_steps(self, steps) -> bool:
        """Run the block's remaining steps; return whether its end was reached."""
        machine = self.cta.machine
        self.budget -= 1
        while self.step < len(steps):
            if self.budget <= 0:
                return False
            self.budget -= 1
            full, masked, count, effect, ins = steps[self.step]
            for function in full if self.full else masked:
                function()
            machine.executed += count
            machine.lanes_executed += count * (LANES if self.full else int(self.mask.sum()))
            if effect is not None:
                self.current = ins
                self.waiting = effect()
                if self.waiting is not None:
                    self.step += self.waiting.advance
                    return False
            self.step += 1
        return True

    def _leave(self, block: Block) -> None:
        """Take the block's branch."""
        self.step = 0
        self.cta.machine.executed += block.branch is not None
        branch = block.branch
        if branch is None or branch.guard is None:
            if branch is not None and branch.parts[0] != "bra":
                self._lanes_end(self.mask.copy())
            else:
                self.block = block.following
            return
        condition = self.row(branch.guard)
        taken = self.mask & (~condition if branch.negate else condition)
        if branch.parts[0] != "bra":
            self._lanes_end(taken)
            if not self.done and self.block == block.index:
                self.block = block.following
            return
        if not taken.any():
            self.block = block.following
        elif (taken == self.mask).all():
            self.block = block.taken
        else:
            rest = self.mask & ~taken
            self.stack.append((block.reconverge, self.mask.copy(), None))
            self.stack.append((block.reconverge, rest, block.following))
            self.set_mask(taken)
            self.block = block.taken

    def _reconverge(self) -> None:
        """The path has reached its meeting point: run the other path, or go on together."""
        _, mask, start = self.stack.pop()
        mask = mask & self.live
        if not mask.any():
            if not self.stack:
                self.done = True
            return
        self.set_mask(mask)
        if start is not None:
            self.block, self.step = start, 0

    def _lanes_end(self, lanes: np.ndarray) -> None:
        """Lanes return or exit."""
        self.live = self.live & ~lanes
        rest = self.mask & self.live
        if rest.any():
            self.set_mask(rest)
            return
        while self.stack:
            reconverge, mask, start = self.stack.pop()
            mask = mask & self.live
            if mask.any():
                self.set_mask(mask)
                self.block, self.step = (start if start is not None else reconverge), 0
                return
        self.done = True

    # -- bulk copies --------------------------------------------------------------------------
    def open_bulk_groups(self) -> int:
        return sum(1 for group in self.bulk_groups if group["open"])


def constant(value, dtype: np.dtype):
    """Return an immediate as one element of ``dtype`` (integers wrap, as in PTX)."""
    if dtype.kind in "ui":
        bits = int(np.float32(value).view(np.uint32)) if isinstance(value, float) else int(value)
        return np.array(bits & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)[()]
    if dtype.kind == "b":
        return bool(value)
    return dtype.type(value)
