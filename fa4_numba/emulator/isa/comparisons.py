"""Comparing and selecting: setp, set, selp, slct, testp, copysign."""

import numpy as np

from ..ptx.module import Sink
from .bits import join, split
from .formats import FORMATS, widen
from .halves import flushed
from .registry import Alu, alu, pair_items
from .rounding import flush
from .types import DTYPE, dtype_of, unsigned

_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _comparison(ins):
    """Return (predicate function, dtype of the operands); for floats the ``u`` forms are true for NaN, others false."""
    kind = ins.parts[-1].removesuffix("x2")
    half = kind in ("f16", "bf16")
    dtype = np.dtype(np.uint16) if half else dtype_of(ins)
    name = next(p for p in ins.parts[1:] if p in _COMPARE or p in ("num", "nan") or p[:-1] in _COMPARE)
    plain = _ordered(name) if half or dtype.kind == "f" else _COMPARE[name]

    def compare(a, b):
        if half:
            a, b = (_half_value(x, kind, ins) for x in (a, b))
        elif ins.has("ftz"):
            a, b = flush(a), flush(b)
        return plain(a, b)

    return compare, dtype


def _half_value(pattern, kind, ins):
    pattern = pattern.astype(np.uint32)
    return widen(flushed(pattern, FORMATS[kind]) if ins.has("ftz") else pattern, FORMATS[kind])


def _ordered(name: str):
    nan = lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "num":
        return lambda a, b: ~nan(a, b)
    if name == "nan":
        return nan
    if name == "ne":
        return lambda a, b: (a != b) & ~nan(a, b)
    if name in _COMPARE:
        return _COMPARE[name]
    return lambda a, b: _COMPARE[name[:-1]](a, b) | nan(a, b)


def _flushes(ins):
    return {"f32": ins.has("ftz"), "f64": False, "bf16": False, "bf16x2": False}.get(ins.parts[-1])


_COMBINE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _combined(ins, compare, first: int):
    """Return (function, more sources): the comparison, combined with a predicate if there is one."""
    combine = next((f for name, f in _COMBINE.items() if ins.has(name)), None)
    if combine is None or len(ins.args) <= first:
        return (lambda a, b: (compare(a, b), ~compare(a, b))), []
    function = lambda a, b, c: (combine(compare(a, b), c), combine(~compare(a, b), c))
    return function, [(ins.args[first], np.bool_)]


@alu("setp")
def set_predicate(ins) -> Alu:
    """p|q = a compared with b, combined with c by ``.and .or .xor`` if there is a c; q is the opposite.

    ``.f16x2``: p from the low halves, q from the high ones.
    """
    compare, dtype = _comparison(ins)
    p, q = pair_items(ins.args[0])
    both = [(p, np.bool_), (q, np.bool_)]
    if ins.parts[-1].endswith("16x2"):
        packed = lambda a, b: tuple(compare(x, y) for x, y in zip(split(a, np.uint16), split(b, np.uint16)))
        return Alu(both, [(a, np.uint32) for a in ins.args[1:3]], packed, flushes=_flushes(ins))
    function, more = _combined(ins, compare, 3)
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), *more]
    if isinstance(q, Sink):
        return Alu(both[:1], sources, lambda *s: function(*s)[0], flushes=_flushes(ins))
    return Alu(both, sources, function, flushes=_flushes(ins))


_TRUE = {"u32": np.uint32(0xFFFFFFFF), "s32": np.uint32(0xFFFFFFFF), "f32": np.uint32(0x3F800000)}
_TRUE |= {
    "f16": np.uint16(0x3C00),
    "bf16": np.uint16(0x3F80),
    "u16": np.uint16(0xFFFF),
    "s16": np.uint16(0xFFFF),
}


@alu("set")
def set_value(ins) -> Alu:
    """d = all ones (integers) or 1.0 (floats) where the comparison holds, else 0."""
    compare, dtype = _comparison(ins)
    result = ins.parts[-2]
    if result.endswith("16x2"):
        true = _TRUE[result[:-2]]

        def packed(a, b):
            held = [compare(x, y) for x, y in zip(split(a, np.uint16), split(b, np.uint16))]
            return join([np.where(h, true, np.uint16(0)) for h in held], np.uint32)

        sources = [(a, np.uint32) for a in ins.args[1:3]]
        return Alu([(ins.args[0], np.uint32)], sources, packed, flushes=_flushes(ins))
    true = _TRUE[result]
    function, more = _combined(ins, compare, 3)
    value = lambda *s: np.where(function(*s)[0], true, true.dtype.type(0))
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), *more]
    return Alu([(ins.args[0], true.dtype)], sources, value, flushes=_flushes(ins))


@alu("selp")
def select(ins) -> Alu:
    """d = a where p, else b."""
    dtype = unsigned(dtype_of(ins)) if dtype_of(ins).kind != "f" else dtype_of(ins)
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], np.bool_)]
    return Alu([(ins.args[0], dtype)], sources, lambda a, b, p: np.where(p, a, b))


@alu("slct")
def select_by_sign(ins) -> Alu:
    """d = a where c ≥ 0, else b; c is s32 or f32 (with ``.ftz`` a subnormal c counts as 0)."""
    dtype = unsigned(np.dtype(DTYPE[ins.parts[-2]]))
    by = np.dtype(DTYPE[ins.parts[-1]])
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], by)]
    ftz = ins.has("ftz")
    function = lambda a, b, c: np.where((flush(c) if ftz else c) >= by.type(0), a, b)
    return Alu([(ins.args[0], dtype)], sources, function, flushes=ftz if by == np.float32 else None)


@alu("testp")
def test_property(ins) -> Alu:
    """p = a is finite, infinite, a number, no number, normal (or zero), or subnormal."""
    dtype, test = dtype_of(ins), ins.parts[1]
    word = unsigned(dtype)
    mantissa = {4: 23, 8: 52}[dtype.itemsize]
    infinity = word.type(((1 << 8 * dtype.itemsize - 1 - mantissa) - 1) << mantissa)
    smallest, zero = word.type(1 << mantissa), word.type(0)
    sign = word.type(1 << 8 * dtype.itemsize - 1)
    tests = {
        "finite": lambda m: m < infinity,
        "infinite": lambda m: m == infinity,
        "number": lambda m: m <= infinity,
        "notanumber": lambda m: m > infinity,
        "normal": lambda m: (m == zero) | (m >= smallest) & (m < infinity),
        "subnormal": lambda m: (m != zero) & (m < smallest),
    }
    return Alu([(ins.args[0], np.bool_)], [(ins.args[1], word)], lambda a: tests[test](a & ~sign))


@alu("copysign")
def copy_sign(ins) -> Alu:
    """d = b with the sign of a."""
    word = unsigned(dtype_of(ins))
    sign = word.type(1 << 8 * word.itemsize - 1)
    sources = [(a, word) for a in ins.args[1:3]]
    return Alu([(ins.args[0], word)], sources, lambda a, b: a & sign | b & ~sign)
