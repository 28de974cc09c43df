"""cp.async: copies of 4 to 16 bytes per thread from global to shared memory, in groups, or arriving on an mbarrier."""

import numpy as np

from ..machine.waiting import IdleWait
from ..ptx.module import Not, Reg
from .bulk import wait_for
from .exchange import predicate
from .memory import addresses, resolve
from .registry import effect


def _unit(warp) -> tuple:
    """A warp's copies land in order, those of different warps in any."""
    return ("cp.async", warp.index)


@effect("cp.async")
def copy(warp, ins):
    """shared[a] = global[b], n bytes, of which the first ``src-size`` are read and the rest are zeros.

    With a predicate instead of a size, lanes where it holds read nothing.
    """
    destination, source, size = (
        addresses(warp, ins.args[0]),
        addresses(warp, ins.args[1]),
        int(ins.args[2].value),
    )
    if size not in (4, 8, 16) or (size != 16 and "cg" in ins.parts):
        raise ValueError("copies 4, 8 or 16 bytes, with .cg only 16")
    taken = _bytes_read(warp, ins, size)

    def run():
        what, mask = warp.where(ins), warp.mask.copy()
        count = np.minimum(taken(), size)[mask]
        to, start = resolve(warp, "shared", destination()[mask], size, what, True)
        values = np.zeros((len(count), size), np.uint8)
        reads = count > 0
        index = np.arange(size)
        if reads.any():
            data, at = resolve(warp, "global", source()[mask][reads], size, what, False)
            inside = index < count[reads][:, None]
        group = warp.copy_groups.begin()

        def land():
            if reads.any():
                values[reads] = np.where(inside, data[np.minimum(at[:, None] + index, len(data) - 1)], 0)
            to[start[:, None] + index] = values
            warp.copy_groups.end(group)

        warp.cta.issue(_unit(warp), land, what, size * int(np.count_nonzero(mask)))

    return run


def _bytes_read(warp, ins, size: int):
    """Return a function that gives how many bytes each lane reads."""
    if (
        len(ins.args) < 4 or isinstance(ins.args[3], Reg) and ins.args[3].width == 64
    ):  # 64 bits: a cache policy
        return lambda: np.full(32, size)
    operand = ins.args[3]
    if isinstance(operand, Not) or isinstance(operand, Reg) and operand.width == 1:
        ignore = predicate(warp, operand)
        return lambda: np.where(ignore(), 0, size)
    row = warp.source(operand, np.uint32)
    return lambda: row


@effect("cp.async.commit_group")
def commit_group(warp, ins):
    """Close the current group of copies, which may be empty."""
    return lambda: warp.copy_groups.commit()


@effect("cp.async.wait_group")
def wait_group(warp, ins):
    """Wait until at most the newest n groups are incomplete."""
    return lambda: wait_for(warp.copy_groups, int(ins.args[0].value))


@effect("cp.async.wait_all")
def wait_all(warp, ins):
    """Wait for every copy of the warp, committed or not."""

    def run():
        wait = IdleWait(warp.copy_groups)
        return None if wait.ready() else wait

    return run


@effect("cp.async.mbarrier.arrive")
def arrive_when_copied(warp, ins):
    """When a thread's copies so far are complete, it arrives on the mbarrier.

    Without ``.noinc`` the arrival is one more than the phase expected, so that it changes nothing but the time.
    """
    where, extra = addresses(warp, ins.args[0]), "noinc" not in ins.parts

    def run():
        what = warp.where(ins)
        for address, lanes in zip(*np.unique(where()[warp.mask], return_counts=True)):
            barrier, count = warp.cta.mbarrier(int(address), what), int(lanes)
            if extra:
                barrier.expect_arrivals(count)
            arrive = lambda barrier=barrier, count=count: barrier.arrive(count, what)
            warp.cta.issue(_unit(warp), arrive, what)

    return run
