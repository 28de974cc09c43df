"""Loads, stores and prefetches of threads."""

import numpy as np

from ...errors import MemoryFault
from ..machine.memory import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    SHARED_WINDOW_END,
    WINDOW_BYTES,
)
from ..machine.state import LANES
from ..ptx.module import Symbol
from . import wide
from .registry import effect, vector_items
from .types import dtype_of


def addresses(warp, operand):
    """Return a function that gives the 32 lanes' addresses (int64) of a memory operand."""
    offset = np.int64(operand.offset)
    if isinstance(operand.base, Symbol):
        symbol = operand.base.name
        return lambda: np.full(LANES, warp.cta.address_of(symbol) + offset, np.int64)
    register = warp.row(operand.base)
    return lambda: register.astype(np.int64) + offset


def space_of(ins) -> str:
    return next(
        (p for p in ins.parts[1:] if p.split("::")[0] in ("global", "shared", "local", "param", "const")),
        "generic",
    )


def resolve(warp, space: str, lanes: np.ndarray, size: int, what: str, write: bool):
    """Return (bytes, offsets) that the active lanes' addresses mean; ``size`` bytes each, aligned to their size."""
    low, high = int(lanes.min()), int(lanes.max()) + size
    if np.any(lanes % size):
        raise MemoryFault(
            f"{what}: address {int(lanes[np.argmax(lanes % size != 0)]):#x} is not a multiple of {size}"
        )
    if space == "generic" and SHARED_WINDOW <= low < SHARED_WINDOW_END:
        space, lanes = "shared::cluster", lanes - SHARED_WINDOW
    if space.startswith("shared"):
        cluster = warp.cta.cluster
        if space != "shared::cluster" and cluster.size > 1:
            warp.cta.own(int(lanes[np.argmax(lanes >> RANK_SHIFT != warp.cta.rank)]), what)
        return cluster.shared, cluster.shared_positions(lanes, size, what, write=write)
    if space == "local" or LOCAL_WINDOW <= low < LOCAL_WINDOW + WINDOW_BYTES:
        return warp.local, warp.local_positions(lanes & (WINDOW_BYTES - 1), size, what)
    if space == "param" or PARAM_WINDOW <= low < PARAM_WINDOW + WINDOW_BYTES:
        params = warp.cta.machine.param_bytes
        return params, _inside(lanes & (WINDOW_BYTES - 1), size, params.size, "the kernel's parameters", what)
    data, offset = warp.cta.machine.memory.find(low, high, what, write=write)
    return data, lanes - low + offset


def _inside(offsets: np.ndarray, size: int, limit: int, where: str, what) -> np.ndarray:
    """Return the offsets if [offset, offset + size) is inside of ``limit`` bytes for each."""
    if int(offsets.max()) + size > limit:
        raise MemoryFault(
            f"{what}: offset {int(offsets.max()):#x} is outside of the {limit} bytes of {where}"
        )
    return offsets


def _whole(warp, ins, operand, write: bool):
    """Return a function of a size that gives what :func:`resolve` does for the active lanes."""
    space, where = space_of(ins), addresses(warp, operand)
    return lambda size: resolve(warp, space, where()[warp.mask], size, warp.where(ins), write)


@effect("ld", "ldu")
def load(warp, ins):
    """d = memory[a]; ``.v2 .v4`` load consecutive elements."""
    if "b128" in ins.parts:
        return wide.load(warp, ins, _whole(warp, ins, ins.args[1], False))
    dtype, space = dtype_of(ins), space_of(ins)
    items, where = vector_items(ins.args[0]), addresses(warp, ins.args[1])
    targets = [(i, warp.row(item)) for i, item in enumerate(items) if hasattr(item, "width")]
    size = dtype.itemsize * len(items)

    def run():
        lanes = where()[warp.mask]
        data, offsets = resolve(warp, space, lanes, size, warp.where(ins), False)
        raw = data[offsets[:, None] + np.arange(size)].reshape(-1, len(items), dtype.itemsize)
        for i, row in targets:
            values = np.ascontiguousarray(raw[:, i]).view(dtype)[:, 0]
            row[warp.mask] = (
                values if row.itemsize == dtype.itemsize and dtype.kind != "f" else _extend(values, row.dtype)
            )

    return run


def _extend(values, register):
    """Widen a narrow value to the register: signed types by sign; floats keep their bits."""
    if values.dtype.kind not in "iu":
        values = values.view(f"u{values.itemsize}")
    return values.astype(f"i{register.itemsize}" if values.dtype.kind == "i" else register).view(register)


@effect("st")
def store(warp, ins):
    """memory[a] = b; ``.v2 .v4`` store consecutive elements."""
    if "b128" in ins.parts:
        return wide.store(warp, ins, _whole(warp, ins, ins.args[0], True))
    dtype, space = dtype_of(ins), space_of(ins)
    items, where = vector_items(ins.args[1]), addresses(warp, ins.args[0])
    sources = [warp.source(item, dtype) for item in items]
    size = dtype.itemsize * len(items)

    def run():
        lanes = where()[warp.mask]
        data, offsets = resolve(warp, space, lanes, size, warp.where(ins), True)
        raw = np.stack([s[warp.mask] for s in sources], 1).view(np.uint8)
        data[offsets[:, None] + np.arange(size)] = raw

    return run


@effect("prefetch", "prefetchu", "discard", "applypriority")
def prefetch(warp, ins):
    """A hint to the caches: nothing that a program can see."""
    return lambda: None
