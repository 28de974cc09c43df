"""f16 and bf16 arithmetic, one or two in a register: exact in f64, rounded once."""

import numpy as np

from .bits import join, split
from .formats import FORMATS, narrow, widen
from .registry import Alu
from .rounding import F64, exact_sum, to_odd

OUT_OF_BOUNDS = np.uint32(0x7FF7)  # the NaN, with either sign, for which ``fma.oob`` gives 0


def half_type(ins) -> tuple[str, int]:
    """Return (f16 or bf16, how many in a register) of the instruction's type."""
    kind = ins.parts[-1]
    return (kind[:-2], 2) if kind.endswith("x2") else (kind, 1)


def exact(s):
    """Return (s, rest 0): a value that needs no second part."""
    return s, F64(0)


def lanewise(ins, function, operands: int) -> Alu:
    """Describe ``d = function(a, b, …)`` on the patterns (uint32) of each half."""
    _, count = half_type(ins)
    whole = np.dtype(np.uint32 if count == 2 else np.uint16)

    def each(*sources):
        if count == 1:
            return function(*(s.astype(np.uint32) for s in sources)).astype(np.uint16)
        parts = [split(s, np.uint16) for s in sources]
        results = [function(*(p[i].astype(np.uint32) for p in parts)).astype(np.uint16) for i in range(2)]
        return join(results, np.uint32)

    return Alu([(ins.args[0], whole)], [(a, whole) for a in ins.args[1 : 1 + operands]], each, flushes=False)


def half_alu(ins, function, operands: int) -> Alu:
    """Describe ``d = function(a, b, …)``; the function takes f64 and returns an exact sum of two f64."""
    kind, _ = half_type(ins)
    fmt, ftz = FORMATS[kind], ins.has("ftz") and kind == "f16"

    def one(*patterns):
        if ftz:
            patterns = [flushed(p, fmt) for p in patterns]
        total = to_odd(*function(*(widen(p, fmt).astype(F64) for p in patterns)))
        if ftz:  # too small once it is rounded with as many bits as a normal number has
            limit = F64(2.0 ** (1 - fmt.bias) - 2.0 ** (-1 - fmt.bias - fmt.mantissa))
            total = np.where(np.absolute(total) < limit, total * F64(0), total)
        result = after(ins, narrow(total, fmt), fmt)
        for p in patterns[:2] if ins.has("oob") else ():
            result = np.where(p & np.uint32(0x7FFF) == OUT_OF_BOUNDS, np.uint32(0), result)
        return result

    return lanewise(ins, one, operands)


def flushed(pattern, fmt):
    """Subnormals become zeros of their sign."""
    word = np.uint32
    tiny = pattern & word(fmt.sign - 1) < word(1 << fmt.mantissa)
    return np.where(tiny, pattern & word(fmt.sign), pattern)


def after(ins, pattern, fmt):
    """Apply ``.sat`` (to [0, 1], NaN becomes 0) or ``.relu`` (negative values become 0, NaN stays)."""
    word = np.uint32
    one, infinity = word(fmt.bias << fmt.mantissa), word(fmt.infinity)
    negative = pattern & word(fmt.sign) != word(0)
    nan = pattern & word(fmt.sign - 1) > infinity
    if ins.has("sat"):
        pattern = np.where(negative | nan, word(0), np.minimum(pattern, one))
    if ins.has("relu"):
        pattern = np.where(negative & ~nan, word(0), pattern)
    return pattern


def half_add(ins) -> Alu:
    """d = a + b."""
    return half_alu(ins, exact_sum, 2)


def half_sub(ins) -> Alu:
    """d = a − b."""
    return half_alu(ins, lambda a, b: exact_sum(a, -b), 2)


def half_mul(ins) -> Alu:
    """d = a · b: exact in f64."""
    return half_alu(ins, lambda a, b: exact(a * b), 2)


def half_fma(ins) -> Alu:
    """d = a · b + c.

    ``.oob`` gives 0 where a or b is the NaN that marks elements out of bounds.
    """
    return half_alu(ins, lambda a, b, c: exact_sum(a * b, c), 3)


def half_pick(ins, function, operands: int) -> Alu:
    """Describe min, max, abs, neg: ``function`` of f32 gives one of its operands, maybe with another sign."""
    kind, _ = half_type(ins)
    fmt, ftz = FORMATS[kind], ins.has("ftz")

    def one(*patterns):
        if ftz:
            patterns = [flushed(p, fmt) for p in patterns]
        return narrow(function(*(widen(p, fmt) for p in patterns)), fmt)

    return lanewise(ins, one, operands)


def half_sign(ins) -> Alu:
    """d = −a or |a|."""
    return half_pick(ins, np.negative if ins.parts[0] == "neg" else np.absolute, 1)
