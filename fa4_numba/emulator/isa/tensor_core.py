"""tcgen05: tensor memory and the matrix multiply-accumulate of the fifth-generation tensor core."""

from functools import lru_cache

import ml_dtypes
import numpy as np

from ...errors import Hazard, MemoryFault
from ...layout import InstrDesc, Major, SmemDesc, accumulator_lane, operand_byte_address, split_tmem_address
from ..machine.state import LANES
from .registry import effect, vector_items
from .synchronisation import first_address

ELEMENT = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32,
}
UNIT = "tensor core"


def _one_cta(ins):
    if "cta_group::2" in ins.parts:
        raise ValueError(".cta_group::2 is not implemented yet")


# -- allocation -----------------------------------------------------------------------
@effect("tcgen05.alloc")
def alloc(warp, ins):
    """Allocate columns (a power of two from 32 to 512) and write their address to shared memory."""
    _one_cta(ins)
    address, columns = first_address(warp, ins.args[0]), warp.scalar(ins.args[1])
    cta = warp.cta

    def run():
        n = columns()
        if n not in (32, 64, 128, 256, 512):
            raise Hazard(f"{warp.where(ins)}: {n} columns; take a power of two from 32 to 512")
        used = set()
        for first, count in cta.allocated.items():
            used.update(range(first, first + count))
        start = next((s for s in range(0, 512, n) if not used & set(range(s, s + n))), None)
        if start is None:
            raise Hazard(
                f"{warp.where(ins)}: {n} columns wanted, {512 - len(used)} free: the hardware would wait for ever"
            )
        cta.allocated[start] = n
        cta.allocation_changed()
        at = cta.check_shared(address(), 4, warp.where(ins))
        cta.shared[at : at + 4] = np.frombuffer(np.uint32(start).tobytes(), np.uint8)

    return run


@effect("tcgen05.dealloc")
def dealloc(warp, ins):
    """Free an allocation; its size must be the one allocated."""
    _one_cta(ins)
    address, columns = warp.scalar(ins.args[0]), warp.scalar(ins.args[1])

    def run():
        _, col = split_tmem_address(address())
        if warp.cta.allocated.get(col) != columns():
            raise Hazard(
                f"{warp.where(ins)}: {columns()} columns at {col} were not allocated so ({warp.cta.allocated})"
            )
        if UNIT in warp.cta.queues:
            raise Hazard(f"{warp.where(ins)}: tensor memory is freed while matrix multiplies are in flight")
        del warp.cta.allocated[col]
        warp.cta.allocation_changed()

    return run


@effect("tcgen05.relinquish_alloc_permit", "tcgen05.fence")
def no_effect(warp, ins):
    """Ordering and permits: nothing that a single CTA's program can see here."""
    return lambda: None


# -- load and store -------------------------------------------------------------------
def _columns(ins) -> int:
    if "32x32b" not in ins.parts or any(p.startswith(("pack", "unpack")) for p in ins.parts):
        raise ValueError("only the shape 32x32b, without .pack or .unpack")
    return int(next(p[1:] for p in ins.parts if p[0] == "x" and p[1:].isdigit()))


def _window(warp, ins, address: int, columns: int) -> np.ndarray:
    """Return the 32 lanes × columns that the warp accesses; only its own quarter of the lanes is reachable."""
    lane, col = split_tmem_address(address)
    if lane != warp.index % 4 * LANES:
        raise MemoryFault(
            f"{warp.where(ins)}: a warp reaches the lanes from {warp.index % 4 * LANES} on, not from {lane}"
        )
    if not (warp.mask == warp.live).all():
        raise Hazard(
            f"{warp.where(ins)}: an .aligned instruction is executed by {int(warp.mask.sum())} of 32 lanes"
        )
    warp.cta.check_tmem(col, columns, warp.where(ins))
    return warp.cta.tmem[lane : lane + LANES, col : col + columns]


@effect("tcgen05.ld")
def tmem_load(warp, ins):
    """d[i] = cell (lane, column + i). The value is there at once: the hardware orders register use."""
    columns, address = _columns(ins), warp.scalar(ins.args[1].base)
    rows = [item.index for item in vector_items(ins.args[0])]
    registers, offset = warp.registers[32], ins.args[1].offset

    def run():
        registers[rows] = _window(warp, ins, address() + offset, columns).T

    return run


@effect("tcgen05.st")
def tmem_store(warp, ins):
    """Cell (lane, column + i) = b[i]. It may land as late as ``wait::st``."""
    columns, address = _columns(ins), warp.scalar(ins.args[0].base)
    rows = [item.index for item in vector_items(ins.args[1])]
    registers, offset = warp.registers[32], ins.args[0].offset

    def run():
        window = _window(warp, ins, address() + offset, columns)
        if warp.cta.machine.schedule.store_lands_now():
            window[...] = registers[rows].T
        else:
            warp.tmem_stores.append((window, registers[rows].T.copy()))

    return run


@effect("tcgen05.wait")
def tmem_wait(warp, ins):
    """``::st``: all stores of the warp are complete. ``::ld``: loads are."""
    if ins.parts[1] == "wait::ld":
        return lambda: None

    def run():
        land_stores(warp)

    return run


def land_stores(warp) -> None:
    """Complete the warp's pending stores."""
    for window, values in warp.tmem_stores:
        window[...] = values
    warp.tmem_stores.clear()


