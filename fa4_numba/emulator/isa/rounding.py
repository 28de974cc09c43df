"""Single rounding, directed rounding and flushing of subnormals for f32, exactly."""

import numpy as np

F64 = np.float64
TINY = np.float32(2.0**-126)  # smallest normal f32
_NEAR_SUBNORMAL = 2.0**-125  # below, f32 has fewer bits and other midpoints
_LOW_BITS, _MIDPOINT = np.int64((1 << 29) - 1), np.int64(1 << 28)  # f64 mantissa bits that f32 lacks


def flush(x: np.ndarray) -> np.ndarray:
    """Return f32 with subnormals replaced by zeros of their sign (``.ftz``)."""
    return x * (np.abs(x) >= TINY)


def exact_sum(a, b):
    """Return f64 arrays (s, e): s = a + b rounded, e the rest, exactly (Knuth's TwoSum)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(s, e):
    """Return the f64 sum s + e rounded to odd: rounding it once more to f32 then rounds only once in effect."""
    bits = s.view(np.int64)
    adjust = (e != 0) & (bits & 1 == 0) & np.isfinite(s)
    toward = np.where((e > 0) == (s > 0), 1, -1)
    return np.where(adjust, bits + toward, bits).view(F64)


def fma(a, b, c):
    """Return a·b + c of f32 arrays with one rounding to nearest even."""
    product, addend = a.astype(F64) * b, c.astype(F64)  # exact: 24 + 24 bits
    s = product + addend
    if (s.view(np.int64) & _LOW_BITS == _MIDPOINT).any() or (np.abs(s) < _NEAR_SUBNORMAL).any():
        s = to_odd(*exact_sum(product, addend))
    return s.astype(np.float32)


def fma_in_place(a, b, c, target):
    """Return a function that does ``target = fma(a, b, c)`` for ``.ftz``, in scratch arrays, in flush mode.

    Results below 2**-126 become zero there, so only the midpoints of normal numbers need the second look.
    """
    product, s = np.empty(len(a), F64), np.empty(len(a), F64)
    bits, low, middle = s.view(np.int64), np.empty(len(a), np.int64), np.empty(len(a), bool)
    multiply, add, mask, equal, count, copy = (
        np.multiply,
        np.add,
        np.bitwise_and,
        np.equal,
        np.count_nonzero,
        np.copyto,
    )

    def run():
        multiply(a, b, out=product, dtype=F64)
        add(product, c, out=s, dtype=F64)
        mask(bits, _LOW_BITS, out=low)
        equal(low, _MIDPOINT, out=middle)
        if count(middle):
            copy(s, to_odd(*exact_sum(product, c.astype(F64))))
        copy(target, s, casting="same_kind")

    return run


def round_down(s, e):
    """Return the f64 value s + e rounded toward −∞ to f32."""
    r = s.astype(np.float32)
    above = (r.astype(F64) > s) | ((r.astype(F64) == s) & (e < 0))
    return np.where(above, np.nextafter(r, np.float32(-np.inf)), r)


def round_up(s, e):
    """Return the f64 value s + e rounded toward +∞ to f32."""
    return -round_down(-s, -e)


def round_zero(s, e):
    """Return the f64 value s + e rounded toward zero to f32."""
    return np.where(s < 0, round_up(s, e), round_down(s, e))


DIRECTED = {"rm": round_down, "rp": round_up, "rz": round_zero}
