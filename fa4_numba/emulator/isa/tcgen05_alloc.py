"""tcgen05: allocating tensor memory."""

import numpy as np

from ...errors import Hazard
from ...layout import split_tmem_address
from ..machine.waiting import TmemWait
from .registry import effect
from .synchronisation import first_address
from .tensor_core import cta_group, is_busy


@effect("tcgen05.alloc")
def alloc(warp, ins):
    """Allocate columns (a power of two from 32 to 512) and write their address to shared memory.

    The warp waits while too few are free. With ``.cta_group::2`` a warp of each CTA of the pair allocates the same.
    """
    address, columns, cta = first_address(warp, ins.args[0]), warp.scalar(ins.args[1]), warp.cta
    cta_group(ins)

    def run():
        what, n = warp.where(ins), columns()
        if n not in (32, 64, 128, 256, 512):
            raise Hazard(f"{what}: {n} columns; take a power of two from 32 to 512")
        if cta.alloc_relinquished:
            raise Hazard(f"{what}: this CTA has relinquished its permit to allocate tensor memory")
        start = cta.free_tmem(n)
        if start is None:
            return TmemWait(cta, n)
        cta.allocated[start] = n
        cta.allocation_changed()
        at = cta.own(address(), what)
        cta.touch_shared(at, 4, what, write=True)
        cta.shared[at : at + 4].view(np.uint32)[0] = start
        return None

    return run


@effect("tcgen05.dealloc")
def dealloc(warp, ins):
    """Free an allocation; its size must be the one allocated, and nothing may be in flight."""
    address, columns, cta = warp.scalar(ins.args[0]), warp.scalar(ins.args[1]), warp.cta
    cta_group(ins)

    def run():
        _, col = split_tmem_address(address())
        if cta.allocated.get(col) != columns():
            raise Hazard(
                f"{warp.where(ins)}: {columns()} columns at {col} were not allocated so ({cta.allocated})"
            )
        if is_busy(cta):
            raise Hazard(
                f"{warp.where(ins)}: tensor memory is freed while matrix multiplies are in flight: wait for their commit"
            )
        del cta.allocated[col]
        cta.allocation_changed()

    return run


@effect("tcgen05.relinquish_alloc_permit")
def relinquish(warp, ins):
    """The CTA will not allocate tensor memory again."""
    cta_group(ins)

    def run():
        warp.cta.alloc_relinquished = True

    return run
