"""a · b + c of f64 with one rounding, in every mode, by integer arithmetic on 128-bit sums.

The CPU has no such instruction in all modes, and numpy has none at all.
"""

import numpy as np

from .rounding import F64, propagate_nan

U64, I64 = np.uint64, np.int64
_ONE, _ZERO, _TOP = U64(1), U64(0), U64(63)
_HIDDEN, _FRACTION, _INFINITY = U64(1 << 52), U64((1 << 52) - 1), U64(0x7FF << 52)
_LEADING = 124  # bit of the leading one in the 128-bit frame, with room for a product of 2 and a carry


def fma64(a, b, c, mode: str = "rn"):
    """Return a · b + c; ``mode``: rn, rz, rm, rp, or odd (inexact results get an odd last bit)."""
    (sa, ea, ma), (sb, eb, mb), (sc, ec, mc) = map(_unpacked, (a, b, c))
    product = _product(ma << U64(10), mb << U64(10))
    exponent = np.where((ma == _ZERO) | (mb == _ZERO), I64(-4000), ea + eb)
    addend = mc << U64(_LEADING - 64 - 52), _ZERO & mc
    ec = np.where(mc == _ZERO, I64(-4000), ec)
    top = np.maximum(exponent, ec)
    product, addend = _shifted_right(product, top - exponent), _shifted_right(addend, top - ec)
    negative, magnitude = _signed_sum(sa ^ sb, product, sc, addend, mode)
    result = _packed(negative, magnitude, top, mode)
    finite = np.isfinite(a) & np.isfinite(b)
    special = np.where(finite, c, a * b + c)
    result = np.where(finite & np.isfinite(c), result, special)
    return propagate_nan(result, a, c, b)


def _unpacked(x):
    """Return (sign, exponent, significand whose leading one is bit 52; 0 for zero)."""
    bits = x.view(U64)
    exponent, fraction = (bits >> U64(52) & U64(0x7FF)).astype(I64), bits & _FRACTION
    shift = np.where(fraction == _ZERO, _ZERO, leading_zeros(fraction) - U64(11))
    tiny = exponent == I64(0)
    significand = np.where(tiny, fraction << shift, fraction | _HIDDEN)
    return bits >> _TOP, np.where(tiny, I64(-1022) - shift.astype(I64), exponent - I64(1023)), significand


def leading_zeros(x):
    """Return how many zeros lead each uint64."""
    for step in (1, 2, 4, 8, 16, 32):
        x = x | x >> U64(step)
    return U64(64) - np.bitwise_count(x).astype(U64)


def _product(x, y):
    """Return the 128-bit product as (high, low)."""
    half, low = U64(32), U64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    middle2 = x0 * y1 + (middle & low)
    return x1 * y1 + (middle >> half) + (middle2 >> half), x * y


def _shifted_right(number, count):
    """Shift (high, low) right; the lowest bit remembers ones that were lost."""
    high, low = number
    n = np.minimum(count, I64(127)).astype(U64)
    far, m = n >= U64(64), n & U64(63)
    lost = np.where(far, low != _ZERO, False)
    high, low = np.where(far, _ZERO, high), np.where(far, high, low)
    lost = lost | (low & (_ONE << m) - _ONE != _ZERO)
    low = low >> m | high << _ONE << _TOP - m
    return high >> m, low | lost.astype(U64)


def _signed_sum(sp, p, sc, c, mode: str):
    """Return (sign, (high, low)) of the sum of two numbers with signs."""
    (ph, pl), (ch, cl) = p, c
    less = (ph < ch) | (ph == ch) & (pl < cl)
    big = np.where(less, ch, ph), np.where(less, cl, pl)
    small = np.where(less, ph, ch), np.where(less, pl, cl)
    low = big[1] + small[1]
    added = big[0] + small[0] + (low < big[1]).astype(U64), low
    taken = big[0] - small[0] - (big[1] < small[1]).astype(U64), big[1] - small[1]
    same = sp == sc
    high, low = np.where(same, added[0], taken[0]), np.where(same, added[1], taken[1])
    sign = np.where(less, sc, sp)
    cancelled = ~same & (high | low == _ZERO)
    return np.where(cancelled, U64(mode == "rm"), sign), (high, low)


def _packed(negative, magnitude, exponent, mode: str):
    """Round a magnitude, whose bit ``_LEADING`` stands for 2**exponent, to f64."""
    high, low = magnitude
    empty = high == _ZERO
    high, low, moved = (
        np.where(empty, low, high),
        np.where(empty, _ZERO, low),
        np.where(empty, U64(64), _ZERO),
    )
    zeros = np.minimum(leading_zeros(high), _TOP)
    significand = high << zeros | low >> _ONE >> _TOP - zeros
    significand = significand | (low << zeros != _ZERO).astype(U64)
    exponent = exponent + I64(127 - _LEADING) - (zeros + moved).astype(I64)
    significand = significand >> U64(2) | (significand & U64(3) != _ZERO).astype(U64)
    drop = np.minimum(I64(9) + np.maximum(I64(-1022) - exponent, I64(0)), I64(63)).astype(U64)
    half = _ONE << drop - _ONE
    if mode == "rn":
        rounded = significand + (half - _ONE) + (significand >> drop & _ONE) >> drop
    elif mode == "odd":
        rest = significand & (half + half - _ONE)
        rounded = significand >> drop | (rest != _ZERO).astype(U64)
    elif mode == "rz":
        rounded = significand >> drop
    else:
        away = negative == U64(mode == "rm")
        rounded = significand + np.where(away, half + half - _ONE, _ZERO) >> drop
    biased = np.minimum(np.maximum(exponent + I64(1022), I64(0)), I64(2047)).astype(U64)
    bits = np.where(rounded == _ZERO, _ZERO, rounded + (biased << U64(52)))
    bits = np.where(bits >= _INFINITY, _beyond(negative, mode), bits)
    return (bits | negative << _TOP).view(F64)


def _beyond(negative, mode: str):
    """Return infinity or the largest number, as the mode says for what is too large."""
    largest = _INFINITY - _ONE
    if mode == "rn":
        return _INFINITY
    if mode in ("rz", "odd"):
        return largest
    return np.where(negative == U64(mode == "rm"), _INFINITY, largest)
