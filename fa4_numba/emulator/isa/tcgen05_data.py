"""tcgen05.ld and .st: tensor memory to registers and back, every shape."""

from functools import partial

import numpy as np

from ...errors import MemoryFault
from ...layout import cells, split_tmem_address
from ..machine.state import LANES
from ..ptx.module import Imm
from .registry import effect, vector_items
from .tensor_core import tmem_pointer, whole_warp


class Transfer:
    """The cells of one ``tcgen05.ld`` or ``.st``, bound to a warp's registers."""

    def __init__(self, warp, ins, memory, registers, split):
        self.warp, self.ins = warp, ins
        self.shape = next(p for p in ins.parts if p[0].isdigit() and "x" in p)
        count = int(next(p[1:] for p in ins.parts if p[0] == "x" and p[1:].isdigit()))
        self.packed = any(p in ("pack::16b", "unpack::16b") for p in ins.parts)
        if (split is not None) != (self.shape == "16x32bx2"):
            raise ValueError(".16x32bx2, and only it, takes a column offset")
        self.lane, self.column = cells(self.shape, count, split or 0, self.packed)
        self.columns = int(self.column.max()) + 1 + self.packed
        self.lanes = LANES if self.shape == "32x32b" else 16
        rows = [item.index for item in vector_items(registers)]
        if len(rows) != len(self.lane):
            raise ValueError(f"{self.shape}.x{count} takes {len(self.lane)} registers, not {len(rows)}")
        contiguous = rows == list(range(rows[0], rows[0] + len(rows)))
        self.rows = slice(rows[0], rows[-1] + 1) if contiguous else rows
        self.address = tmem_pointer(warp, memory)
        self.plain = self.shape == "32x32b" and not self.packed
        self.flat = self.lane * 512 + self.column

    def place(self, write: bool) -> tuple[int, int]:
        """Return the first lane and column; only the warp's own quarter of the lanes is reachable."""
        warp = self.warp
        lane, col = split_tmem_address(self.address())
        whole_warp(warp, self.ins)
        first = warp.index % 4 * LANES
        if lane != first and not (self.lanes == 16 and lane == first + 16):
            raise MemoryFault(
                f"{warp.where(self.ins)}: a warp reaches the lanes from {first} on, not from {lane}"
            )
        lanes = slice(lane, lane + self.lanes)
        warp.cta.touch_tmem(lanes, col, self.columns, warp.where(self.ins), write=write)
        return lane, col

    def read(self) -> np.ndarray:
        """Return the cells as (register, thread)."""
        lane, col = self.place(False)
        tmem = self.warp.cta.tmem
        if self.plain:
            return tmem[lane : lane + LANES, col : col + self.columns].T
        flat, at = tmem.reshape(-1), self.flat + (lane * 512 + col)
        return (flat[at] & 0xFFFF) | flat[at + 1] << 16 if self.packed else flat[at]

    def write(self, place: tuple[int, int], values: np.ndarray) -> None:
        """Overwrite the cells with (register, thread) values."""
        lane, col = place
        tmem = self.warp.cta.tmem
        if self.plain:
            tmem[lane : lane + LANES, col : col + self.columns] = values.T
            return
        flat, at = tmem.reshape(-1), self.flat + (lane * 512 + col)
        flat[at] = values & 0xFFFF if self.packed else values
        if self.packed:
            flat[at + 1] = values >> 16


def _immediate(operand) -> int:
    if not isinstance(operand, Imm):
        raise ValueError("the column offset must be an immediate")
    return int(operand.value)


@effect("tcgen05.ld")
def tmem_load(warp, ins):
    """d[r] = the cells that ``shape`` gives to register r of each thread; ``.pack::16b``: two columns a register.

    The value is there at once: the hardware orders register use.
    """
    if "red" in ins.parts:
        raise ValueError(".red is not an instruction of sm_100a")
    split = _immediate(ins.args[2]) if len(ins.args) > 2 else None
    transfer, registers = Transfer(warp, ins, ins.args[1], ins.args[0], split), warp.registers[32]

    def run():
        registers[transfer.rows] = transfer.read()

    return run


@effect("tcgen05.st")
def tmem_store(warp, ins):
    """The cells of register r = b[r]; ``.unpack::16b``: two columns a register. It may land as late as ``wait::st``."""
    split = _immediate(ins.args[1]) if len(ins.args) > 2 else None
    transfer, registers = Transfer(warp, ins, ins.args[0], ins.args[-1], split), warp.registers[32]

    def run():
        place = transfer.place(True)
        if warp.cta.machine.schedule.store_lands_now():
            transfer.write(place, registers[transfer.rows])
        else:
            values = registers[transfer.rows].copy()
            warp.tmem_stores.append(partial(transfer.write, place, values))

    return run


@effect("tcgen05.wait")
def tmem_wait(warp, ins):
    """``::st``: all stores of the warp are complete. ``::ld``: loads are."""
    if ins.parts[1] == "wait::ld":
        return lambda: _loads_waited(warp)
    return lambda: land_stores(warp)


def _loads_waited(warp) -> None:
    if warp.cta.machine.checker is not None:
        warp.cta.machine.checker.loads_waited(warp)


def land_stores(warp) -> None:
    """Complete the warp's pending stores."""
    if warp.cta.machine.checker is not None:
        warp.cta.machine.checker.stores_waited(warp)
    for write in warp.tmem_stores:
        write()
    warp.tmem_stores.clear()


@effect("tcgen05.fence")
def fence(warp, ins):
    """Order tcgen05 work and thread synchronisation: here every instruction is already in program order."""
    return lambda: None
