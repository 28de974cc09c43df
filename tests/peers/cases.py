"""A case: launch somebody's kernel inside an emulated driver, and compare what it wrote with numpy."""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


@dataclass
class Comparison:
    """One output of a kernel beside what it should be; ``tolerance`` is relative to the largest magnitude."""

    got: np.ndarray
    want: np.ndarray
    tolerance: float

    @property
    def error(self) -> float:
        """Largest difference relative to the largest expected magnitude; infinite where the output is not finite."""
        got, want = np.asarray(self.got, np.float64), np.asarray(self.want, np.float64)
        if got.shape != want.shape or not np.isfinite(got).all():
            return float("inf")
        return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Case:
    """``run()`` launches and returns comparisons. It is called inside :func:`emulated_driver`."""

    peer: str
    name: str
    run: Callable[[], list[Comparison]]

    def __str__(self):
        return self.name


def normal(*shape, dtype=np.float32, seed=0, scale=1.0) -> np.ndarray:
    """Return standard normal numbers rounded to ``dtype``."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32).astype(dtype)


def wide(*arrays):
    """Return arrays as float64."""
    out = [np.asarray(a).astype(np.float64) for a in arrays]
    return out if len(out) > 1 else out[0]


def attention_reference(q, k, v, scale, *, causal=False, window=None, softcap=None, sink=None):
    """Return (out, lse) of one head in float64; the causal diagonal ends at the last key."""
    q, k, v = wide(q, k, v)
    s = q @ k.T * scale
    if softcap:
        s = softcap * np.tanh(s / softcap)
    distance = np.arange(len(q))[:, None] + len(k) - len(q) - np.arange(len(k))[None]
    hidden = np.zeros(s.shape, bool)
    if causal:
        hidden |= distance < 0
    if window is not None:
        hidden |= (distance > window[0]) | (distance < -window[1])
    s = np.where(hidden, -np.inf, s)
    top = s.max(1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    return p @ v / total, (top + np.log(total))[:, 0]
