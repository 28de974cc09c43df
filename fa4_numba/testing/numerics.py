"""The numeric rules, all of them. A failure shows the first bad element, both values and the tile it sits in."""

import numpy as np

MANTISSA_BITS = {"bfloat16": 7, "float16": 10, "float32": 23}
# Relative to the largest output. Below it an output is the small difference of large terms, and one probability that
# rounds the other way (float32 scores summed in another order) moves it by more than its own spacing.
CANCELLATION_FLOOR = 4e-5
LSE_ABSOLUTE, LSE_RELATIVE = 1e-5, 1e-6


def ulp(x: np.ndarray, dtype: str) -> np.ndarray:
    """Return the spacing of ``dtype`` at each value of ``x`` (float64)."""
    exponent = np.floor(np.log2(np.maximum(np.abs(x), 2.0**-14)))
    return 2.0 ** (exponent - MANTISSA_BITS[dtype])


def _fail(what: str, bad: np.ndarray, got, want, allowed, tile) -> None:
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    where = ""
    if tile is not None:
        where = f", tile {tuple(i // t for i, t in zip(index, tile))} of shape {tuple(tile)}"
    limit = np.broadcast_to(allowed, bad.shape)[index]
    raise AssertionError(
        f"{what}: {int(bad.sum())} of {bad.size} elements differ; first at {index}{where}: got {got[index]}, want "
        f"{want[index]}, allowed {limit:.3g}"
    )


def _compare(what, got, want, allowed, tile):
    """Compare in float64; NaN and infinities must be in the same places."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    if got.shape != want.shape:
        raise AssertionError(f"{what}: got shape {got.shape}, want {want.shape}")
    with np.errstate(invalid="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        bad = ~same & ~(np.abs(got - want) <= allowed)
    if bad.any():
        _fail(what, bad, got, want, allowed, tile)


def assert_within_ulp(got, want, ulps: int = 2, tile=None) -> None:
    """Assert that ``got`` is within ``ulps`` spacings of ``want``'s dtype, or ``CANCELLATION_FLOOR`` · max|want|."""
    values = np.asarray(want).astype(np.float64)
    finite = np.where(np.isfinite(values), values, 0.0)
    floor = CANCELLATION_FLOOR * np.abs(finite).max(initial=0.0)
    _compare(f"within {ulps} ulp", got, want, np.maximum(ulps * ulp(finite, str(want.dtype)), floor), tile)


def assert_close_to_float64(got, exact, plain, tile=None, floor: float = 1e-6) -> None:
    """Assert that the largest error against float64 is ≤ 2 × that of a plain implementation in the same precision.

    Parameters
    ----------
    got, exact : ndarray
        The result, and the float64 truth.
    plain : ndarray
        What a straightforward implementation gives in got's dtype (float32 arithmetic, P and O rounded to it).
    floor : float
        Added to the allowance, relative to the largest exact value.
    """
    finite = np.isfinite(exact) & np.isfinite(np.asarray(plain).astype(np.float64))
    error = np.abs(np.asarray(plain).astype(np.float64) - exact, where=finite, out=np.zeros(exact.shape))
    scale = np.abs(np.where(np.isfinite(exact), exact, 0)).max(initial=0)
    _compare("close to float64", got, exact, 2 * error.max(initial=0) + floor * scale, tile)


def assert_lse_close(got, exact) -> None:
    """Assert |got − exact| ≤ 1e-5 + 1e-6·|exact|, and −inf in the same places."""
    finite = np.where(np.isfinite(exact), exact, 0.0)
    _compare("LSE", got, exact, LSE_ABSOLUTE + LSE_RELATIVE * np.abs(finite), None)


def plain_attention(q, k, v, *, causal=False, scale=None):
    """Return attention the plain way in q's precision: float32 sums, P rounded to q's dtype, O rounded at the end."""
    from ..reference.problem import default_scale, from_bhsd, to_bhsd, visible_limit

    dtype, scale = q.dtype, np.float32(default_scale(q, scale))
    q, k, v = (to_bhsd(x, "bshd").astype(np.float32) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    with np.errstate(all="ignore"):
        s = q @ k.transpose(0, 1, 3, 2) * scale
        seen = np.arange(s.shape[3])[None, :] < visible_limit(s.shape[2], s.shape[3], causal)[:, None]
        s = np.where(seen, s, np.float32(-np.inf))
        m = s.max(axis=-1, keepdims=True)
        p = np.exp(s - np.where(m == -np.inf, 0, m))
        total = p.sum(axis=-1, keepdims=True)
        o = p.astype(dtype).astype(np.float32) @ v / np.where(total == 0, 1, total)
    return from_bhsd(o.astype(dtype), "bshd")
