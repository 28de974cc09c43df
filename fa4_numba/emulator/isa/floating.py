"""Floating-point arithmetic: f16, bf16, f32, f64, and two packed f32."""

import numpy as np

from .registry import Alu, alu
from .rounding import CANONICAL_NAN, DIRECTED, F32, F64, canonical, exact_sum, flush, fma
from .types import dtype_of


def is_float(ins) -> bool:
    return ins.parts[-1] in ("f32", "f64", "f32x2", "f16", "bf16")


def _float_alu(ins, function, operands: int, exact: bool = False) -> Alu:
    """Describe ``d = function(a, b, …)``: ``.ftz`` flushes inputs and results, ``.sat`` clamps to [0, 1].

    ``exact``: the function picks one of its operands, and does no rounding.
    """
    dtype, ftz, saturate = dtype_of(ins), ins.has("ftz"), ins.has("sat")

    def whole(*sources):
        result = function(*map(flush, sources)) if ftz else function(*sources)
        result = canonical(result)
        if saturate:
            result = np.where(result > 0, np.where(result < 1, result, dtype.type(1)), dtype.type(0))
        return flush(result) if ftz and not exact else result

    sources = [(a, dtype) for a in ins.args[1 : 1 + operands]]
    flushes = ftz if dtype == F32 else False if dtype == F64 else None
    return Alu([(ins.args[0], dtype)], sources, whole, pairs=ins.parts[-1] == "f32x2", flushes=flushes)


def _directed(ins):
    return next((DIRECTED[p] for p in ins.parts if p in DIRECTED), None)


def float_add(ins) -> Alu:
    """d = a + b. ``.rm .rp .rz`` round toward −∞, +∞, zero."""
    rounding = _directed(ins)
    if rounding is None:
        return _float_alu(ins, np.add, 2)
    return _float_alu(ins, lambda a, b: rounding(*exact_sum(a.astype(F64), b.astype(F64))), 2)


def float_sub(ins) -> Alu:
    """d = a − b."""
    rounding = _directed(ins)
    if rounding is None:
        return _float_alu(ins, np.subtract, 2)
    return _float_alu(ins, lambda a, b: rounding(*exact_sum(a.astype(F64), -b.astype(F64))), 2)


def float_mul(ins) -> Alu:
    """d = a · b."""
    rounding = _directed(ins)
    if rounding is None:
        return _float_alu(ins, np.multiply, 2)
    return _float_alu(ins, lambda a, b: rounding(a.astype(F64) * b.astype(F64), np.float64(0)), 2)


@alu("fma")
def fused_multiply_add(ins) -> Alu:
    """d = a · b + c, rounded once."""
    if ins.parts[-1] not in ("f32", "f32x2"):
        raise ValueError("only f32 and f32x2")
    rounding = _directed(ins)
    if rounding is None:
        return _float_alu(ins, fma, 3)
    return _float_alu(ins, lambda a, b, c: rounding(*exact_sum(a.astype(F64) * b, c.astype(F64))), 3)


def float_extremum(ins) -> Alu:
    """d = max or min of two or three operands; ``.NaN``: NaN if any is NaN (else NaN operands are ignored)."""
    two = _larger if ins.parts[0] == "max" else _smaller
    count = len(ins.args) - 1
    function = two if count == 2 else lambda a, b, c: two(two(a, b), c)
    return _float_alu(
        ins, _with_nan(function) if ins.has("NaN") else function, count, exact=not ins.has("ftz")
    )


def _larger(a, b):
    """NaN operands are ignored; −0 < +0: equal values have equal bits but for zeros, where +0 has none."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.where(a == b, (a.view(bits) & b.view(bits)).view(a.dtype), np.fmax(a, b))


def _smaller(a, b):
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.where(a == b, (a.view(bits) | b.view(bits)).view(a.dtype), np.fmin(a, b))


def _with_nan(function):
    def propagate(*sources):
        nan = np.isnan(sources[0])
        for s in sources[1:]:
            nan = nan | np.isnan(s)
        quiet = CANONICAL_NAN[sources[0].dtype].view(sources[0].dtype)
        return np.where(nan, quiet, function(*sources))

    return propagate


def float_div(ins) -> Alu:
    """d = a / b (``.rn``; ``.approx`` and ``.full`` are computed exactly too)."""
    return _float_alu(ins, np.divide, 2)


def float_sign(ins) -> Alu:
    """d = −a or |a|: only the sign bit changes."""
    dtype = dtype_of(ins)
    word = np.dtype(f"u{dtype.itemsize}")
    sign = word.type(1 << 8 * dtype.itemsize - 1)
    if ins.parts[0] == "neg":
        function = lambda a: (a.view(word) ^ sign).view(dtype)
    else:
        function = lambda a: (a.view(word) & ~sign).view(dtype)
    return Alu(
        [(ins.args[0], dtype)],
        [(ins.args[1], dtype)],
        (lambda a: flush(function(a))) if ins.has("ftz") else function,
    )


_IN_F64 = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda a: 1 / a,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
}


@alu("ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos")
def transcendental(ins) -> Alu:
    """d = f(a), rounded from f64: the ``.approx`` forms too, which is closer than the hardware promises."""
    function, dtype = _IN_F64[ins.parts[0]], dtype_of(ins)
    return _float_alu(ins, lambda a: function(a.astype(F64)).astype(dtype), 1)
