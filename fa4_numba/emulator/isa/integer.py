"""Integer arithmetic, logic, shifts."""

import numpy as np

from ..ptx.module import Pair
from .bits import join, split
from .registry import Alu, alu, pair_items
from .types import dtype_of, unsigned


def _alu(ins, function, dtype=None, result=None) -> Alu:
    dtype = np.dtype(dtype or dtype_of(ins))
    return Alu([(ins.args[0], result or dtype)], [(a, dtype) for a in ins.args[1:]], function)


def sum_or_extremum(ins) -> Alu:
    """d = a + b, a − b (wrapping, ``.sat`` clamping), min or max (``.relu``: at least 0)."""
    name = ins.parts[0]
    function = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}[name]
    if ins.has("sat"):
        return _alu(ins, lambda a, b: clamped(function(a.astype(np.int64), b.astype(np.int64)), np.int32))
    if ins.has("relu"):
        return halfwise(ins, lambda a, b: np.maximum(function(a, b), a.dtype.type(0)))
    return halfwise(ins, function)


def halfwise(ins, function) -> Alu:
    """Describe ``d = function(a, b)``, for ``.u16x2`` and ``.s16x2`` on both halves."""
    if not ins.parts[-1].endswith("16x2"):
        return _alu(ins, function)
    half = np.dtype(f"{'i' if ins.parts[-1][0] == 's' else 'u'}2")

    def both(*sources):
        parts = [[p.view(half) for p in split(s, np.uint16)] for s in sources]
        return join([function(*(p[i] for p in parts)).view(np.uint16) for i in range(2)], np.uint32)

    return _alu(ins, both, np.uint32)


def clamped(wide, target):
    """Return values of a wider type, limited to the range of the narrower ``target``."""
    info, kind = np.iinfo(target), wide.dtype.type
    return np.minimum(np.maximum(wide, kind(info.min)), kind(info.max)).astype(target)


def quotient(ins) -> Alu:
    """d = a / b toward zero, or the rest; division by zero gives all ones."""
    return _alu(ins, _divide if ins.parts[0] == "div" else _remainder)


def sign(ins) -> Alu:
    """d = −a or |a|; the most negative value is its own."""
    return _alu(ins, np.negative if ins.parts[0] == "neg" else np.absolute)


def _divide(a, b):
    """Quotient toward zero; all ones for a zero divisor."""
    ones = np.array(-1, np.int64).astype(a.dtype)[()]
    return np.where(b == 0, ones, _quotient(a, b))


def _quotient(a, b):
    """Quotient toward zero (numpy's is toward −∞), for other divisors than 0; −1 is apart, for CPUs trap at −2**31 / −1."""
    one = a.dtype.type(1)
    if a.dtype.kind == "u":
        return a // np.where(b == 0, one, b)
    minus = b == -one
    q = a // np.where((b == 0) | minus, one, b)
    toward_zero = np.where((a - q * b != 0) & (q < 0), q + one, q)
    return np.where(minus, -a, toward_zero)


def _remainder(a, b):
    """The rest, with the sign of a; all ones for a zero divisor."""
    ones = np.array(-1, np.int64).astype(a.dtype)[()]
    return np.where(b == 0, ones, a - _quotient(a, b) * b)


def multiply(ins) -> Alu:
    """d = a · b: the low half, the high half, or all of it (``.lo .hi .wide``)."""
    dtype = dtype_of(ins)
    if ins.has("wide"):
        double = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return _alu(ins, lambda a, b: a.astype(double) * b.astype(double), dtype, double)
    if ins.has("hi"):
        return _alu(ins, multiply_high, dtype)
    return _alu(ins, np.multiply, dtype)


def multiply_high(a, b):
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
    """d = a · b + c, with ``.lo``, ``.hi`` or ``.wide``; ``.hi.sat.s32`` clamps the sum."""
    dtype = dtype_of(ins)
    result = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if ins.has("wide") else dtype
    if ins.has("sat"):
        function = lambda a, b, c: clamped(
            multiply_high(a, b).astype(np.int64) + c.astype(np.int64), np.int32
        )
    elif ins.has("hi"):
        function = lambda a, b, c: multiply_high(a, b) + c
    else:
        function = lambda a, b, c: a.astype(result) * b.astype(result) + c
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], result)]
    return Alu([(ins.args[0], result)], sources, function)


