"""tcgen05.cp and .shift: shared memory to tensor memory, and rows of tensor memory by one lane."""

import numpy as np

from ...errors import Hazard
from ...layout import copy_rows, split_tmem_address
from .mma_elements import ELEMENTS
from .mma_operands import gather
from .registry import effect
from .tensor_core import cta_group, group_of, issue, tmem_pointer

_PACKED = {"b6x16_p32": "e3m2", "b4x16_p64": "e2m1"}  # any element type of that width
_SHIFT_COLUMNS = 8


@effect("tcgen05.cp")
def copy(warp, ins):
    """Tensor memory = rows of shared memory, asynchronously, in order with multiplies.

    ``.warpx2`` and ``.warpx4`` give rows to several quarters of the lanes. ``.b8x16.b6x16_p32`` and ``.b4x16_p64``
    unpack 16 elements of 6 or 4 bits and their padding to 8 bits each. With ``.cta_group::2`` each CTA of the pair
    copies from its own shared memory.
    """
    group, cta = cta_group(ins), warp.cta
    shape = next(p for p in ins.parts[2:] if p[0].isdigit() and p.endswith("b"))
    multicast = next((p for p in ins.parts if p.startswith("warpx")), None)
    packed = next((ELEMENTS[t] for name, t in _PACKED.items() if name in ins.parts), None)
    lanes, rows, row_bytes = copy_rows(shape, multicast)
    columns, count = row_bytes // 4, int(rows.max()) + 1
    address, descriptor = tmem_pointer(warp, ins.args[0]), warp.scalar(ins.args[1], np.uint64)

    def run():
        what, (lane, col), source = warp.where(ins), split_tmem_address(address()), descriptor()
        if lane + int(lanes.max()) > 127:
            raise Hazard(f"{what}: {shape} from lane {lane} on leaves the 128 lanes")
        ctas = group_of(cta, group, what)

        def land():
            for owner in ctas:
                words = gather(owner, source, count, row_bytes, what)
                data = words if packed is None else packed.unpack(words)
                owner.touch_tmem(lane + lanes, col, columns, what, write=True)
                owner.tmem[lane + lanes, col : col + columns] = data.view(np.uint32)[rows]

        issue(cta, land, what)

    return run


@effect("tcgen05.shift")
def shift(warp, ins):
    """Of 32 lanes from the address's on, each but the last gets the 8 columns of the next lane."""
    group, address, cta = cta_group(ins), tmem_pointer(warp, ins.args[0]), warp.cta
    if "down" not in ins.parts:
        raise ValueError("only .down")

    def run():
        what, (lane, col) = warp.where(ins), split_tmem_address(address())
        if lane % 32:
            raise Hazard(f"{what}: lane {lane} must be a multiple of 32")
        ctas = group_of(cta, group, what)

        def land():
            for owner in ctas:
                owner.touch_tmem(slice(lane, lane + 32), col, _SHIFT_COLUMNS, what, write=True)
                block = owner.tmem[lane : lane + 32, col : col + _SHIFT_COLUMNS]
                block[:-1] = block[1:].copy()

        issue(cta, land, what)

    return run
