"""Single rounding, directed rounding, flushing of subnormals and canonical NaNs, exactly.

Each function takes arrays, or traced values, which know how to do the same in one machine instruction.
"""

import numpy as np

F32, F64 = np.float32, np.float64
TINY = np.float32(2.0**-126)  # smallest normal f32
_NEAR_SUBNORMAL = 2.0**-125  # below, f32 has fewer bits and other midpoints
_LOW_BITS, _MIDPOINT = np.int64((1 << 29) - 1), np.int64(1 << 28)  # f64 mantissa bits that f32 lacks
CANONICAL_NAN = {
    np.dtype(np.float16): np.uint16(0x7FFF),
    np.dtype(np.float32): np.uint32(0x7FFFFFFF),
    np.dtype(np.float64): np.uint64(0x7FF8000000000000),
}


def flush(x):
    """Return f32 with subnormals replaced by zeros of their sign (``.ftz``)."""
    if hasattr(x, "flush"):
        return x.flush()
    bits = x.view(np.uint32)
    return np.where(bits & np.uint32(0x7F800000), bits, bits & np.uint32(0x80000000)).view(F32)


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


def round_down(s, e):
    """Return the f64 value s + e rounded toward −∞ to f32."""
    r = s.astype(F32)
    wide = r.astype(F64)
    above = (wide > s) | ((wide == s) & (e < 0))
    return np.where(above, next_below(r), r)


def next_below(x):
    """Return the f32 next to x toward −∞."""
    bits = x.view(np.int32)
    step = np.where(bits < 0, np.int32(1), np.int32(-1))
    below_zero = np.int32(-(1 << 31) + 1)  # the smallest negative subnormal
    return np.where(x == 0, below_zero, bits + step).view(F32)


def round_up(s, e):
    """Return the f64 value s + e rounded toward +∞ to f32."""
    return -round_down(-s, -e)


def round_zero(s, e):
    """Return the f64 value s + e rounded toward zero to f32."""
    return np.where(s < 0, round_up(s, e), round_down(s, e))


DIRECTED = {"rm": round_down, "rp": round_up, "rz": round_zero}
