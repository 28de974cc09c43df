"""Single rounding, directed rounding, flushing of subnormals and canonical NaNs, exactly.

Each function takes arrays, or traced values, which know how to do the same in one machine instruction.
"""

import numpy as np

F32, F64 = np.float32, np.float64
TINY = np.float32(2.0**-126)  # smallest normal f32
_NEAR_SUBNORMAL = 2.0**-125  # below, f32 has fewer bits and other midpoints
_ROUNDS_UP = 2.0**-126 - 2.0**-151  # from here on to 2**-126 in 24 bits
_ROUNDS_OUTWARD = 2.0**-126 - 2.0**-150  # as that, for the directed roundings: above here
_LOW_BITS, _MIDPOINT = np.int64((1 << 29) - 1), np.int64(1 << 28)  # f64 mantissa bits that f32 lacks
CANONICAL_NAN = {
    np.dtype(np.float16): np.uint16(0x7FFF),
    np.dtype(np.float32): np.uint32(0x7FFFFFFF),
    np.dtype(np.float64): np.uint64(0x7FF8000000000000),
}


def flush(x):
    """Return f32 (or f64) with subnormals replaced by zeros of their sign (``.ftz``).

    Compiled code may leave that to the CPU's mode: good enough for what arithmetic reads and gives.
    """
    return x.flush() if hasattr(x, "flush") and x.dtype == F32 else flush_bits(x)


def flush_bits(x):
    """As ``flush``, for values that only bits were picked for: no CPU flushes those."""
    word = np.dtype(f"u{x.dtype.itemsize}").type
    exponent, sign = (
        (word(0x7F800000), word(1 << 31)) if x.dtype == F32 else (word(0x7FF << 52), word(1 << 63))
    )
    bits = x.view(word)
    return np.where(bits & exponent != word(0), bits, bits & sign).view(x.dtype)


def flush_product(r, exact):
    """Flush r, the f32 that a·b (+ c) was rounded to; ``exact()`` returns the f64 sum and its rest.

    GPUs judge the result rounded with as many bits as a normal number has: a little below the smallest normal number
    it is flushed, though with a subnormal's bits it would round up to that number. The CPU's own mode does the same.
    """
    if hasattr(r, "flush") and r.trace.flushing:
        return r
    up = np.absolute(r) == TINY
    if isinstance(up, np.ndarray) and not up.any():
        return flush(r)
    s, e = exact()
    size = np.absolute(s)
    below = (size < _ROUNDS_UP) | (size == _ROUNDS_UP) & (e * s < 0)
    return flush(np.where(up & below, r * F32(0.5), r))


def canonical(x):
    """Return x with every NaN replaced by the one that GPUs produce."""
    if hasattr(x, "canonical"):
        return x.canonical()
    nan = np.isnan(x)
    return np.where(nan, CANONICAL_NAN[x.dtype].view(x.dtype), x) if nan.any() else x


def fma(a, b, c):
    """Return a·b + c of f32 with one rounding to nearest even."""
    if hasattr(a, "fma"):
        return a.fma(b, c)
    product, addend = a.astype(F64) * b, c.astype(F64)  # exact: 24 + 24 bits
    s = product + addend
    if (s.view(np.int64) & _LOW_BITS == _MIDPOINT).any() or (np.abs(s) < _NEAR_SUBNORMAL).any():
        s = to_odd(*exact_sum(product, addend))
    return s.astype(F32)


def exact_sum(a, b):
    """Return f64 (s, e): s = a + b rounded, e the rest, exactly (Knuth's TwoSum)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(s, e):
    """Return the f64 sum s + e rounded to odd: rounding it once more to f32 then rounds only once in effect."""
    bits = s.view(np.int64)
    adjust = (e != 0) & (bits & 1 == 0) & np.isfinite(s)
    toward = np.where((e > 0) == (s > 0), np.int64(1), np.int64(-1))
    return np.where(adjust, bits + toward, bits).view(F64)


def directed(r, e, mode: str):
    """Return what ``mode`` makes of r + e: r is the sum to nearest, e the rest, of which only the sign counts."""
    if mode == "rm":
        return np.where(e < 0, _step(r, -1), r)
    if mode == "rp":
        return np.where(e > 0, _step(r, 1), r)
    outward = (r > 0) & (e < 0) | (r < 0) & (e > 0)
    return np.where(outward, (r.view(_signed(r)) - _signed(r).type(1)).view(r.dtype), r)


def _signed(x):
    return np.dtype(f"i{x.dtype.itemsize}")


def _step(x, way: int):
    """Return the number next to x, upward or downward."""
    word = _signed(x)
    bits = x.view(word)
    grows = np.where(bits < 0, word.type(-way), word.type(way))
    smallest = word.type(1) if way > 0 else word.type(np.iinfo(word).min + 1)
    return np.where(x == 0, smallest, bits + grows).view(x.dtype)


def to_f32(s, e, mode: str | None, ftz: bool = False):
    """Return the f64 sum s + e rounded once to f32; None: to nearest even.

    ``ftz`` makes a subnormal, for the caller to flush, of what in 24 bits would stay below the smallest normal number
    (as ``flush_product`` does) though a directed rounding of a subnormal's bits leads to that number.
    """
    if mode is None:
        return to_odd(s, e).astype(F32)
    r = s.astype(F32)
    rest = s - r.astype(F64)
    r = directed(r, np.where(rest == 0, e, rest), mode)
    if not ftz:
        return r
    size = np.absolute(s)
    below = (size < _ROUNDS_OUTWARD) | (size == _ROUNDS_OUTWARD) & (e * s <= 0)
    return np.where(below, r * F32(0.5), r)


def exact_sum_toward(a, b, mode: str | None):
    """As ``exact_sum``; a sum that cancels is −0 where rounding goes down."""
    if mode != "rm":
        return exact_sum(a, b)
    s, e = exact_sum(-a, -b)
    return -s, -e


def propagate_nan(result, *sources, quiet: bool = True):
    """f64 keeps a NaN operand's bits, made quiet; a new NaN is negative. Which of several wins is not documented."""
    bit, word = np.uint64(1 << 51 if quiet else 0), np.uint64
    bits = np.where(np.isnan(result), word(0xFFF8000000000000), result.view(word))
    for source in sources:
        bits = np.where(np.isnan(result) & np.isnan(source), source.view(word) | bit, bits)
    return bits.view(F64)