# -- matrix multiply-accumulate ---------------------------------------------------------
@lru_cache(maxsize=4096)
def _operand_pieces(
    low: int, leading: int, stride: int, swizzle, major: Major, rows: int, depth: int, size: int
):
    """Return, relative to the 1024-byte page of the start address, which 16-byte pieces hold an operand."""
    desc = SmemDesc(low, leading, stride, swizzle)
    if major is Major.K:
        row, column = np.arange(rows)[:, None], np.arange(0, depth * size, 16)[None, :]
        return operand_byte_address(desc, major, row, column) >> 4
    column, k = np.arange(0, rows * size, 16)[None, :], np.arange(depth)[:, None]
    return operand_byte_address(desc, major, column, k) >> 4


def shared_operand(cta, value: int, major: Major, rows: int, depth: int, kind: str, what: str) -> np.ndarray:
    """Return an operand in shared memory as f32 (rows, depth)."""
    desc = SmemDesc.unpack(value)
    if desc.base_offset or desc.lbo_mode:
        raise Hazard(f"{what}: base offset and absolute LBO mode are not implemented")
    dtype = np.dtype(ELEMENT[kind])
    low, page = desc.start_address & 1023, desc.start_address & ~1023
    pieces = _operand_pieces(
        low, desc.leading_bytes, desc.stride_bytes, desc.swizzle, major, rows, depth, dtype.itemsize
    )
    pieces = pieces + (page >> 4)
    cta.check_shared(int(pieces.min()) << 4, (int(pieces.max() - pieces.min()) + 1) << 4, what)
    data = cta.shared16[pieces].reshape(pieces.shape[0], -1).view(dtype)
    values = to_f32(data)
    return values.T if major is Major.MN else values


def to_f32(data: np.ndarray) -> np.ndarray:
    """Widen exactly."""
    if data.dtype == ml_dtypes.bfloat16:
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return data.astype(np.float32)


def _tmem_operand(cta, address: int, rows: int, depth: int, kind: str, what: str) -> np.ndarray:
    """Return A in tensor memory as f32 (rows, depth): consecutive elements packed into 32-bit cells."""
    dtype = np.dtype(ELEMENT[kind])
    _, col = split_tmem_address(address)
    cells = depth * dtype.itemsize // 4
    cta.check_tmem(col, cells, what)
    return to_f32(np.ascontiguousarray(cta.tmem[:rows, col : col + cells]).view(dtype))


@effect("tcgen05.mma")
def mma(warp, ins):
    """D = A·B (+ D): f32 accumulation, A in shared or tensor memory, B in shared memory, D in tensor memory."""
    _one_cta(ins)
    kind = next(p.split("::")[1] for p in ins.parts if p.startswith("kind::"))
    if kind not in ("f16", "f8f6f4") or "ws" in ins.parts or "sp" in ins.parts or len(ins.args) != 5:
        raise ValueError("only kind f16 and f8f6f4, dense, without lane masks")
    d_address = warp.scalar(ins.args[0].base)
    from_tmem = hasattr(ins.args[1], "base")
    a_value = warp.scalar(ins.args[1].base) if from_tmem else warp.scalar(ins.args[1], np.uint64)
    b_value, instr = warp.scalar(ins.args[2], np.uint64), warp.scalar(ins.args[3])
    accumulate = warp.row(ins.args[4])
    cta = warp.cta

    def run():
        what = warp.where(ins)
        desc = InstrDesc.unpack(kind, instr())
        add, d, a, b = bool(accumulate[warp.any_lane]), d_address(), a_value(), b_value()
        land = lambda: multiply(cta, desc, d, a, b, from_tmem, add, what)
        cta.issue(UNIT, land, what)

    return run


def multiply(cta, desc: InstrDesc, d: int, a: int, b: int, from_tmem: bool, add: bool, what: str) -> None:
    """Execute one matrix multiply-accumulate. Products are exact, sums f32 (BLAS order)."""
    if desc.m not in (64, 128) or desc.d_type != "f32" or desc.negate_a or desc.negate_b:
        raise Hazard(f"{what}: {desc.explain()}: only M 64 and 128 with f32 accumulators are implemented")
    depth = 32 // np.dtype(ELEMENT[desc.a_type]).itemsize
    if from_tmem:
        left = _tmem_operand(cta, a, desc.m, depth, desc.a_type, what)
    else:
        left = shared_operand(cta, a, desc.a_major, desc.m, depth, desc.a_type, what)
    right = shared_operand(cta, b, desc.b_major, desc.n, depth, desc.b_type, what)
    _, col = split_tmem_address(d)
    cta.check_tmem(col, desc.n, what)
    with np.errstate(invalid="ignore", over="ignore"):
        product = left @ right.T
        target = cta.tmem.view(np.float32)[:, col : col + desc.n]
        if desc.m == 128:
            target[...] = product + target if add else product
        else:
            lanes = [accumulator_lane(64, row) for row in range(64)]
            target[lanes] = product + target[lanes] if add else product
    cta.machine.event("MMA", "P V" if from_tmem else "Q K")


@effect("tcgen05.commit")
def commit(warp, ins):
    """When all tensor-core work issued before is complete, arrive once on the mbarrier."""
    _one_cta(ins)
    if any("multicast" in p for p in ins.parts):
        raise ValueError(".multicast is not implemented yet")
    address, cta = first_address(warp, ins.args[0]), warp.cta

    def run():
        what = warp.where(ins)
        barrier = cta.mbarrier(address(), what)
        cta.issue(
            UNIT,
            lambda: barrier.arrive(1, warp.where(ins, "tcgen05.commit of ")),
            f"commit to {barrier.name}",
        )

    return run
