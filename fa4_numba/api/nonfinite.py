"""Keeps NaN and ±inf in V from rows that may not see them.

In the tensor core 0·NaN is NaN: a masked key's probability is exactly 0, but its V row still takes part. So the
kernel gets V with non-finite values replaced by 0, and what they mean to the rows that see them is added afterwards.
Only causal masks need it: without a mask every row sees every key.
"""

import numpy as np

from ..reference.problem import visible_limit


def contained(v: np.ndarray, causal: bool):
    """Return (V for the kernel, function that completes O), for ``v (B, Sk, Hkv, Dv)``; O is ``(B, Sq, Hq, Dv)``."""
    if not causal or np.isfinite(v).all():
        return v, lambda o: o
    finite = np.isfinite(v)
    clean = np.where(finite, v, v.dtype.type(0))

    def complete(o):
        limit = visible_limit(o.shape[1], v.shape[1], causal)
        group = o.shape[2] // v.shape[2]
        seen = [_seen_before(kind, limit, group) for kind in (np.isnan(v), v == np.inf, v == -np.inf)]
        nan, plus, minus = seen
        o[plus & ~minus & ~np.isnan(o)] = np.inf
        o[minus & ~plus & ~np.isnan(o)] = -np.inf
        o[nan | (plus & minus)] = np.nan
        return o

    return clean, complete


def _seen_before(kind: np.ndarray, limit: np.ndarray, group: int) -> np.ndarray:
    """Return for each (batch, query, q head, column) whether a key below the query's limit is of this kind."""
    running = np.logical_or.accumulate(kind, axis=1)
    seen = running[:, np.maximum(limit - 1, 0)] & (limit > 0)[None, :, None, None]
    return np.repeat(seen, group, axis=2)
