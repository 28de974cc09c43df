"""What all references share: layouts, head groups, scale, and which keys a query sees."""

import numpy as np

from ..errors import ArrayError


def to_bhsd(array: np.ndarray, layout: str) -> np.ndarray:
    """Return ``(batch, heads, sequence, dim)``, a view."""
    if layout not in ("bshd", "bhsd"):
        raise ArrayError(f"layout = {layout!r}: take 'bshd' or 'bhsd'")
    return array.transpose(0, 2, 1, 3) if layout == "bshd" else array


def from_bhsd(array: np.ndarray, layout: str) -> np.ndarray:
    """Return ``array``, ``(batch, heads, sequence, dim)``, in ``layout``, contiguous."""
    return np.ascontiguousarray(to_bhsd(array, layout))


def default_scale(q: np.ndarray, scale: float | None) -> float:
    """Return the softmax scale: 1 / sqrt(head dim) unless given."""
    return float(scale) if scale is not None else 1.0 / np.sqrt(max(1, q.shape[-1]))


def visible_limit(seq_q: int, seq_k: int, causal: bool) -> np.ndarray:
    """Return for each query how many keys it sees, counted from key 0. Bottom-right causal; clipped to [0, Sk]."""
    if not causal:
        return np.full(seq_q, seq_k)
    return np.clip(np.arange(seq_q) + 1 + seq_k - seq_q, 0, seq_k)
