"""What the tensor cores of Hopper do to a sum of products, bit for bit as recorded on an H200.

Products are exact. They and the accumulator are aligned to the largest exponent among them, and what lies below
``fraction`` bits there is cut off; the sum of the rest is exact, and is rounded to the type of the result: f32 toward
zero (but what is too large for f32 becomes infinity), f16 to nearest. An exponent is that of the factors added, without
a carry of the product. A result of 0 is −0 only if each term is −0 before the cut.
"""

from dataclasses import dataclass

import numpy as np

_NOTHING = -(1 << 14)  # exponent of zero
NAN32, NAN16 = np.uint32(0x7FFFFFFF), np.uint16(0x7FFF)


@dataclass(frozen=True)
class Width:
    """``fraction``: bits kept below the largest exponent; ``result``: bits kept below the result's own, if fewer than f32 has."""

    fraction: int
    result: int | None = None


FULL = Width(25)  # f16, bf16, tf32
FP8 = Width(13, 13)  # wgmma on 8-bit floats


def _exponents(x: np.ndarray, smallest: int) -> np.ndarray:
    """Return exponents; subnormal numbers of the type have that of its smallest normal number."""
    exponent = np.maximum(np.frexp(x)[1] - 1, smallest).astype(np.int16)
    return np.where(x == 0, np.int16(_NOTHING), exponent)


SMALLEST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "f32": -126}


def multiply(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, kinds: tuple[str, str], width: Width = FULL
) -> np.ndarray:
    """Return A·Bᵀ + C in C's type (f32 or f16), all of K as one sum.

    Parameters
    ----------
    a, b : float64 arrays (M, K), (N, K)
    c : float32 or float16 array (M, N)
    kinds : element types of A and B
    """
    with np.errstate(all="ignore"):
        product = a[:, None, :] * b[None, :, :]
        exponent = (
            _exponents(a, SMALLEST[kinds[0]])[:, None, :] + _exponents(b, SMALLEST[kinds[1]])[None, :, :]
        )
        own = SMALLEST["f16" if c.dtype == np.float16 else "f32"]
        top = np.maximum(exponent.max(-1), _exponents(c.astype(np.float64), own)).astype(np.int32)
        top = np.maximum(top, -600)  # all zeros
        addend = c.astype(np.float64)
        cut = np.trunc(np.ldexp(addend, width.fraction - top))
        product *= np.ldexp(1.0, width.fraction - top)[..., None]
        total = np.ldexp(np.trunc(product).sum(-1) + cut, top - width.fraction)
        negative = (np.signbit(product) & (product == 0)).all(-1) & np.signbit(addend) & (addend == 0)
        result = total.astype(np.float16) if c.dtype == np.float16 else _toward_zero(total, width.result)
        result = np.where((result == 0) & ~negative, result.dtype.type(0), result)
        if not (np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all()):
            result = _with_special(result, a, b, addend)
    return result


def _toward_zero(x: np.ndarray, bits: int | None) -> np.ndarray:
    """Cut f64 down to f32, or to ``bits`` bits below the leading one; from 2**128 on it is infinite."""
    if bits is not None:
        exponent = np.frexp(x)[1] - 1 - bits
        x = np.ldexp(np.trunc(np.ldexp(x, -exponent)), exponent)
    r = x.astype(np.float32)
    larger = (np.abs(r.astype(np.float64)) > np.abs(x)) & (np.abs(x) < 2.0**128)
    return np.where(larger, np.nextafter(r, np.float32(0)), r)


def _with_special(result, a, b, c) -> np.ndarray:
    """Infinities and NaN as in any sum of products; a NaN is the canonical one."""
    exact = np.einsum("mk,nk->mn", a, b) + c
    result = np.where(np.isfinite(exact), result, exact.astype(result.dtype))
    nan = (NAN16 if result.dtype == np.float16 else NAN32).view(result.dtype)
    return np.where(np.isnan(exact), nan, result)


def multiply_f64(a: np.ndarray, b: np.ndarray, c: np.ndarray, fma) -> np.ndarray:
    """Return A·Bᵀ + C of f64: one fused multiply-add after the other, k upward."""
    d = c.reshape(-1)
    for k in range(a.shape[1]):
        x = np.ascontiguousarray(np.broadcast_to(a[:, None, k], c.shape)).reshape(-1)
        y = np.ascontiguousarray(np.broadcast_to(b[None, :, k], c.shape)).reshape(-1)
        d = fma(x, y, d)
    return d.reshape(c.shape)


def multiply_integers(a: np.ndarray, b: np.ndarray, c: np.ndarray, saturate: bool) -> np.ndarray:
    """Return A·Bᵀ + C of s32: wrapping, or clamped at the end."""
    total = a.astype(np.int64) @ b.astype(np.int64).T + c
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32)
