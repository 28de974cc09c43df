"""What atomics and reductions do to a value in memory: one table for ``atom``, ``red``, ``redux`` and bulk reductions."""

import numpy as np

from .bits import join, split
from .floating import extremum
from .formats import FORMATS, narrow, widen
from .rounding import F32, F64, canonical, exact_sum, flush_bits, propagate_nan, to_odd
from .types import DTYPE

_INTEGER = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
}


def element_dtype(kind: str) -> np.dtype:
    """Return how a type lies in memory: halves as patterns."""
    return np.dtype(
        {"f16": np.uint16, "bf16": np.uint16, "f16x2": np.uint32, "bf16x2": np.uint32}.get(kind)
        or DTYPE[kind]
    )


def reduction(operation: str, kind: str, in_l2: bool = False):
    """Return ``function(old, new)`` of arrays of ``element_dtype(kind)``.

    ``in_l2``: the L2 cache's units do it, for global memory. Their f32 sums flush subnormals, their f64 sums keep a
    signalling NaN as it is.
    """
    if kind.endswith("16x2"):
        one = _half(operation, FORMATS[kind[:-2]])
        return lambda old, new: join(
            [one(a, b) for a, b in zip(split(old, np.uint16), split(new, np.uint16))], np.uint32
        )
    if kind in FORMATS:
        return _half(operation, FORMATS[kind])
    if kind == "f64" and operation == "add":
        return lambda old, new: propagate_nan(old + new, old, new, quiet=not in_l2)
    if kind == "f32" and operation == "add":
        return _flushing_sum if in_l2 else (lambda old, new: canonical(old + new))
    if DTYPE[kind] in (F32, F64) and operation != "exch":
        raise ValueError(f".{operation}.{kind}")
    return _INTEGER[operation]


def _flushing_sum(old, new):
    return flush_bits(canonical(flush_bits(old) + flush_bits(new)))


def _half(operation: str, fmt):
    """Sums are rounded once; min and max ignore NaN."""

    def function(old, new):
        a, b = (widen(x.astype(np.uint32), fmt) for x in (old, new))
        if operation == "add":
            return narrow(to_odd(*exact_sum(a.astype(F64), b.astype(F64))), fmt).astype(np.uint16)
        return narrow(extremum(operation)(a, b), fmt).astype(np.uint16)

    return function
