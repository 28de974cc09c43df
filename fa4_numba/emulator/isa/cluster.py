"""Clusters: addresses of the state spaces and of other CTAs' shared memory, and the cluster barrier."""

import numpy as np

from ...errors import Hazard
from ..machine.memory import (
    GLOBAL_BASE,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    SHARED_WINDOW_END,
    WINDOW_BYTES,
)
from ..machine.waiting import ClusterWait
from ..ptx.module import Special
from .registry import Alu, alu, effect
from .types import dtype_of


def _base(ins, dtype) -> np.ndarray:
    """Return what is added to shared::cluster addresses: 0, or the start of their window for generic ones."""
    generic = not any(part.startswith("shared") for part in ins.parts)
    if generic and np.dtype(dtype).itemsize < 8:
        raise ValueError("generic addresses are 64 bits wide")
    return np.array(SHARED_WINDOW if generic else 0, dtype)


@alu("mapa")
def map_address(ins) -> Alu:
    """d = the address, in the CTA of rank b, of what has the address a here (``.shared::cluster``, or generic)."""
    dtype = dtype_of(ins)
    base, keep, shift = _base(ins, dtype), np.array(WINDOW_BYTES - 1, dtype), np.array(RANK_SHIFT, dtype)
    function = lambda a, rank: (a & keep) | (rank.astype(dtype) << shift) | base
    return Alu([(ins.args[0], dtype)], [(ins.args[1], dtype), (ins.args[2], np.uint32)], function)


@alu("getctarank")
def cta_rank(ins) -> Alu:
    """d = the rank of the CTA that a shared::cluster (or generic) address belongs to."""
    dtype = dtype_of(ins)
    base, shift = _base(ins, dtype), np.array(RANK_SHIFT, dtype)
    return Alu(
        [(ins.args[0], np.uint32)],
        [(ins.args[1], dtype)],
        lambda a: ((a - base) >> shift).astype(np.uint32),
    )


@alu("cvta.shared", "cvta.to.shared")
def convert_shared_address(ins) -> Alu:
    """Between generic addresses and those of shared memory (of the CTA or of the cluster: the same numbers)."""
    dtype = dtype_of(ins)
    window = np.array(SHARED_WINDOW, dtype)
    function = (lambda a: a - window) if ins.has("to") else (lambda a: a + window)
    return Alu([(ins.args[0], dtype)], [(ins.args[1], dtype)], function)


@alu("cvta.param")
def convert_param_address(ins) -> Alu:
    """The generic address of a kernel parameter; in its own space 32 bits are enough to tell parameters apart."""
    dtype = dtype_of(ins)
    window, low = np.array(PARAM_WINDOW, dtype), np.array(0xFFFFFFFF, dtype)
    return Alu([(ins.args[0], dtype)], [(ins.args[1], dtype)], lambda a: (a & low) | window)


@alu("isspacep")
def is_in_space(ins) -> Alu:
    """p = does the generic address a lie in this state space? ``.shared`` means ``.shared::cta``."""
    space = ins.parts[1]
    target, address = [(ins.args[0], np.bool_)], (ins.args[1], np.uint64)
    if space in ("shared", "shared::cta"):
        base, shift = np.uint64(SHARED_WINDOW), np.uint64(RANK_SHIFT)
        rank = (Special("%cluster_ctarank"), np.uint64)
        return Alu(target, [address, rank], lambda a, rank: (a - base) >> shift == rank)
    windows = {
        "shared::cluster": (SHARED_WINDOW, SHARED_WINDOW_END),
        "param": (PARAM_WINDOW, PARAM_WINDOW + (1 << 16)),
        "param::entry": (PARAM_WINDOW, PARAM_WINDOW + (1 << 16)),
        "global": (GLOBAL_BASE, 1 << 63),
    }
    low, high = (np.uint64(n) for n in windows.get(space, (0, 0)))
    return Alu(target, [address], lambda a: (a >= low) & (a < high))


@effect("barrier.cluster.arrive")
def cluster_arrive(warp, ins):
    """Each active thread arrives at the cluster's barrier; ``.release`` (default) or ``.relaxed``."""

    def run():
        _whole_warp(warp, ins)
        warp.cta.cluster.barrier.arrive(warp)
        warp.cta.machine.schedule.signalled(warp)

    return run


@effect("barrier.cluster.wait")
def cluster_wait(warp, ins):
    """Wait until all threads of the cluster that have not exited have arrived."""

    def run():
        _whole_warp(warp, ins)
        wait = ClusterWait(warp.cta.cluster.barrier, warp.cta.cluster.barrier.join(warp))
        if not wait.ready():
            return wait
        if warp.cta.machine.checker is not None:
            warp.cta.machine.checker.released(warp, wait.meeting)
        return None

    return run


def _whole_warp(warp, ins) -> None:
    if "aligned" in ins.parts and not (warp.mask == warp.live).all():
        raise Hazard(
            f"{warp.where(ins)}: an .aligned barrier is executed by {int(warp.mask.sum())} of 32 lanes"
        )