@alu("mul24", "mad24")
def multiply_24(ins) -> Alu:
    """d = a · b (+ c) of the low 24 bits: bits 0–31 of the product (``.lo``) or 16–47 (``.hi``)."""
    dtype, wide = dtype_of(ins), np.int64
    up = dtype.type(8)
    low = lambda a: (a << up >> up).astype(wide)
    shift = wide(16 if ins.has("hi") else 0)
    product = lambda a, b: (low(a) * low(b) >> shift).astype(dtype)
    if ins.parts[0] == "mul24":
        return _alu(ins, product)
    if ins.has("sat"):
        return _alu(ins, lambda a, b, c: clamped(product(a, b).astype(wide) + c.astype(wide), np.int32))
    return _alu(ins, lambda a, b, c: product(a, b) + c)


@alu("sad")
def absolute_difference(ins) -> Alu:
    """d = c + |a − b|."""
    return _alu(ins, lambda a, b, c: c + np.where(a < b, b - a, a - b))


@alu("dp4a", "dp2a")
def dot_product(ins) -> Alu:
    """d = c + a₀·b₀ + a₁·b₁ + …: bytes with bytes (dp4a), or a's 16-bit halves with two bytes of b (dp2a)."""
    kinds = [k for k in ins.parts if k in ("u32", "s32")]
    four, high = ins.parts[0] == "dp4a", ins.has("hi")
    word = np.int32

    def elements(value, kind, part):
        signed = np.dtype(f"{'i' if kind == 's32' else 'u'}{part}")
        return [p.view(signed).astype(word) for p in split(value, np.dtype(f"u{part}"))]

    def function(a, b, c):
        left, right = elements(a, kinds[0], 1 if four else 2), elements(b, kinds[1], 1)
        if not four:
            right = right[2:] if high else right[:2]
        total = c
        for x, y in zip(left, right):
            total = total + x * y
        return total

    sources = [(ins.args[1], np.uint32), (ins.args[2], np.uint32), (ins.args[3], word)]
    return Alu([(ins.args[0], word)], sources, function)


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
    """d = any function of three bits, given by an 8-bit table; d|p with ``.or .and``: p = (d ≠ 0) op q."""
    table = int(ins.args[4].value)

    def function(a, b, c):
        d = a ^ a
        for i in range(8):
            if table >> i & 1:
                d = d | ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
        return d

    sources = [(a, np.uint32) for a in ins.args[1:4]]
    if isinstance(ins.args[0], Pair):
        combine = np.bitwise_or if ins.has("or") else np.bitwise_and

        def with_predicate(a, b, c, q):
            d = function(a, b, c)
            return d, combine(d != np.uint32(0), q)

        d, p = pair_items(ins.args[0])
        return Alu([(d, np.uint32), (p, np.bool_)], [*sources, (ins.args[5], np.bool_)], with_predicate)
    return Alu([(ins.args[0], np.uint32)], sources, function)


def _stepping(first: int, step: int):
    """Selectors whose nibbles are c + first, c + first + step, … modulo 8."""

    def selector(c):
        out = c ^ c
        for i in range(4):
            out = out | (c + np.uint32(first + step * i + 8) & np.uint32(7)) << np.uint32(4 * i)
        return out

    return selector


def _edges(left: bool):
    """Byte i where that lies beyond byte c (to the left: above), byte c elsewhere."""

    def selector(c):
        out = c ^ c
        for i in range(4):
            n = np.uint32(i)
            out = out | (np.maximum(c, n) if left else np.minimum(c, n)) << np.uint32(4 * i)
        return out

    return selector


_SELECTORS = {
    "f4e": _stepping(0, 1),
    "b4e": _stepping(0, -1),
    "rc8": lambda c: c * np.uint32(0x1111),
    "ecl": _edges(True),
    "ecr": _edges(False),
    "rc16": lambda c: (c & np.uint32(1)) * np.uint32(0x2222) + np.uint32(0x1010),
}


@alu("prmt")
def permute_bytes(ins) -> Alu:
    """d = four bytes picked from b:a; a selector nibble's top bit replicates the byte's sign.

    Modes make the selector from the low two bits of c: bytes forward or backward from c, one byte or half repeated,
    edge bytes clamped.
    """
    selector = _SELECTORS[ins.parts[2]] if len(ins.parts) > 2 else None
    byte = np.uint64(0xFF)

    def function(a, b, c):
        both = join((a, b), np.uint64)
        d = (c ^ c).astype(np.uint64)
        c = c if selector is None else selector(c & np.uint32(3))
        for i in range(4):
            nibble = (c >> np.uint32(4 * i) & np.uint32(15)).astype(np.uint64)
            picked = both >> (nibble & np.uint64(7)) * np.uint64(8) & byte
            sign = np.where(picked & np.uint64(128) != 0, byte, np.uint64(0))
            d = d | np.where(nibble & np.uint64(8) != 0, sign, picked) << np.uint64(8 * i)
        return d.astype(np.uint32)

    return _alu(ins, function, np.uint32)
