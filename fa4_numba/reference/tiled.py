"""Attention with the sm_100a kernel's own tiles, order and roundings, in numpy."""

import numpy as np

from .exact import nonfinite_part
from .problem import default_scale, from_bhsd, to_bhsd, visible_limit

# log2 units: O is rescaled only when a row's max grew by more than a factor of 2**8
RESCALE_THRESHOLD = np.float32(8.0)
LOWEST = np.float32(-127.0)
MMA_K = 16
# |max·scale| beyond which x·scale − max·scale is computed as (x − max)·scale
EXACT_SUBTRACTION_ABOVE = np.float32(1024.0)
F32, F64 = np.float32, np.float64


def tiled(q, k, v, cfg, *, causal=False, scale=None, layout="bshd", polynomial=(), emulated_columns=()):
    """Return attention computed as the kernel for ``cfg`` computes it.

    Parameters
    ----------
    q, k, v, causal, scale, layout
        As :func:`fa4_numba.reference.exact`; float16 or bfloat16.
    cfg : FA4Config
        Gives the rows of a work tile and the keys per tile.
    polynomial, emulated_columns : sequence
        Coefficients of exp2 on [0, 1), constant first, and the columns of a KV tile that use them.

    Returns
    -------
    o : ndarray of q's dtype, in ``layout``
    lse : float32 ndarray, ``(B, Hq, Sq)``

    Notes
    -----
    Rows are independent except for which KV tiles their work tile walks, and a tile in which a row sees nothing
    changes nothing. So whole heads are computed at once, KV tile by KV tile from the right.
    """
    scale, dtype = default_scale(q, scale), q.dtype
    if scale <= 0:  # the launcher does the same: the kernel's scale is positive
        q, scale = (-q if scale < 0 else q * dtype.type(0)), abs(scale) or 1.0
    scale_log2 = F32(scale * np.log2(np.e))
    q, k, v = (to_bhsd(np.asarray(x), layout).astype(F32) for x in (q, k, v))
    batch, heads, seq_q, _ = q.shape
    kv_heads, seq_k = k.shape[1], k.shape[2]
    limit = visible_limit(seq_q, seq_k, causal)
    exp2 = _Exp2(cfg.BN, polynomial, emulated_columns)
    o = np.zeros((batch, heads, seq_q, v.shape[3]), dtype)
    lse = np.full((batch, heads, seq_q), -np.inf, F32)
    with np.errstate(all="ignore"):
        for b in range(batch if seq_k and seq_q else 0):
            for h in range(heads):
                kv = h // (heads // kv_heads)
                args = q[b, h], k[b, kv], v[b, kv], limit, scale_log2, cfg.BN, exp2, dtype
                o[b, h], lse[b, h] = _one_head(*args)
    return from_bhsd(o, layout), lse


def p_split(keys: int) -> int:
    """Return after how many keys of a tile P is published for the first time: 3/4, in whole stores of 32."""
    return keys * 3 // 4 // 32 * 32


class _Exp2:
    """exp2 of a score tile: some columns by polynomial, as on the FMA units."""

    def __init__(self, columns, polynomial, emulated):
        self.mask = np.zeros(columns, bool)
        self.mask[list(emulated)] = True
        self.polynomial = [F32(c) for c in polynomial]

    def __call__(self, y):
        p = _exp2(y)
        if self.mask.any():
            p[:, self.mask] = self._by_polynomial(y[:, self.mask])
        return np.where(np.isnan(y), F32(np.nan), p)

    def _by_polynomial(self, y):
        y = np.fmax(y, LOWEST)
        whole = np.floor(y)
        fraction = (y - whole).astype(F64)
        p = np.full(y.shape, self.polynomial[-1], F32)
        for c in self.polynomial[-2::-1]:
            p = (p * fraction + c).astype(F32)
        bits = p.view(np.int32) + (np.nan_to_num(whole).astype(np.int32) << 23)
        return bits.astype(np.int32).view(F32)


def _exp2(x):
    """2**x, rounded once to float32."""
    return np.exp2(x.astype(F64)).astype(F32)


def _accumulate(d, a, b):
    """Return d + a @ b in steps of the MMA's depth, each sum rounded to float32."""
    for first in range(0, a.shape[1], MMA_K):
        product = a[:, first : first + MMA_K] @ b[first : first + MMA_K]
        d = product if d is None else product + d
    return d


def _exponent(s, m, scale_log2):
    """Return (s − m)·scale as the kernel does: one fused multiply-add, or exactly where that would cancel."""
    offset = -(m * scale_log2)
    fused = s.astype(F64) * F64(scale_log2) + offset.astype(F64)[:, None]
    exact = (s - m[:, None]) * scale_log2
    return np.where(np.abs(offset)[:, None] > EXACT_SUBTRACTION_ABOVE, exact, fused.astype(F32))


def _one_head(q, k, v, limit, scale_log2, keys, exp2, dtype):
    """All rows of one head. ``q (Sq, D)``, ``k (Sk, D)``, ``v (Sk, Dv)`` as float32."""
    rows, seq_k = len(q), len(k)
    split = p_split(keys)
    m = np.full(rows, -np.inf, F32)
    total = np.zeros(rows, F32)
    o = np.zeros((rows, v.shape[1]), F32)
    values = np.where(np.isfinite(v), v, F32(0))
    first_tile = True
    nan_seen = np.zeros(rows, bool)
    for start in range((int(limit.max()) - 1) // keys * keys if limit.max() > 0 else -keys, -1, -keys):
        s = np.zeros((rows, keys), F32)
        block = slice(start, min(start + keys, seq_k))
        s[:, : block.stop - start] = _accumulate(None, q, k[block].T)
        s = np.where(start + np.arange(keys)[None, :] < limit[:, None], s, F32(-np.inf))
        nan_seen |= np.isnan(s).any(axis=1)
        new_m = np.maximum(m, s.max(axis=1))
        safe = np.where(new_m == -np.inf, F32(0), new_m)
        shrink = np.ones(rows, F32)
        if not first_tile:
            growth = (m - safe) * scale_log2
            keep = growth >= -RESCALE_THRESHOLD
            new_m, safe = np.where(keep, m, new_m), np.where(keep, m, safe)
            shrink = np.where(keep, F32(1), _exp2(growth))
        m, first_tile = new_m, False
        y = _exponent(s, safe, scale_log2)
        p = exp2(y)
        total = total * shrink + p.sum(axis=1, dtype=F32)
        o = np.where(shrink[:, None] < 1, o * shrink[:, None], o)
        rounded = p.astype(dtype).astype(F32)
        for part in (slice(0, split), slice(split, keys)):
            tile = values[start + part.start : min(start + part.stop, seq_k)]
            o = _accumulate(o, rounded[:, part.start : part.start + len(tile)], tile)
    factor = np.where(total > 0, F32(1) / total, F32(1))
    o = o * factor[:, None]
    o = np.where(nan_seen[:, None], F32(np.nan), o)
    if not np.isfinite(v).all():
        seen = np.arange(seq_k)[None, :] < limit[:, None]
        o = o + np.asarray(nonfinite_part(v, seen, np.zeros_like(seen)), F32)
    lse = np.where(total == 0, F32(-np.inf), (m * scale_log2 + np.log2(total)) * F32(np.log(2)))
    return o.astype(dtype), np.where(nan_seen, F32(np.nan), lse)
