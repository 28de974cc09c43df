"""Bulk copies of contiguous bytes: global to shared memory, shared to global, and between CTAs of a cluster."""

import numpy as np

from ...errors import MemoryFault
from ..machine.memory import RANK_SHIFT
from .bulk import current_group
from .registry import effect
from .synchronisation import first_address
from .tensor_maps import global_bytes

_UNIT = 16


@effect("cp.async.bulk")
def bulk_copy(warp, ins):
    """Copy ``size`` bytes; addresses and size are multiples of 16."""
    spaces = [p for p in ins.parts if p.startswith(("shared", "global"))]
    if len(spaces) != 2:
        raise ValueError("a bulk copy names two state spaces")
    if spaces[0].startswith("global"):
        return _store(warp, ins)
    return _load(warp, ins, spaces[1].startswith("shared"))


@effect("cp.async.bulk.prefetch")
def prefetch(warp, ins):
    """Bring bytes into the L2 cache: nothing that a program can see."""
    address, size = first_address(warp, ins.args[0]), warp.scalar(ins.args[1])

    def run():
        _check(warp.where(ins), address(), size())

    return run


def _check(what, *values: int) -> None:
    for value in values:
        if value % _UNIT:
            raise MemoryFault(f"{what}: {value:#x} must be a multiple of {_UNIT}, as all of a bulk copy")


def _load(warp, ins, from_shared: bool):
    """Into shared memory of a CTA of the cluster (or, with ``.multicast``, several), completing bytes on an mbarrier."""
    destination, source = first_address(warp, ins.args[0]), first_address(warp, ins.args[1])
    size, bar, cta = warp.scalar(ins.args[2]), first_address(warp, ins.args[3]), warp.cta
    mask = warp.scalar(ins.args[4], np.uint16) if "multicast::cluster" in ins.parts else None

    def run():
        what, to, at, n = warp.where(ins), destination(), source(), size()
        _check(what, to, at, n)
        target, offset = cta.reach(to, what)
        targets = [(target, cta.mbarrier(bar(), what))]
        if mask is not None:
            _, bar_offset = cta.reach(bar(), what)
            targets = [
                (cta.cluster.ctas[rank], cta.mbarrier(rank << RANK_SHIFT | bar_offset, what))
                for rank in cta.ranks_of(mask(), what)
            ]
        if from_shared:
            at = cta.own(at, what)
            cta.check_shared(at, n, what)

        def read():
            if not from_shared:
                return global_bytes(warp, at, n, what)
            cta.touch_shared(at, n, what)
            return cta.shared[at : at + n]

        for owner, barrier in targets:
            owner.check_shared(offset, n, what)
            _issue(cta, owner, barrier, offset, n, read, warp.where(ins, "bulk copy of "))

    return run


def _issue(cta, owner, barrier, offset: int, size: int, read, who) -> None:
    def land():
        data = read()
        owner.touch_shared(offset, size, who, write=True)
        owner.shared[offset : offset + size] = data
        barrier.land(size, who)
        owner.event("TMA", f"load {barrier.name}")

    cta.issue(("tma", id(land)), land, f"bulk copy to {barrier.name}")


def _store(warp, ins):
    """Shared → global memory, in a bulk group."""
    if "cp_mask" in ins.parts:
        raise ValueError(".cp_mask is not implemented")
    destination, source = first_address(warp, ins.args[0]), first_address(warp, ins.args[1])
    size, cta = warp.scalar(ins.args[2]), warp.cta

    def run():
        what, to, n = warp.where(ins), destination(), size()
        at = cta.own(source(), what)
        _check(what, to, at, n)
        cta.check_shared(at, n, what)
        group = current_group(warp)
        group["open"] += 1

        def land():
            cta.touch_shared(at, n, what)
            global_bytes(warp, to, n, what, write=True)[:] = cta.shared[at : at + n]
            group["open"] -= 1
            cta.event("TMA", "store")

        cta.issue(("tma store", id(land)), land, "bulk store")

    return run
