"""A warp: 32 lanes, their registers, and the SIMT stack that runs diverged lanes one path at a time."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ...errors import EmulatorError, MemoryFault
from ..isa.registry import bind_effect, understood
from ..ptx.module import Imm, Reg, Special, Symbol
from .copy_groups import Groups
from .interpreter import DIVERGED, EFFECT, ENDED, INTERPRET, MET, TURN_OVER, Interpreter
from .memory import RANK_SHIFT
from .program import Piece
from .state import HEADER, LANES, ROW_DTYPE, StateLayout, aligned_buffer, row_bytes

NOWHERE = -2  # no piece has this pc


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

    def __init__(self, cta, index: int, entry, pieces: list[Piece], layout: StateLayout):
        self.cta, self.index, self.entry, self.pieces, self.layout = cta, index, entry, pieces, layout
        self.buffer = aligned_buffer(layout.size)
        self.state = self.buffer[: HEADER.itemsize].view(HEADER)[0]
        self.mask = self.buffer[layout.mask : layout.mask + LANES].view(np.bool_)
        self.registers = {width: self._rows(width) for width in (1, 16, 32, 64, 128)}
        at = layout.size - len(layout.specials) * row_bytes(64)
        rows = self.buffer[at:].view(np.uint64).reshape(-1, LANES)
        self.specials = dict(zip(layout.specials, rows))
        self.effects: dict[int, Callable] = {}
        self.local = np.empty(LANES * entry.local_bytes, np.uint8)  # .local variables, lane by lane
        self.thread = index * LANES + np.arange(LANES)
        self.engine = self.interpreter = Interpreter(self, pieces)

    def _rows(self, width: int) -> np.ndarray:
        at, count = self.layout.rows(width), self.layout.counts.get(width, 0)
        rows = self.buffer[at : at + count * row_bytes(width)].view(ROW_DTYPE[width].base)
        return rows.reshape(count, LANES, *ROW_DTYPE[width].shape)

    def connect(self) -> None:
        """Tell compiled code where the memories of the warp's CTA lie."""
        cta, state, machine = self.cta, self.state, self.cta.machine
        state["cautious"] = machine.watches
        state["barriers"] = cta.cluster.barrier_table.ctypes.data
        state["warp"] = cta.rank * len(cta.warps) + self.index
        state["cluster_size"], state["shared_pitch"] = cta.cluster.size, cta.cluster.pitch
        state["shared"], state["shared_bytes"] = cta.shared.ctypes.data, cta.shared_bytes
        state["shared_low"] = cta.rank << RANK_SHIFT
        state["tmem"], state["tmem_lane"] = cta.tmem.ctypes.data, self.index % 4 * LANES
        state["tmem_allocated"] = cta.allocated_groups.ctypes.data
        state["globals"], state["global_count"] = machine.global_table.ctypes.data, len(machine.global_table)
        state["params"], state["param_bytes"] = machine.param_bytes.ctypes.data, machine.param_bytes.size

    def reset(self) -> None:
        for width, array in self.registers.items():
            array.fill(False if width == 1 else np.iinfo(array.dtype).max)
        for name, row in self.specials.items():
            row[:] = self.special(name).astype(np.uint64)
        self.local.fill(0xFF)
        self.live = self.thread < self.cta.machine.threads
        self.set_mask(self.live.copy())
        self.stack: list[tuple] = []  # (meeting pc, lanes, pc where they start; None: they are there)
        self.done, self.waiting = False, None
        self.state["pc"], self.state["meeting"] = 0, NOWHERE
        self.role = f"warp {self.index}"
        self.patient = self.cta.machine.clock is not None  # a try_wait sleeps at once
        self.peeked = None  # the try_wait that failed last: it sleeps when it fails again
        self.tmem_stores: list = []
        self.bulk_groups = Groups("bulk copies")
        self.copy_groups = Groups("cp.async")
        self.multiply_groups = Groups("wgmma")
        self.allocation = self.cta.machine.entry_registers
        self.current = None

    # -- who am I ---------------------------------------------------------------------
    def where(self, ins=None, prefix: str = "") -> "Place":
        """Return CTA, warp, role and the PTX line, for messages: text is made only where it is shown."""
        return Place(self, ins or self.current, prefix)

    # -- lanes --------------------------------------------------------------------------
    def set_mask(self, mask: np.ndarray) -> None:
        np.copyto(self.mask, mask)
        self.state["active"] = active = int(np.count_nonzero(mask))
        self.full = active == LANES
        self.any_lane = int(mask.argmax())

    def taken(self, branch) -> np.ndarray:
        """Return the active lanes that a guarded branch, ret or exit takes along."""
        condition = self.row(branch.guard)
        return self.mask & (~condition if branch.negate else condition)

    # -- local memory -------------------------------------------------------------------------
    def local_positions(self, offsets: np.ndarray, size: int, what) -> np.ndarray:
        """Return where in ``local`` the active lanes' offsets lie; ``size`` bytes each."""
        mine = self.entry.local_bytes
        if int(offsets.max()) + size > mine:
            raise MemoryFault(
                f"{what}: offset {int(offsets.max()):#x} is outside of the lane's {mine} local bytes"
            )
        return np.flatnonzero(self.mask) * mine + offsets

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
            return np.full(LANES, self.cta.address_of(operand.name), np.uint64).astype(dtype)
        if isinstance(operand, Special):
            row = self.specials[operand.name]
            return row if dtype.itemsize == 8 else row.view(dtype).reshape(LANES, -1)[:, 0]
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
        """Return a special register, or the address of a variable (``&name``), as 32 integers."""
        if name[0] == "&":
            return np.full(LANES, self.cta.address_of(name[1:]), np.int64)
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
    @property
    def budget(self) -> int:
        """Pieces that the warp may still run in this turn."""
        return int(self.state["budget"])

    @budget.setter
    def budget(self, pieces: int) -> None:
        self.state["budget"] = pieces

    def run(self, budget: int) -> None:
        """Run until the warp waits, ends, or has run ``budget`` pieces of the program."""
        self.budget = budget
        advance = self.engine.advance
        while not self.done and self.waiting is None:
            if not self.deal_with(advance()):
                return

    def run_to_effect(self, budget: int) -> int:
        """Run until the machine has to do an instruction, which is left to it, or the turn or the warp ends."""
        self.budget = budget
        while not self.done:
            why = self.engine.advance()
            if why in (EFFECT, TURN_OVER):
                return why
            self.deal_with(why)
        return ENDED

    def deal_with(self, why: int) -> bool:
        """Do what an engine came back for; return False if its turn is over."""
        if why == EFFECT:
            self._effect()
        elif why == MET:
            self._reconverge()
        elif why == DIVERGED:
            self._part(self.pieces[self.state["pc"]])
        elif why == INTERPRET:
            self.interpreter.interpret()
        elif why == ENDED:
            self._lanes_end(self.mask.copy())
        return why != TURN_OVER

    def _effect(self) -> None:
        pc = int(self.state["pc"])
        self.current = self.pieces[pc].instruction
        function = self.effects.get(pc)
        if function is None:
            function = self.effects[pc] = bind_effect(self, self.current)
        checker = self.cta.machine.checker
        if checker is not None:
            checker.begin(self, self.current)
        self.waiting = understood(self.current, function)
        if checker is not None:
            checker.end()
        if self.waiting is None or self.waiting.advance:
            self.state["pc"] = pc + 1

    def _part(self, piece: Piece) -> None:
        """Lanes part at a branch, or some of them end there."""
        branch = piece.instruction
        taken = self.taken(branch) if branch.guard is not None else self.mask.copy()
        if branch.parts[0] != "bra":
            self.state["pc"] = piece.following
            self._lanes_end(taken)
            return
        rest = self.mask & ~taken
        self._push(piece.meeting, self.mask.copy(), None)
        self._push(piece.meeting, rest, piece.following)
        self.set_mask(taken)
        self.state["pc"] = piece.taken

    def _push(self, meeting: int, lanes: np.ndarray, start: int | None) -> None:
        self.stack.append((meeting, lanes, start))
        self.state["meeting"] = meeting if meeting >= 0 else NOWHERE

    def _pop(self) -> tuple:
        top = self.stack.pop()
        meeting = self.stack[-1][0] if self.stack else NOWHERE
        self.state["meeting"] = meeting if meeting >= 0 else NOWHERE
        return top

    def _reconverge(self) -> None:
        """The path has reached its meeting point: run the other path, or go on together."""
        _, lanes, start = self._pop()
        lanes = lanes & self.live
        if not lanes.any():
            if not self.stack:
                self.done = True
            return
        self.set_mask(lanes)
        if start is not None:
            self.state["pc"] = start

    def _lanes_end(self, lanes: np.ndarray) -> None:
        """Lanes return or exit."""
        self.live = self.live & ~lanes
        self.cta.cluster.barrier.changed()
        rest = self.mask & self.live
        if rest.any():
            self.set_mask(rest)
            return
        while self.stack:
            meeting, waiting, start = self._pop()
            waiting = waiting & self.live
            if waiting.any():
                self.set_mask(waiting)
                self.state["pc"] = start if start is not None else meeting
                return
        self.done = True


def constant(value, dtype: np.dtype):
    """Return an immediate as one element of ``dtype`` (integers wrap, as in PTX)."""
    if dtype.kind in "ui":
        bits = _float_bits(value, 8 * dtype.itemsize) if isinstance(value, float) else int(value)
        return np.array(bits & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)[()]
    if dtype.kind == "b":
        return bool(value)
    return dtype.type(value)


def _float_bits(value: float, width: int) -> int:
    """Return the bits of a float literal: ``0d…`` where 64 are wanted, else ``0f…``."""
    return int(np.float64(value).view(np.uint64) if width == 64 else np.float32(value).view(np.uint32))
