"""Integer arithmetic, logic, shifts; and the opcodes that integers share with floats."""

import numpy as np

from ..ptx.module import Sink
from . import floating
from .bits import join
from .registry import Alu, alu, pair_items
from .rounding import flush
from .types import dtype_of, unsigned


def _alu(ins, function, dtype=None, result=None) -> Alu:
    dtype = np.dtype(dtype or dtype_of(ins))
    return Alu([(ins.args[0], result or dtype)], [(a, dtype) for a in ins.args[1:]], function)


@alu("add", "sub", "mul", "min", "max", "div", "rem", "neg", "abs")
def arithmetic(ins) -> Alu:
    """d = a op b, wrapping for integers. ``mul`` takes ``.lo .hi .wide``; division by zero gives all ones."""
    name = ins.parts[0]
    if floating.is_float(ins):
        return {
            "neg": floating.float_sign,
            "abs": floating.float_sign,
            "add": floating.float_add,
            "sub": floating.float_sub,
            "mul": floating.float_mul,
            "min": floating.float_extremum,
            "max": floating.float_extremum,
            "div": floating.float_div,
        }[name](ins)
    if name == "mul":
        return _multiply(ins)
    functions = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
    functions |= {"neg": np.negative, "abs": np.absolute, "div": _divide, "rem": _remainder}
    return _alu(ins, functions[name])


def _divide(a, b):
    """Quotient toward zero; all ones for a zero divisor."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    ones = np.array(-1, np.int64).astype(a.dtype)[()]
    return np.where(zero, ones, _quotient(a, safe))


def _quotient(a, b):
    """Quotient toward zero: numpy's is toward −∞."""
    q = a // b
    return q if a.dtype.kind == "u" else np.where((a - q * b != 0) & (q < 0), q + a.dtype.type(1), q)


def _remainder(a, b):
    """The rest, with the sign of a; a itself for a zero divisor."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, a, a - _quotient(a, safe) * safe)


def _multiply(ins) -> Alu:
    dtype = dtype_of(ins)
    if ins.has("wide"):
        double = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return _alu(ins, lambda a, b: a.astype(double) * b.astype(double), dtype, double)
    if ins.has("hi"):
        return _alu(ins, _multiply_high, dtype)
    return _alu(ins, np.multiply, dtype)


def _multiply_high(a, b):
    bits = 8 * a.dtype.itemsize
    if bits == 64:
        return _multiply_high_64(a, b)
    double = np.dtype(f"{a.dtype.kind}{bits // 4}")
    return (a.astype(double) * b.astype(double) >> double.type(bits)).astype(a.dtype)


def _multiply_high_64(a, b):
    """From four products of 32-bit halves; a negative factor counts 2**64 too much."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    middle2 = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (middle2 >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.astype(a.dtype)


@alu("mad")
def multiply_add(ins) -> Alu:
    """d = a · b + c, with ``.lo``, ``.hi`` or ``.wide``."""
    dtype = dtype_of(ins)
    result = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if ins.has("wide") else dtype
    if ins.has("hi"):
        function = lambda a, b, c: _multiply_high(a, b) + c
    else:
        function = lambda a, b, c: a.astype(result) * b.astype(result) + c
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], result)]
    return Alu([(ins.args[0], result)], sources, function)


@alu("and", "or", "xor", "not", "cnot")
def logic(ins) -> Alu:
    """Bitwise, or logical for ``.pred``."""
    name, dtype = ins.parts[0], dtype_of(ins)
    if name == "cnot":
        return _alu(ins, lambda a: (a == 0).astype(a.dtype))
    functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
    return _alu(ins, functions[name], dtype if dtype == np.bool_ else unsigned(dtype))


@alu("shl", "shr")
def shift(ins) -> Alu:
    """d = a << b or a >> b; amounts from the width on clamp: 0, or the sign for ``.s``."""
    dtype = dtype_of(ins)
    bits = 8 * dtype.itemsize
    zero, last = dtype.type(0), np.uint32(bits - 1)
    amount = lambda n: np.minimum(n, last).astype(dtype)
    if ins.parts[0] == "shl":
        function = lambda a, n: np.where(n < bits, a << amount(n), zero)
    elif dtype.kind == "i":
        function = lambda a, n: a >> amount(n)
    else:
        function = lambda a, n: np.where(n < bits, a >> amount(n), zero)
    return Alu([(ins.args[0], dtype)], [(ins.args[1], dtype), (ins.args[2], np.uint32)], function)


@alu("shf")
def funnel_shift(ins) -> Alu:
    """d = the high (``.l``) or low (``.r``) half of the 64-bit b:a shifted by c, ``.clamp`` or ``.wrap``."""
    left, clamp = ins.has("l"), ins.has("clamp")

    def function(a, b, c):
        n = (np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)).astype(np.uint64)
        both = join((a, b), np.uint64)
        return (both << n >> np.uint64(32) if left else both >> n).astype(np.uint32)

    return _alu(ins, function, np.uint32)


@alu("lop3")
def logic3(ins) -> Alu:
    """d = any function of three bits, given by an 8-bit table."""
    table = int(ins.args[4].value)

    def function(a, b, c):
        d = a ^ a
        for i in range(8):
            if table >> i & 1:
                d = d | ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
        return d

    return Alu([(ins.args[0], np.uint32)], [(a, np.uint32) for a in ins.args[1:4]], function)


