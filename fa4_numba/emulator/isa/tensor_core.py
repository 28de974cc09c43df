"""The tensor core as an asynchronous unit: what all tcgen05 instructions share."""

from ...errors import Hazard

UNIT = "tensor core"


def cta_group(ins) -> int:
    """Return 1 or 2: the CTAs whose tensor memory the instruction works on."""
    for part in ins.parts:
        if part.startswith("cta_group::"):
            return int(part[-1])
    raise ValueError("no .cta_group")


def group_of(cta, group: int, what) -> list:
    """Return the CTAs of ``cta_group::group``: the CTA, or its pair, even rank first."""
    if group == 1:
        return [cta]
    even = cta.rank & ~1
    if even + 1 >= cta.cluster.size:
        raise Hazard(f"{what}: .cta_group::2 needs a pair of CTAs; the cluster has {cta.cluster.size}")
    return cta.cluster.ctas[even : even + 2]


def tmem_pointer(warp, memory):
    """Return a function that gives the tensor-memory address of an operand ``[a + offset]``."""
    base, offset = warp.scalar(memory.base), memory.offset
    return lambda: base() + offset


def issue(cta, land, what) -> None:
    """Hand work on tensor memory to the tensor core, behind what it was given before."""
    flush(cta)
    _hand_over(cta, land, what)


def signal(cta, land, what) -> None:
    """Let ``land`` happen when all work that the tensor core was given before is complete."""
    flush(cta)
    cta.issue(UNIT, land, what)


def _hand_over(cta, land, what, amount=0) -> None:
    def work():
        land()
        cta.tensor_work -= 1

    cta.tensor_work += 1
    cta.issue(UNIT, work, what, amount)


def flush(cta) -> None:
    """Hand the multiplies that were collected (to be done as one) to the tensor core."""
    batch, cta.multiplies = cta.multiplies, None
    if batch is not None:
        _hand_over(cta, batch.land, batch.what, batch.amount)


def is_busy(cta) -> bool:
    """Return whether the CTA's tensor memory is being worked on: by its own unit, or by its pair's."""
    pair = [c for c in cta.cluster.ctas if c.rank >> 1 == cta.rank >> 1]
    return any(c.multiplies is not None or c.tensor_work for c in pair)


def whole_warp(warp, ins) -> None:
    """Fault unless all lanes that live execute an ``.aligned`` instruction."""
    if not warp.full and not (warp.mask == warp.live).all():
        raise Hazard(
            f"{warp.where(ins)}: an .aligned instruction is executed by {int(warp.mask.sum())} of 32 lanes"
        )
