"""Online softmax: float32 attention that never holds more than a block of scores."""

import numpy as np

from .exact import nonfinite_part
from .problem import default_scale, from_bhsd, to_bhsd, visible_limit


def online(q, k, v, *, causal=False, scale=None, layout="bshd", block=512):
    """Return attention in float32, key block by key block; parameters and results as :func:`exact`, but float32.

    ``block`` is the number of queries and of keys in a block: memory is O(S · block).
    """
    scale = np.float32(default_scale(q, scale))
    q, k, v = (to_bhsd(np.asarray(x), layout).astype(np.float32) for x in (q, k, v))
    batch, heads, seq_q, _ = q.shape
    kv_heads, seq_k = k.shape[1], k.shape[2]
    limit = visible_limit(seq_q, seq_k, causal)
    o = np.zeros((batch, heads, seq_q, v.shape[3]), np.float32)
    lse = np.full((batch, heads, seq_q), -np.inf, np.float32)
    with np.errstate(all="ignore"):
        for b in range(batch if seq_k else 0):
            for h in range(heads):
                kv = h // (heads // kv_heads)
                for first in range(0, seq_q, block):
                    rows = slice(first, first + block)
                    o[b, h, rows], lse[b, h, rows] = _rows(
                        q[b, h, rows] * scale, k[b, kv], v[b, kv], limit[rows], block
                    )
    return from_bhsd(o, layout), lse


def _rows(q, k, v, limit, block):
    """Walk the keys; m, l and the output are rescaled as the maximum grows."""
    finite = np.isfinite(v).all()
    values = v if finite else np.where(np.isfinite(v), v, np.float32(0))
    m = np.full(len(q), -np.inf, np.float32)
    total = np.zeros(len(q), np.float32)
    o = np.zeros((len(q), v.shape[1]), np.float32)
    for first in range(0, int(limit.max(initial=0)), block):
        s = q @ k[first : first + block].T
        seen = first + np.arange(s.shape[1])[None, :] < limit[:, None]
        if not seen.all():
            s = np.where(seen, s, np.float32(-np.inf))
        new_m = np.maximum(m, s.max(axis=1))
        safe = np.where(new_m == -np.inf, np.float32(0), new_m)
        p = np.exp(s - safe[:, None])
        shrink = np.exp(m - safe)
        total = total * shrink + p.sum(axis=1)
        o = o * shrink[:, None] + p @ values[first : first + block]
        m = new_m
    o /= np.where(total == 0, np.float32(1), total)[:, None]
    if not finite:
        seen = np.arange(len(v))[None, :] < limit[:, None]
        o = o + np.asarray(nonfinite_part(v, seen, np.zeros_like(seen)), np.float32)
    return o, np.log(total) + np.where(m == -np.inf, np.float32(0), m)
