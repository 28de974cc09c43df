"""Exchange between the lanes of a warp: votes, matches, shuffles, reductions, and who is active."""

import numpy as np

from ..machine.state import LANES
from ..ptx.module import Not
from .reductions import reduction
from .registry import effect, pair_items
from .types import dtype_of

_BIT = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def predicate(warp, operand):
    """Return a function that gives a predicate operand's 32 lanes; ``!p`` is read inverted."""
    if isinstance(operand, Not):
        row = warp.row(operand.register)
        return lambda: ~row
    row = warp.source(operand, np.bool_)
    return lambda: row


@effect("elect")
def elect(warp, ins):
    """p is true in one active lane; d is that lane's index."""
    d, p = pair_items(ins.args[0])
    target = warp.row(p)
    lane_target = warp.row(d) if hasattr(d, "width") else None

    def run():
        target[warp.mask] = False
        target[warp.any_lane] = True
        if lane_target is not None:
            lane_target[warp.mask] = warp.any_lane

    return run


@effect("vote")
def vote(warp, ins):
    """any, all, uni over the active lanes' predicates, or their bits (``ballot``)."""
    mode = ins.parts[2]
    target, source = warp.row(ins.args[0]), predicate(warp, ins.args[1])

    def run():
        votes = source() & warp.mask
        yes, active = int(votes.sum()), int(warp.mask.sum())
        if mode == "ballot":
            target[warp.mask] = _BIT[votes].sum(dtype=np.uint32)
        else:
            target[warp.mask] = {"any": yes > 0, "all": yes == active, "uni": yes in (0, active)}[mode]

    return run


@effect("activemask")
def activemask(warp, ins):
    """d = one bit per active lane."""
    target = warp.row(ins.args[0])

    def run():
        target[warp.mask] = _BIT[warp.mask].sum(dtype=np.uint32)

    return run


@effect("match")
def match(warp, ins):
    """``any``: d = bits of the active lanes with the same a; ``all``: bits of all if they agree, else 0; p: they do."""
    everybody, dtype = ins.parts[1] == "all", dtype_of(ins)
    d, p = pair_items(ins.args[0])
    target, source = warp.row(d), warp.source(ins.args[1], dtype)
    agree_target = warp.row(p) if hasattr(p, "width") else None

    def run():
        equal = (source[:, None] == source[None, :]) & warp.mask[None, :]
        bits = np.where(equal, _BIT, 0).sum(1, dtype=np.uint32)
        if everybody:
            agree = bits == _BIT[warp.mask].sum(dtype=np.uint32)
            bits = np.where(agree, bits, 0)
            if agree_target is not None:
                np.copyto(agree_target, agree, where=warp.mask)
        np.copyto(target, bits, where=warp.mask)

    return run


@effect("shfl")
def shuffle(warp, ins):
    """d = another lane's a: ``idx`` lane b, ``up``/``down`` b lanes away, ``bfly`` lane ^ b; p: inside the segment."""
    mode = next(p for p in ins.parts if p in ("idx", "up", "down", "bfly"))
    d, p = pair_items(ins.args[0])
    target, source = warp.row(d), warp.source(ins.args[1], np.uint32)
    b, c = warp.source(ins.args[2], np.uint32), warp.source(ins.args[3], np.uint32)
    inside_target = warp.row(p) if hasattr(p, "width") else None
    lane = np.arange(LANES)

    def run():
        segment, clamp, shift = (c >> 8 & 31).astype(int), (c & 31).astype(int), (b & 31).astype(int)
        low = lane & segment
        high = low | (clamp & ~segment)
        j = {"idx": low | (shift & ~segment), "up": lane - shift, "down": lane + shift, "bfly": lane ^ shift}[
            mode
        ]
        inside = j >= high if mode == "up" else j <= high
        result = source[np.where(inside, j, lane)]
        np.copyto(target, result, where=warp.mask)
        if inside_target is not None:
            np.copyto(inside_target, inside, where=warp.mask)

    return run


@effect("redux")
def redux(warp, ins):
    """d = add, min, max, and, or, xor of all active lanes' a; f32: min and max, ``.abs`` of magnitudes, ``.NaN``."""
    mode, dtype = ins.parts[2], dtype_of(ins)
    target, source = warp.destination(ins.args[0], dtype), warp.source(ins.args[1], dtype)
    if dtype.kind == "f":
        combine = (
            {"min": np.minimum, "max": np.maximum} if ins.has("NaN") else {"min": np.fmin, "max": np.fmax}
        )
        function = combine[mode]
    else:
        function = reduction(mode, ins.parts[-1])

    def run():
        values = source[warp.mask]
        target[warp.mask] = function.reduce(np.abs(values) if ins.has("abs") else values)

    return run
