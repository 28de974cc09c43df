"""mbarriers: phases that complete when all arrivals and all announced bytes are in.

A *state*, as ``arrive`` returns it, is opaque to programs: here the number of completed phases above 20 bits that hold
the arrivals which were still missing before.
"""

import numpy as np

from ..machine.waiting import PhaseWait
from ..ptx.module import Reg
from .memory import addresses
from .registry import effect
from .synchronisation import first_address

COUNT_BITS = 20
_COUNT_BITS = np.uint64(COUNT_BITS)
_COUNT = np.uint64((1 << 20) - 1)


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
    """Each active lane arrives once, or ``count`` times; its state, if wanted, is that before its arrival.

    ``.expect_tx`` first announces bytes. ``arrive_drop`` also lowers what later phases expect. ``.noComplete`` says
    that the arrival does not complete the phase.
    """
    operands = (
        ins.args if isinstance(ins.args[0], Reg) or not hasattr(ins.args[0], "base") else (None, *ins.args)
    )
    target = warp.row(operands[0]) if isinstance(operands[0], Reg) else None
    where, expects = addresses(warp, operands[1]), "expect_tx" in ins.parts
    amount = warp.source(operands[2], np.uint32) if len(operands) > 2 else None
    drops, completes = ins.parts[1] == "arrive_drop", "noComplete" not in ins.parts

    def one(barrier, count: int, tx_bytes: int, what) -> None:
        if expects:
            barrier.expect(tx_bytes)
        if drops:
            barrier.drop(count)
        barrier.arrive(count, what, completes)

    def together(lanes: np.ndarray, each: int, address: int, what) -> bool:
        """Let lanes arrive as one, if that is the same as one after the other."""
        barrier, n = warp.cta.mbarrier(address, what), len(lanes) * each
        if n > barrier.pending or (n == barrier.pending and not completes):
            return False
        if target is not None:
            first = np.uint64(barrier.phase) << _COUNT_BITS | np.uint64(barrier.pending)
            target[lanes] = first - np.arange(0, n, each, dtype=np.uint64)
        barrier.arrive(n, what, completes)
        return True

    def run():
        what, everywhere, lanes = warp.where(ins), where(), np.flatnonzero(warp.mask)
        address = int(everywhere[lanes[0]])
        each = 1 if amount is None or expects else int(amount[lanes[0]])
        plain = not (drops or expects) and (everywhere[lanes] == address).all()
        plain = plain and each > 0 and (amount is None or (amount[lanes] == each).all())
        if not (plain and together(lanes, each, address, what)):
            for lane in lanes:
                barrier = warp.cta.mbarrier(int(everywhere[lane]), what)
                if target is not None:
                    target[lane] = _state(barrier)
                value = 1 if amount is None else int(amount[lane])
                one(barrier, 1 if expects else value, value, what)
        warp.cta.machine.schedule.signalled(warp)

    return run


def _state(barrier) -> np.uint64:
    return np.uint64(barrier.phase) << _COUNT_BITS | np.uint64(barrier.pending)


@effect("mbarrier.pending_count")
def pending_count(warp, ins):
    """d = the arrivals that were missing, of a state."""
    target, state = warp.row(ins.args[0]), warp.source(ins.args[1], np.uint64)

    def run():
        np.copyto(target, (state & _COUNT).astype(np.uint32), where=warp.mask)

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
    """p = has the phase of this parity completed (``.parity``), or the phase that a state belongs to?

    ``test_wait`` only asks. ``try_wait`` may sleep: here it answers false once (a program may be peeking), and the
    warp sleeps when the same question fails again. With a clock it sleeps at once, as the hardware does, and the
    answer is false only where nothing else can happen.
    """
    target, address = warp.row(ins.args[0]), first_address(warp, ins.args[1])
    by_parity = "parity" in ins.parts
    value = warp.scalar(ins.args[2], np.uint32 if by_parity else np.uint64)
    may_sleep = ins.parts[1] == "try_wait"

    def run():
        barrier = warp.cta.mbarrier(address(), warp.where(ins))
        parity = value() if by_parity else (value() >> COUNT_BITS) & 1
        passed = barrier.passed(parity)
        question = (id(ins), id(barrier), parity, barrier.phase)
        peeks = warp.peeked != question
        if not passed and may_sleep and (warp.patient or not peeks):
            return PhaseWait(barrier, parity, peeks)
        warp.patient = warp.cta.machine.clock is not None
        if passed and barrier.checker is not None:
            barrier.checker.passed(warp, barrier, warp.where(ins))
        warp.peeked = None if passed else question
        target[warp.mask] = passed
        return None

    return run
