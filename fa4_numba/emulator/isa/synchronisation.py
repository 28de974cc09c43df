"""Named barriers, fences, register budgets."""

from ...errors import Hazard
from ..machine.state import LANES
from ..machine.waiting import NamedWait, RegisterWait
from ..ptx.module import Imm
from .exchange import predicate
from .memory import addresses
from .registry import effect


def first_address(warp, operand):
    """Return a function that gives the first active lane's address."""
    lanes = addresses(warp, operand)
    return lambda: int(lanes()[warp.any_lane])


@effect("bar", "barrier")
def barrier(warp, ins):
    """Named barriers: ``sync id{, threads}`` waits for all, ``arrive id, threads`` only counts.

    ``red.popc`` and ``red.and``, ``red.or`` also tell everybody for how many threads a predicate holds, or whether for
    all or any. ``bar.warp.sync`` is no barrier here: the lanes of a warp run in step.
    """
    parts = [p for p in ins.parts if p != "cta"]
    if "warp" in parts:
        return lambda: None
    operands = list(ins.args)
    deliver = votes = None
    if parts[1] == "red":
        deliver, votes = _result(warp, parts[2], operands.pop(0)), predicate(warp, operands.pop())
    number = warp.scalar(operands[0])
    threads = warp.scalar(operands[1]) if len(operands) > 1 else None
    waits = parts[1] in ("sync", "red")
    aligned = parts[0] == "bar" or "aligned" in parts

    def run():
        if aligned and not (warp.mask == warp.live).all():
            raise Hazard(
                f"{warp.where(ins)}: an .aligned barrier is executed by {int(warp.mask.sum())} of 32 lanes"
            )
        i = number()
        if i > 15:
            raise Hazard(f"{warp.where(ins)}: barrier {i}; a CTA has 16")
        named = warp.cta.named[i]
        total = threads() if threads else -(-warp.cta.machine.threads // LANES) * LANES
        if total % LANES or not total:
            raise Hazard(f"{warp.where(ins)}: {total} threads; a barrier counts whole warps")
        generation, checker = named.generation, warp.cta.machine.checker
        meeting = warp.cta, i, generation
        if checker is not None:
            checker.meets(warp, meeting)
        if deliver is not None:
            mine = votes()[warp.mask]
            named.vote(int(mine.sum()), int((~mine).sum()), deliver(warp.mask.copy()))
        named.arrive(LANES, total, warp.where(ins))
        if waits and named.generation == generation:
            return NamedWait(named, generation, meeting)
        if waits and checker is not None:
            checker.released(warp, meeting)
        return None

    return run


def _result(warp, operation: str, operand):
    """Return ``deliver(lanes)``: a function of (votes for, votes against) that writes a barrier's reduction."""
    target = warp.row(operand)
    results = {"popc": lambda yes, no: yes, "and": lambda yes, no: no == 0, "or": lambda yes, no: yes > 0}
    result = results[operation]

    def deliver(lanes):
        def write(yes: int, no: int) -> None:
            target[lanes] = result(yes, no)

        return write

    return deliver


@effect("fence", "membar", "griddepcontrol", "nanosleep")
def fence(warp, ins):
    """Order memory accesses: here all are in program order; but a checker cares for what the async proxy may see."""
    proxy = ("proxy" in ins.parts and "async" in ins.parts) or "mbarrier_init" in ins.parts

    def run():
        if proxy and warp.cta.machine.checker is not None:
            warp.cta.machine.checker.proxy_fence(warp)

    return run


@effect("setmaxnreg")
def set_max_registers(warp, ins):
    """Give registers back to the CTA's pool (``.dec``), or wait until the pool can give them (``.inc``)."""
    wanted, grow = int(ins.args[0].value), ins.has("inc")
    if not isinstance(ins.args[0], Imm) or wanted % 8 or not 24 <= wanted <= 256:
        raise ValueError("takes a multiple of 8 from 24 to 256")

    def run():
        change = (wanted - warp.allocation) * LANES
        if (change < 0) if grow else (change > 0):
            raise Hazard(
                f"{warp.where(ins)}: {'inc' if grow else 'dec'} to {wanted}, but the warp has {warp.allocation}"
            )
        if change > warp.cta.free_registers:
            return RegisterWait(warp.cta, change)
        warp.cta.free_registers -= change
        warp.allocation = wanted
        return None

    return run
