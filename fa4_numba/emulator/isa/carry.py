"""Arithmetic with carry: ``add.cc addc sub.cc subc mad.cc madc``.

The parser gives these instructions the carry flag as one more operand at the end: a predicate register of its own.
"""

import numpy as np

from .integer import multiply_high
from .registry import Alu, alu
from .types import dtype_of, unsigned


@alu("add.cc", "addc", "sub.cc", "subc")
def add_with_carry(ins) -> Alu:
    """d = a ± b (± the carry, for addc and subc); ``.cc`` leaves the carry or borrow out."""
    word, takes = unsigned(dtype_of(ins)), ins.parts[0].endswith("c")
    subtracts = ins.parts[0].startswith("sub")

    def function(a, b, *carry):
        d = a - b if subtracts else a + b
        out = a < b if subtracts else d < a
        if takes:
            before, one = d, carry[0].astype(word)
            d = d - one if subtracts else d + one
            out = out | (before < one if subtracts else d < before)
        return (d, out) if ins.has("cc") else d

    return _describe(ins, function, word, 2, takes)


@alu("mad.lo.cc", "mad.hi.cc", "madc")
def multiply_with_carry(ins) -> Alu:
    """d = half of a · b, + c (+ the carry, for madc); ``.cc`` leaves the carry out."""
    dtype, takes = dtype_of(ins), ins.parts[0] == "madc"
    word = unsigned(dtype)

    def function(a, b, c, *carry):
        a, b = a.view(dtype), b.view(dtype)
        half = (multiply_high(a, b) if ins.has("hi") else a * b).view(word)
        d = half + c
        out = d < half
        if takes:
            before = d
            d = d + carry[0].astype(word)
            out = out | (d < before)
        return (d, out) if ins.has("cc") else d

    return _describe(ins, function, word, 3, takes)


def _describe(ins, function, word, operands: int, takes: bool) -> Alu:
    flag = (ins.args[-1], np.bool_)
    sources = [(a, word) for a in ins.args[1 : 1 + operands]]
    return Alu([(ins.args[0], word)] + [flag] * ins.has("cc"), sources + [flag] * takes, function)
