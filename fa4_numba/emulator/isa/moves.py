"""mov and cvta: moving and packing values, addresses between state spaces."""

import numpy as np

from ..machine.memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ..ptx.module import Vector
from .bits import join, split
from .registry import Alu, alu, effect
from .types import dtype_of, unsigned

_WINDOWS = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "local": LOCAL_WINDOW}


@alu("mov")
def move(ins) -> Alu:
    """d = a; with a vector on one side, packs or unpacks (first element = lowest bits)."""
    target, source = ins.args
    whole = dtype_of(ins)
    whole = whole if whole == np.bool_ else unsigned(whole)
    if isinstance(source, Vector):
        part = np.dtype(f"u{whole.itemsize // len(source.items)}")
        function = lambda *parts: join(parts, whole) if len(parts) > 1 else parts[0]
        return Alu([(target, whole)], [(item, part) for item in source.items], function)
    if isinstance(target, Vector):
        part = np.dtype(f"u{whole.itemsize // len(target.items)}")
        function = (lambda a: split(a, part)) if len(target.items) > 1 else (lambda a: a)
        return Alu([(item, part) for item in target.items], [(source, whole)], function)
    return Alu([(target, whole)], [(source, whole)], lambda a: a)


@effect("mov.clock")
def move_clock(warp, ins):
    """d = a counter: of the clock's cycles; without a clock, of warp-instructions."""
    dtype = dtype_of(ins)
    target = warp.destination(ins.args[0], dtype)

    def run():
        target[warp.mask] = np.uint64(warp.cta.machine.time).astype(dtype)

    return run


@alu("cvta")
def convert_address(ins) -> Alu:
    """Between generic addresses and those of a state space; global addresses are the same in both.

    Windows of parameters and local memory start at multiples of 2**32: an address of theirs is what is left in a
    32-bit register, or the whole.
    """
    dtype = dtype_of(ins)
    args = [(ins.args[0], dtype)], [(ins.args[1], dtype)]
    window = next((w for space, w in _WINDOWS.items() if ins.has(space)), 0)
    shift = dtype.type(window)
    if not window or (ins.has("to") and window != SHARED_WINDOW):
        return Alu(*args, lambda a: a)
    if window != SHARED_WINDOW:
        return Alu(*args, lambda a: a | shift)
    return Alu(*args, (lambda a: a - shift) if ins.has("to") else (lambda a: a + shift))
