"""Every check of the arguments of ``attention``, in one place: what was got, what is allowed, what to do."""

import math
from numbers import Real

import numpy as np

from ..errors import ArrayError, UnsupportedError
from .problem import Problem

LAYOUTS = ("bshd", "bhsd")
DTYPES = ("bfloat16", "float16", "float32", "float64")
LATER = {
    "window": "sliding windows",
    "softcap": "score capping",
    "sink": "attention sinks",
    "bias": "additive bias",
    "mask": "boolean masks",
    "alibi_slopes": "ALiBi",
    "q_descale": "fp8 scales",
    "k_descale": "fp8 scales",
    "v_descale": "fp8 scales",
    "out_dtype": "a separate output dtype",
    "cu_seqlens": "ragged batches",
    "page_table": "paged caches",
}


def refuse_later_options(options: dict) -> None:
    """Refuse options that are planned but not built, by name; unknown names are a TypeError."""
    for name, value in options.items():
        if name not in LATER:
            raise TypeError(f"attention() got an unexpected keyword argument {name!r}")
        if value is not None:
            raise UnsupportedError(
                f"{name}: {LATER[name]} are not built yet on any backend; leave {name} at None"
            )


def check_array(name: str, array: np.ndarray) -> None:
    """Check rank and dtype."""
    if array.ndim != 4:
        raise ArrayError(
            f"{name} has shape {array.shape}: expected 4 dimensions (batch, sequence, heads, dim); "
            f"add the missing ones with {name}[None]"
        )
    if array.dtype.name not in DTYPES:
        raise ArrayError(
            f"{name} has dtype {array.dtype}: expected one of {', '.join(DTYPES)}; use {name}.astype(...)"
        )


def check_scale(scale) -> float | None:
    """Check the softmax scale."""
    if scale is None:
        return None
    if isinstance(scale, bool) or not isinstance(scale, Real | np.floating | np.integer):
        raise ArrayError(f"scale = {scale!r}: must be a real number, got {type(scale).__name__}")
    if not math.isfinite(scale):
        raise ArrayError(f"scale = {scale}: must be finite")
    return float(scale)


def check_problem(q, k, v, *, causal, scale, layout, causal_align="bottom-right") -> Problem:
    """Check the arguments of a call together and return its :class:`Problem`. Arrays are numpy arrays here."""
    if layout not in LAYOUTS:
        raise ArrayError(f"layout = {layout!r}: take one of {LAYOUTS}")
    if causal_align != "bottom-right":
        raise UnsupportedError(f"causal_align = {causal_align!r}: only 'bottom-right' is built yet")
    if not isinstance(causal, bool | np.bool_):
        raise ArrayError(f"causal = {causal!r}: must be True or False")
    scale = check_scale(scale)
    for name, array in (("q", q), ("k", k), ("v", v)):
        check_array(name, array)
    if not q.dtype == k.dtype == v.dtype:
        raise ArrayError(
            f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}: they must agree; use .astype(...)"
        )
    order = (0, 1, 2, 3) if layout == "bshd" else (0, 2, 1, 3)
    (bq, sq, hq, dq), (bk, sk, hk, dk), (bv, sv, hv, dv) = (
        tuple(x.shape[i] for i in order) for x in (q, k, v)
    )
    if not bq == bk == bv:
        raise ArrayError(f"batch sizes of q, k, v are {bq}, {bk}, {bv} (layout {layout}): they must agree")
    if sk != sv:
        raise ArrayError(f"k has {sk} keys and v {sv} (layout {layout}): they must agree")
    if hk != hv:
        raise ArrayError(f"k has {hk} heads and v {hv} (layout {layout}): they must agree")
    if dq != dk:
        raise ArrayError(f"q has head dimension {dq} and k {dk}: they must agree")
    if hk == 0 and hq or hk and hq % hk:
        raise ArrayError(
            f"q has {hq} heads, k and v {hk}: the first must be a multiple of the second (layout {layout})"
        )
    return Problem(bq, hq, hk, sq, sk, dq, dv, q.dtype.name, bool(causal), scale)


def check_out(out, shape: tuple, dtype) -> None:
    """Check an output array."""
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"{type(out).__name__} {getattr(out, 'shape', '')} {getattr(out, 'dtype', '')}"
        raise ArrayError(f"out is {got}: must be a numpy array of shape {shape} and dtype {dtype}")
    if not out.flags.writeable:
        raise ArrayError("out is read-only: pass a writeable array")
