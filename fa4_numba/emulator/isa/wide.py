"""128-bit registers: moved, loaded and stored as they are."""

import numpy as np

from ..ptx.module import Vector
from .registry import effect

WIDE_BYTES = 16


@effect("mov.b128")
def move(warp, ins):
    """d = a; with a vector on one side, packs or unpacks two 64-bit values (the first has the lower bits)."""
    target, source = ins.args
    if isinstance(source, Vector):
        wide, low, high = warp.row(target), *(warp.source(item, np.uint64) for item in source.items)

        def pack():
            np.copyto(wide[:, 0], low, where=warp.mask)
            np.copyto(wide[:, 1], high, where=warp.mask)

        return pack
    wide = warp.row(source)
    if isinstance(target, Vector):
        halves = [(warp.row(d), wide[:, i]) for i, d in enumerate(target.items) if hasattr(d, "width")]
    else:
        halves = [(warp.row(target)[:, i], wide[:, i]) for i in range(2)]

    def run():
        for row, half in halves:
            np.copyto(row, half, where=warp.mask)

    return run


def load(warp, ins, access):
    """``ld.b128``; ``access`` gives the bytes and offsets of the active lanes."""
    row = warp.row(ins.args[0])

    def run():
        data, offsets = access(WIDE_BYTES)
        row[warp.mask] = data[offsets[:, None] + np.arange(WIDE_BYTES)].view(np.uint64)

    return run


def store(warp, ins, access):
    """``st.b128``."""
    row = warp.row(ins.args[1])

    def run():
        data, offsets = access(WIDE_BYTES)
        data[offsets[:, None] + np.arange(WIDE_BYTES)] = row[warp.mask].view(np.uint8)

    return run
