"""mbarriers, named barriers, fences, votes and shuffles, register budgets."""

import numpy as np

from ...errors import Hazard
from ..machine.state import LANES
from ..machine.waiting import NamedWait, PhaseWait, RegisterWait
from ..ptx.module import Imm
from .memory import addresses
from .registry import effect, pair_items
from .types import dtype_of


def first_address(warp, operand):
    """Return a function that gives the first active lane's address."""
    lanes = addresses(warp, operand)
    return lambda: int(lanes()[warp.any_lane])


@effect("mbarrier.init")
def mbarrier_init(warp, ins):
    """Make the 8 bytes at a an mbarrier that expects ``count`` arrivals a phase; each active lane makes its own."""
    where, count = addresses(warp, ins.args[0]), warp.source(ins.args[1], np.uint32)

    def run():
        what = warp.where(ins)
        for address, n in zip(where()[warp.mask], count[warp.mask]):
            warp.cta.init_mbarrier(warp.cta.own(int(address), what), int(n), what)

    return run


@effect("mbarrier.inval")
def mbarrier_inval(warp, ins):
    """End the mbarrier; each active lane its own."""
    where = addresses(warp, ins.args[0])

    def run():
        what = warp.where(ins)
        for address in where()[warp.mask]:
            offset = warp.cta.own(int(address), what)
            barrier = warp.cta.mbarrier(int(address), what)
            if barrier.checker is not None:
                barrier.checker.invalidated(barrier, what)
            barrier.invalidate()
            del warp.cta.mbarriers[offset]

    return run


@effect("mbarrier.arrive", "mbarrier.arrive_drop")
def mbarrier_arrive(warp, ins):
    """Each active lane arrives once (or ``count`` times); ``.expect_tx`` first announces bytes."""
    where, expect = addresses(warp, ins.args[1]), "expect_tx" in ins.parts
    amount = warp.scalar(ins.args[2]) if len(ins.args) > 2 else None

    def run():
        for address, lanes in zip(*np.unique(where()[warp.mask], return_counts=True)):
            barrier = warp.cta.mbarrier(int(address), warp.where(ins))
            count = int(lanes)
            if expect:
                barrier.expect(amount() * count)
            elif amount is not None:
                count *= amount()
            barrier.arrive(count, warp.where(ins))
        warp.cta.machine.schedule.signalled(warp)

    return run


@effect("mbarrier.expect_tx", "mbarrier.complete_tx")
def mbarrier_tx(warp, ins):
    """Announce bytes, or say that bytes have come, without an arrival."""
    address, amount = first_address(warp, ins.args[0]), warp.scalar(ins.args[1])

    def run():
        barrier = warp.cta.mbarrier(address(), warp.where(ins))
        if ins.parts[1] == "expect_tx":
            barrier.expect(amount())
        else:
            barrier.land(amount(), warp.where(ins))

    return run


@effect("mbarrier.try_wait", "mbarrier.test_wait")
def mbarrier_wait(warp, ins):
    """p = has the phase of this parity completed?

    ``test_wait`` only asks. ``try_wait`` may sleep: here it answers false once (a program may be peeking), and the
    warp sleeps when the same question fails again.
    """
    if "parity" not in ins.parts:
        raise ValueError("only the .parity form")
    target = warp.row(ins.args[0])
    address, parity = first_address(warp, ins.args[1]), warp.scalar(ins.args[2])
    may_sleep = ins.parts[1] == "try_wait"

    def run():
        barrier = warp.cta.mbarrier(address(), warp.where(ins))
        wanted = parity()
        passed = barrier.passed(wanted)
        question = (id(ins), id(barrier), wanted, barrier.phase)
        if not passed and may_sleep and warp.peeked == question:
            return PhaseWait(barrier, wanted)
        if passed and barrier.checker is not None:
            barrier.checker.passed(warp, barrier, warp.where(ins))
        warp.peeked = None if passed else question
        target[warp.mask] = passed
        return None

    return run


@effect("bar", "barrier")
def barrier(warp, ins):
    """Named barriers: ``sync id{, threads}`` waits for all, ``arrive id, threads`` only counts; ``bar.warp.sync``."""
    if "warp" in ins.parts:
        return lambda: None  # lanes of a warp run in step here
    if "red" in ins.parts:
        raise ValueError("not for this form")
    number = warp.scalar(ins.args[0])
    threads = warp.scalar(ins.args[1]) if len(ins.args) > 1 else None
    waits = ins.parts[1].startswith("sync")
    bar_form = ins.parts[0] == "bar" or "aligned" in ins.parts

    def run():
        if bar_form and not (warp.mask == warp.live).all():
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
        named.arrive(LANES, total, warp.where(ins))
        if waits and named.generation == generation:
            return NamedWait(named, generation, meeting)
        if waits and checker is not None:
            checker.released(warp, meeting)
        return None

    return run


@effect("fence", "membar", "griddepcontrol", "nanosleep")
def fence(warp, ins):
    """Order memory accesses: here all are in program order; but a checker cares for ``.proxy.async``."""
    proxy = "proxy" in ins.parts and "async" in ins.parts

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
    target, source = warp.row(ins.args[0]), warp.source(ins.args[1], np.bool_)

    def run():
        votes = source[warp.mask]
        if mode == "ballot":
            result = int(
                (np.where(warp.mask, source, False).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum()
            )
        else:
            result = {"any": votes.any, "all": votes.all, "uni": lambda: votes.all() or not votes.any()}[
                mode
            ]()
        target[warp.mask] = result

    return run


@effect("activemask")
def activemask(warp, ins):
    """d = one bit per active lane."""
    target = warp.row(ins.args[0])

    def run():
        target[warp.mask] = int((1 << np.arange(32, dtype=np.uint64))[warp.mask].sum())

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
    """d = add, min, max, and, or, xor of all active lanes' a."""
    mode, dtype = ins.parts[2], dtype_of(ins)
    target, source = warp.destination(ins.args[0], dtype), warp.source(ins.args[1], dtype)
    functions = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    if dtype.kind == "f" and not ins.has("NaN"):
        functions |= {"min": np.fmin, "max": np.fmax}
    function = functions[mode]

    def run():
        target[warp.mask] = function.reduce(source[warp.mask])

    return run
