"""Floating-point formats of 16 bits and less (and tf32), by integer arithmetic: widening exactly, rounding once.

Patterns are the low bits of uint32. Two directions, for every format: :func:`widen` and :func:`narrow`.
"""

from dataclasses import dataclass

import numpy as np

from .rounding import F32


@dataclass(frozen=True)
class Format:
    """A sign, ``exponent`` bits, ``mantissa`` bits. ``largest`` is the largest finite pattern, ``nan`` the NaN made here.

    Patterns above ``largest`` are infinity and NaN; formats with neither end with it.
    """

    exponent: int
    mantissa: int
    largest: int
    nan: int
    infinity: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1


F16 = Format(5, 10, 0x7BFF, 0x7FFF, 0x7C00)
BF16 = Format(8, 7, 0x7F7F, 0x7FFF, 0x7F80)
TF32 = Format(8, 10, 0x3FBFF, 0x3FFFF, 0x3FC00)
E4M3 = Format(4, 3, 0x7E, 0x7F)
E5M2 = Format(5, 2, 0x7B, 0x7F, 0x7C)
E2M3 = Format(2, 3, 0x1F, 0x1F)
E3M2 = Format(3, 2, 0x1F, 0x1F)
E2M1 = Format(2, 1, 0x7, 0x7)
FORMATS = {
    "f16": F16,
    "bf16": BF16,
    "tf32": TF32,
    "e4m3": E4M3,
    "e5m2": E5M2,
    "e2m3": E2M3,
    "e3m2": E3M2,
    "e2m1": E2M1,
}


def widen(pattern, fmt: Format):
    """Return the f32 values of uint32 patterns, exactly."""
    if fmt is F16:
        return pattern.astype(np.uint16).view(np.float16).astype(F32)
    word, up = np.uint32, np.uint32(23 - fmt.mantissa)
    magnitude = pattern & word(fmt.sign - 1)
    sign = (pattern & word(fmt.sign)) << word(32 - fmt.bits)
    if fmt.exponent == 8:
        return (magnitude << up | sign).view(F32)
    normal = (magnitude << up) + word((127 - fmt.bias) << 23)
    tiny = magnitude.astype(F32) * F32(2.0 ** (1 - fmt.bias - fmt.mantissa))
    bits = np.where(magnitude < word(1 << fmt.mantissa), tiny.view(word), normal)
    if fmt.nan != fmt.largest:
        special = np.where(magnitude == word(fmt.infinity or 0), word(0x7F800000), word(0x7FFFFFFF))
        bits = np.where(magnitude > word(fmt.largest), special, bits)
    return (bits | sign).view(F32)


def narrow(x, fmt: Format, mode: str = "rn", saturate: bool = False):
    """Return the uint32 patterns of f32 or f64 values, rounded by ``rn rna rz rm rp``.

    ``saturate``: too large values become the largest finite one, as they do in formats without infinity.
    """
    if fmt is F16 and mode == "rn" and x.dtype == F32 and not saturate:
        half = x.astype(np.float16).view(np.uint16).astype(np.uint32)
        return np.where(np.isnan(x), np.uint32(fmt.nan), half)
    word = np.dtype(f"u{x.dtype.itemsize}")
    bits = x.view(word)
    if fmt is BF16 and mode == "rn" and x.dtype == F32 and not saturate:  # the upper half, sign and all
        odd = bits >> np.uint32(16) & np.uint32(1)
        return np.where(np.isnan(x), np.uint32(fmt.nan), bits + (odd + np.uint32(0x7FFF)) >> np.uint32(16))
    top = word.type(8 * word.itemsize - 1)
    negative = bits >> top
    pattern = _rounded(bits & word.type((1 << int(top)) - 1), negative, fmt, mode)
    pattern = _overflow(pattern, np.absolute(x) == np.inf, negative.astype(np.uint32), fmt, mode, saturate)
    pattern = pattern | negative.astype(np.uint32) << np.uint32(fmt.bits - 1)
    return np.where(np.isnan(x), np.uint32(fmt.nan), pattern)


def _rounded(magnitude, negative, fmt: Format, mode: str):
    """Round the encoding as an integer: a carry goes from the mantissa into the exponent, as it should."""
    word = magnitude.dtype.type
    own = {4: 23, 8: 52}[magnitude.dtype.itemsize]
    bias = {23: 127, 52: 1023}[own]
    one, drop = word(1), word(own - fmt.mantissa)
    if bias != fmt.bias:
        lowest = word(bias - fmt.bias + 1)  # exponent of the format's smallest normal number
        exponent = magnitude >> word(own)
        hidden = np.where(exponent != word(0), word(1 << own), word(0))
        exponent = np.maximum(exponent, one)
        below = np.where(exponent < lowest, lowest - exponent, word(0))
        drop = np.minimum(drop + below, word(own + 2))
        above = np.where(exponent > lowest, exponent - lowest, word(0))
        above = np.minimum(above, word(1 << fmt.exponent))
        magnitude = magnitude & word((1 << own) - 1) | hidden
    half = one << drop - one
    if mode == "rn":
        magnitude = magnitude + (half - one) + (magnitude >> drop & one)
    elif mode == "rna":
        magnitude = magnitude + half
    elif mode != "rz":
        away = negative == word(mode == "rm")
        magnitude = magnitude + np.where(away, half + half - one, word(0))
    pattern = magnitude >> drop
    if bias != fmt.bias:
        pattern = pattern + (above << word(fmt.mantissa))
    return pattern.astype(np.uint32)


def _overflow(pattern, infinite, negative, fmt: Format, mode: str, saturate: bool):
    word = np.uint32
    largest, infinity = word(fmt.largest), word(fmt.largest if fmt.infinity is None else fmt.infinity)
    beyond = infinity
    if saturate or mode == "rz":
        beyond = largest
    elif mode in ("rm", "rp"):
        beyond = np.where(negative == word(mode == "rm"), infinity, largest)
    pattern = np.where(pattern > largest, beyond, pattern)
    return pattern if saturate else np.where(infinite, infinity, pattern)
