"""Attention by its definition, in float64."""

import numpy as np

from .problem import default_scale, from_bhsd, to_bhsd, visible_limit


def exact(q, k, v, *, causal=False, scale=None, layout="bshd"):
    """Return softmax(scale·q·kᵀ)·v in float64, and the log-sum-exp.

    Parameters
    ----------
    q : ndarray, ``(B, Sq, Hq, D)``
    k, v : ndarray, ``(B, Sk, Hkv, D)`` and ``(B, Sk, Hkv, Dv)``
        Query head h uses key/value head h // (Hq // Hkv).
    causal : bool
        Query i sees keys ≤ i + Sk − Sq.
    scale : float
        Default 1 / sqrt(D).
    layout : str
        "bshd" or "bhsd".

    Returns
    -------
    o : float64 ndarray in ``layout``
        Zero for a query that sees no key.
    lse : float64 ndarray, ``(B, Hq, Sq)``
        Natural logarithm; −inf for a query that sees no key.
    """
    scale = default_scale(q, scale)
    q, k, v = (to_bhsd(np.asarray(x), layout).astype(np.float64) for x in (q, k, v))
    batch, heads, seq_q, _ = q.shape
    kv_heads, seq_k = k.shape[1], k.shape[2]
    limit = visible_limit(seq_q, seq_k, causal)
    o = np.zeros((batch, heads, seq_q, v.shape[3]))
    lse = np.full((batch, heads, seq_q), -np.inf)
    with np.errstate(all="ignore"):
        for b in range(batch if seq_k else 0):
            for h in range(heads):
                kv = h // (heads // kv_heads)
                o[b, h], lse[b, h] = _one_head(q[b, h], k[b, kv], v[b, kv], limit, scale)
    return from_bhsd(o, layout), lse


def _one_head(q, k, v, limit, scale):
    s = (q @ k.T) * scale
    seen = np.arange(len(k))[None, :] < limit[:, None]
    s = np.where(seen, s, -np.inf)
    m = s.max(axis=1)
    p = np.exp(s - np.where(m == -np.inf, 0.0, m)[:, None])
    total = p.sum(axis=1)
    weights = p / np.where(total == 0, 1.0, total)[:, None]
    o = weights @ np.where(np.isfinite(v), v, 0.0)
    return o + nonfinite_part(v, seen, np.isnan(s) & seen), np.log(total) + np.where(m == -np.inf, 0.0, m)


def nonfinite_part(v, seen, nan_scores):
    """Return what NaN and ±inf in ``v`` add to each row that sees them (0 where there are none).

    A key's weight is positive however far it underflows, so a visible +inf gives +inf, both signs give NaN.
    """
    if np.isfinite(v).all() and not nan_scores.any():
        return 0.0
    counts = [
        seen.astype(np.float64) @ kind.astype(np.float64) for kind in (np.isnan(v), v == np.inf, v == -np.inf)
    ]
    nan, plus, minus = (c > 0 for c in counts)
    part = np.where(plus, np.inf, 0.0) + np.where(minus, -np.inf, 0.0)
    return np.where(nan | nan_scores.any(axis=1)[:, None], np.nan, part)
