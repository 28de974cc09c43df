"""Bulk copies and reductions of contiguous bytes: cp.async.bulk and cp.reduce.async.bulk without a tensor map."""

import numpy as np

from ...errors import MemoryFault
from ..machine.memory import RANK_SHIFT
from .reductions import element_dtype, reduction
from .registry import effect
from .synchronisation import first_address


@effect("cp.async.bulk", "cp.reduce.async.bulk")
def bulk_copy(warp, ins):
    """Copy or combine n bytes, from or to shared memory, a multiple of 16.

    Into shared memory the bytes complete on an mbarrier of the destination's CTA; global memory is written in the
    current bulk group. ``.multicast::cluster`` writes at the same offset in several CTAs.
    """
    spaces = [p.split("::")[0] for p in ins.parts if p.startswith(("global", "shared"))]
    if spaces == ["shared", "global"]:
        return _from_global(warp, ins)
    if spaces == ["global", "shared"]:
        return _to_global(warp, ins)
    if spaces == ["shared", "shared"]:
        return _to_other_cta(warp, ins)
    raise ValueError("copies between global and shared memory, or from a CTA to another of its cluster")


def _combination(ins):
    """Return a function of (old bytes, new bytes) that gives what is written, or None for a copy."""
    if ins.parts[1] != "reduce":
        return None
    return bytes_reduction(ins, in_l2=any(p == "global" for p in ins.parts))


def bytes_reduction(ins, kind: str | None = None, in_l2: bool = True):
    """Return the reduction that an instruction names, as a function of bytes."""
    operations = ("add", "min", "max", "and", "or", "xor", "inc", "dec")
    operation, kind = next(p for p in ins.parts if p in operations), kind or ins.parts[-1]
    # sums of f32 keep subnormals here, unlike those of single atomics in the L2 cache
    function, dtype = reduction(operation, kind, in_l2=in_l2 and kind != "f32"), element_dtype(kind)

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        a, b = (np.ascontiguousarray(x).reshape(-1).view(dtype) for x in (old, new))
        return np.ascontiguousarray(function(a, b)).view(np.uint8).reshape(old.shape)

    return combine


def _check(size: int, what, *starts: int) -> None:
    if size % 16 or any(start % 16 for start in starts):
        places = ", ".join(f"{start:#x}" for start in starts)
        raise MemoryFault(
            f"{what}: bulk copies need addresses and a size that are multiples of 16: {places}, {size} bytes"
        )


def _from_global(warp, ins):
    destination, source, bar = (first_address(warp, ins.args[i]) for i in (0, 1, 3))
    size, cta = warp.scalar(ins.args[2]), warp.cta
    mask = warp.scalar(ins.args[4], np.uint16) if "multicast::cluster" in ins.parts else None

    def run():
        what, count = warp.where(ins), size()
        owner, at = cta.reach(destination(), what)
        start = source()
        _check(count, what, at, start)
        data, offset = cta.machine.memory.find(start, start + count, what)
        _, bar_offset = cta.reach(bar(), what)
        for rank in [owner.rank] if mask is None else cta.ranks_of(mask(), what):
            target, address = (
                cta.cluster.ctas[rank],
                bar() if mask is None else rank << RANK_SHIFT | bar_offset,
            )
            barrier = cta.mbarrier(address, what)
            target.check_shared(at, count, what)

            def land(target=target, barrier=barrier):
                target.touch_shared(at, count, what, write=True)
                target.shared[at : at + count] = data[offset : offset + count]
                barrier.land(count, warp.where(ins, "bulk copy of "))

            cta.issue(("bulk", id(land)), land, what, count)

    return run


def _to_global(warp, ins):
    destination, source, size = (
        first_address(warp, ins.args[0]),
        first_address(warp, ins.args[1]),
        warp.scalar(ins.args[2]),
    )
    combine, cta = _combination(ins), warp.cta

    def run():
        what, count, start = warp.where(ins), size(), destination()
        at = cta.own(source(), what)
        _check(count, what, start, at)
        cta.check_shared(at, count, what)
        data, offset = cta.machine.memory.find(start, start + count, what, write=True)
        groups = warp.bulk_groups
        group = groups.begin()

        def land():
            cta.touch_shared(at, count, what)
            new, there = cta.shared[at : at + count], data[offset : offset + count]
            there[...] = new if combine is None else combine(there, new)
            groups.end(group)

        cta.issue(("bulk store", id(land)), land, what, count)

    return run


def _to_other_cta(warp, ins):
    destination, source, bar = (first_address(warp, ins.args[i]) for i in (0, 1, 3))
    size, combine, cta = warp.scalar(ins.args[2]), _combination(ins), warp.cta

    def run():
        what, count = warp.where(ins), size()
        (owner, to), at = cta.reach(destination(), what), cta.own(source(), what)
        _check(count, what, to, at)
        cta.check_shared(at, count, what)
        owner.check_shared(to, count, what)
        barrier = cta.mbarrier(bar(), what)

        def land():
            cta.touch_shared(at, count, what)
            owner.touch_shared(to, count, what, write=True)
            new, there = cta.shared[at : at + count], owner.shared[to : to + count]
            there[...] = new if combine is None else combine(there, new)
            barrier.land(count, warp.where(ins, "bulk copy of "))

        cta.issue(("bulk", id(land)), land, what, count)

    return run


@effect("cp.async.bulk.prefetch")
def prefetch(warp, ins):
    """Bring bytes into the L2 cache: nothing that a program can see."""
    return lambda: None
