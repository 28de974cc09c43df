"""Floating-point arithmetic: f32, f64, and two packed f32."""

from functools import partial

import numpy as np

from .flushing import MODE, keeping_subnormals
from .registry import Alu, alu
from .rounding import DIRECTED, F64, TINY, exact_sum, flush, fma, fma_in_place
from .types import dtype_of

F32 = np.float32
_CANONICAL_NAN = np.uint32(0x7FFFFFFF).view(F32)


def _float_alu(ins, function, operands: int, dtype=None) -> Alu:
    """Describe ``d = function(a, b, …)``; ``.ftz`` flushes subnormal inputs and results."""
    dtype = dtype or dtype_of(ins)
    plain, fast = function, None
    if not ins.has("ftz"):
        function = keeping_subnormals(plain)
    elif not MODE.available:
        function = lambda *sources: flush(plain(*map(flush, sources)))
        fast = lambda targets, sources: _flushing(plain, targets[0], sources)
    elif plain is fma:
        fast = lambda targets, sources: fma_in_place(*sources, targets[0])
    args = ins.args
    sources = [(a, dtype) for a in args[1 : 1 + operands]]
    return Alu([(args[0], dtype)], sources, function, pairs=ins.parts[-1] == "f32x2", fast=fast)


def _flushing(plain, target, sources):
    """Return a function that computes ``target = flush(plain(flush(sources)))`` in scratch arrays."""
    n = len(target)
    magnitude, normal = np.empty(n, F32), np.empty(n, bool)
    scratch = [np.empty(n, F32) for _ in sources]
    pairs = list(zip(sources, scratch))
    absolute, at_least, multiply, in_place = (
        np.absolute,
        np.greater_equal,
        np.multiply,
        isinstance(plain, np.ufunc),
    )

    def run():
        for source, flushed in pairs:
            absolute(source, magnitude)
            at_least(magnitude, TINY, normal)
            multiply(source, normal, flushed)
        result = plain(*scratch, target) if in_place else plain(*scratch)
        absolute(result, magnitude)
        at_least(magnitude, TINY, normal)
        multiply(result, normal, target)

    return run


def _directed(ins, a, b):
    rounding = next((DIRECTED[p] for p in ins.parts if p in DIRECTED), None)
    s, e = exact_sum(a.astype(F64), b.astype(F64))
    return rounding(s, e)


def is_float(ins) -> bool:
    return ins.parts[-1] in ("f32", "f64", "f32x2", "f16", "bf16")


def float_add(ins) -> Alu:
    """d = a + b. ``.rm .rp .rz`` round toward −∞, +∞, zero."""
    if any(p in DIRECTED for p in ins.parts):
        return _float_alu(ins, lambda a, b: _directed(ins, a, b), 2)
    return _float_alu(ins, np.add, 2)


def float_sub(ins) -> Alu:
    """d = a − b."""
    if any(p in DIRECTED for p in ins.parts):
        return _float_alu(ins, lambda a, b: _directed(ins, a, -b), 2)
    return _float_alu(ins, np.subtract, 2)


def float_mul(ins) -> Alu:
    """d = a · b."""
    return _float_alu(ins, np.multiply, 2)


@alu("fma")
def fused_multiply_add(ins) -> Alu:
    """d = a · b + c, rounded once."""
    if ins.parts[-1] not in ("f32", "f32x2"):
        raise ValueError("only f32 and f32x2")
    return _float_alu(ins, fma, 3)


def _max(a, b):
    """NaN operands are ignored; −0 < +0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.fmax(a, b))


def _min(a, b):
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.fmin(a, b))


def _with_nan(function):
    def propagate(*sources):
        nan = np.isnan(sources[0])
        for s in sources[1:]:
            nan = nan | np.isnan(s)
        return np.where(nan, _CANONICAL_NAN, function(*sources))

    return propagate


def float_extremum(ins) -> Alu:
    """d = max or min of two or three operands; ``.NaN``: NaN if any is NaN (else NaN operands are ignored)."""
    two = _max if ins.parts[0] == "max" else _min
    count = len(ins.args) - 1
    if ins.has("NaN") and ins.parts[0] == "max" and count == 3 and not ins.has("ftz"):
        # numpy's maximum propagates NaN; which zero it returns for ±0 does not matter to a comparison
        op = _float_alu(ins, lambda a, b, c: np.maximum(np.maximum(a, b), c), 3)
        op.fast = op.fast or _maximum3
        return op
    else:
        function = two if count == 2 else lambda a, b, c: two(two(a, b), c)
        function = _with_nan(function) if ins.has("NaN") else function
    return _float_alu(ins, function, count)


def _maximum3(targets, sources):
    """Return a function that puts the maximum of three sources into the target, NaN if any is NaN."""
    (a, b, c), target = sources, targets[0]
    scratch, maximum = np.empty(len(a), F32), np.maximum
    return partial(MODE.exactly, lambda: maximum(maximum(a, b, out=scratch), c, out=target))


def float_div(ins) -> Alu:
    """d = a / b (``.rn``; ``.approx`` and ``.full`` are computed exactly too)."""
    return _float_alu(ins, np.divide, 2)


@alu("ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos")
def transcendental(ins) -> Alu:
    """d = f(a). The ``.approx`` forms are computed to within an ulp: closer than the hardware promises."""
    function = {
        "ex2": np.exp2,
        "lg2": np.log2,
        "rcp": lambda a: F32(1) / a,
        "rsqrt": lambda a: (1 / np.sqrt(a.astype(F64))).astype(F32),
        "sqrt": np.sqrt,
        "tanh": np.tanh,
        "sin": np.sin,
        "cos": np.cos,
    }[ins.parts[0]]
    return _float_alu(ins, function, 1)
