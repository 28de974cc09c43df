"""st.async and red.async: stores to another CTA's shared memory that complete bytes on an mbarrier there."""

import numpy as np

from .memory import addresses
from .reductions import element_dtype, reduction
from .registry import effect, vector_items


@effect("st.async", "red.async")
def store_async(warp, ins):
    """memory[a] = b, or op(memory[a], b), and then its bytes arrive on the mbarrier c; each lane for itself."""
    kind, combine = ins.parts[-1], None
    if ins.parts[0] == "red":
        operation = next(p for p in ins.parts if p in ("add", "min", "max", "inc", "dec", "and", "or", "xor"))
        combine = reduction(operation, kind)
    dtype = element_dtype(kind)
    where, barriers = addresses(warp, ins.args[0]), addresses(warp, ins.args[2])
    sources = [warp.source(b, dtype) for b in vector_items(ins.args[1])]
    size, cta = dtype.itemsize * len(sources), warp.cta

    def one(lane: int, address: int, bar: int, what):
        owner, at = cta.reach(address, what)
        owner.touch_shared(at, size, what, write=True)
        barrier = cta.mbarrier(bar, what)
        values = np.array([s[lane] for s in sources], dtype)

        def land():
            there = owner.shared[at : at + size].view(dtype)
            there[...] = values if combine is None else combine(there, values)
            barrier.land(size, what)

        cta.issue(("st.async", id(land)), land, what)

    def run():
        what, to, bars = warp.where(ins), where(), barriers()
        for lane in np.flatnonzero(warp.mask):
            one(lane, int(to[lane]), int(bars[lane]), what)

    return run