@alu("bfe")
def bit_field_extract(ins) -> Alu:
    """d = ``c`` bits of a from bit b on; ``.s`` fills with the field's sign, which lies no higher than the top bit."""
    dtype = dtype_of(ins)
    bits, word = 8 * dtype.itemsize, unsigned(dtype)
    last, one, zero = word.type(bits - 1), word.type(1), word.type(0)

    def function(a, start, count):
        value = a.astype(word)
        p, n = (start & np.uint32(255)).astype(word), (count & np.uint32(255)).astype(word)
        shifted = np.where(p <= last, value >> np.minimum(p, last), zero)
        ones = np.where(n <= last, (one << np.minimum(n, last)) - one, ~zero)
        field = shifted & ones
        if dtype.kind == "i":
            top = np.minimum(p + n - one, last)
            negative = (value >> top & one != zero) & (n != zero)
            field = np.where(negative, field | ~(ones & (~zero >> np.minimum(p, last))), field)
        return field.astype(dtype)

    sources = [(ins.args[1], dtype), (ins.args[2], np.uint32), (ins.args[3], np.uint32)]
    return Alu([(ins.args[0], dtype)], sources, function)


@alu("popc", "clz", "brev")
def bit_count(ins) -> Alu:
    """Number of ones, of leading zeros; bits reversed."""
    dtype, name = unsigned(dtype_of(ins)), ins.parts[0]
    count = lambda a: np.bitwise_count(a).astype(np.uint32)
    if name == "popc":
        return _alu(ins, count, dtype, np.dtype(np.uint32))
    if name == "clz":
        return _alu(
            ins, lambda a: np.uint32(8 * dtype.itemsize) - count(_smeared(a)), dtype, np.dtype(np.uint32)
        )
    return _alu(ins, _reversed_bits, dtype, dtype)


def _smeared(a):
    """All bits below the highest one set, too."""
    step = 1
    while step < 8 * a.dtype.itemsize:
        a = a | a >> a.dtype.type(step)
        step *= 2
    return a


def _reversed_bits(a):
    """Swap neighbouring groups of 1, 2, 4, … bits."""
    bits, step = 8 * a.dtype.itemsize, 1
    while step < bits:
        low = a.dtype.type(sum(((1 << step) - 1) << i for i in range(0, bits, 2 * step)))
        n = a.dtype.type(step)
        a = (a & low) << n | a >> n & low
        step *= 2
    return a


@alu("prmt")
def permute_bytes(ins) -> Alu:
    """d = four bytes picked from b:a; a selector nibble's top bit replicates the byte's sign."""
    if len(ins.parts) != 2:
        raise ValueError("only the default mode")
    byte = np.uint64(0xFF)

    def function(a, b, c):
        both = join((a, b), np.uint64)
        d = (c ^ c).astype(np.uint64)
        for i in range(4):
            nibble = (c >> np.uint32(4 * i) & np.uint32(15)).astype(np.uint64)
            picked = both >> (nibble & np.uint64(7)) * np.uint64(8) & byte
            sign = np.where(picked & np.uint64(128) != 0, byte, np.uint64(0))
            d = d | np.where(nibble & np.uint64(8) != 0, sign, picked) << np.uint64(8 * i)
        return d.astype(np.uint32)

    return _alu(ins, function, np.uint32)


_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _comparison(ins, dtype):
    """Return the predicate function; for floats the ``u`` forms are also true for NaN, all others false."""
    name = next(p for p in ins.parts[1:] if p in _COMPARE or p in ("num", "nan") or p[:-1] in _COMPARE)
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name in _COMPARE:
        function = _COMPARE[name]
        if name == "ne" and dtype.kind == "f":
            return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
        return function
    plain = _COMPARE[name[:-1]]
    return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)


@alu("setp")
def set_predicate(ins) -> Alu:
    """p|q = a compared with b, combined with c by ``.and .or .xor`` if there is a c; q is the opposite."""
    dtype = dtype_of(ins)
    compare = _comparison(ins, dtype)
    if ins.has("ftz"):
        plain = compare
        compare = lambda a, b: plain(flush(a), flush(b))
    combine = next(
        (
            f
            for n, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor))
            if ins.has(n)
        ),
        None,
    )
    flushes = ins.has("ftz") if dtype == np.float32 else None
    p, q = pair_items(ins.args[0])
    sources = [(ins.args[1], dtype), (ins.args[2], dtype)]
    if combine is not None and len(ins.args) > 3:
        sources.append((ins.args[3], np.bool_))
        function = lambda a, b, c: (combine(compare(a, b), c), combine(~compare(a, b), c))
    else:
        function = lambda a, b: (compare(a, b), ~compare(a, b))
    if isinstance(q, Sink):
        one = compare if len(sources) == 2 else (lambda a, b, c: function(a, b, c)[0])
        return Alu([(p, np.bool_)], sources, one, flushes=flushes)
    return Alu([(p, np.bool_), (q, np.bool_)], sources, function, flushes=flushes)


@alu("selp")
def select(ins) -> Alu:
    """d = a where p, else b."""
    dtype = unsigned(dtype_of(ins)) if dtype_of(ins).kind != "f" else dtype_of(ins)
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], np.bool_)]
    return Alu([(ins.args[0], dtype)], sources, lambda a, b, p: np.where(p, a, b))


@alu("slct")
def select_by_sign(ins) -> Alu:
    """d = a where c ≥ 0, else b."""
    dtype = unsigned(np.dtype(np.uint32))
    sources = [
        (ins.args[1], dtype),
        (ins.args[2], dtype),
        (ins.args[3], np.float32 if ins.parts[-1] == "f32" else np.int32),
    ]
    return Alu([(ins.args[0], dtype)], sources, lambda a, b, c: np.where(c >= 0, a, b))
