"""Floating-point arithmetic of f32, f64 and two packed f32, in every rounding."""

from dataclasses import replace

import numpy as np

from . import halves
from .fma64 import fma64
from .formats import FORMATS, widen
from .registry import Alu, alu
from .rounding import (
    CANONICAL_NAN,
    F32,
    F64,
    canonical,
    directed,
    exact_sum_toward,
    flush,
    flush_bits,
    flush_product,
    fma,
    propagate_nan,
    to_f32,
)
from .types import dtype_of

FLOATS = ("f32", "f64", "f32x2", "f16", "bf16", "f16x2", "bf16x2")


def is_float(ins) -> bool:
    return ins.parts[-1] in FLOATS


def _float_alu(ins, function, operands: int, by_bits: bool = False) -> Alu:
    """Describe ``d = function(a, b, …)``: ``.ftz`` flushes inputs and results, ``.sat`` clamps to [0, 1].

    ``by_bits``: the result's bits are picked or stepped, so that only a look at them can tell a subnormal.
    """
    narrow = (
        ins.parts[-1] if ins.parts[-2] == "f32" else None
    )  # fma.f32.bf16 d, a, b, c: only c and d are f32
    dtype, ftz, saturate = (F32 if narrow else dtype_of(ins)), ins.has("ftz"), ins.has("sat")
    dtype = np.dtype(dtype)

    def whole(*sources):
        if narrow:
            wide = [widen(s.astype(np.uint32), FORMATS[narrow]) for s in sources[:-1]]
            sources = [*wide, sources[-1]]
        result = function(*map(flush, sources)) if ftz else function(*sources)
        if dtype == F32:
            result = canonical(result)
        if saturate:
            result = np.where(result > 0, np.where(result < 1, result, dtype.type(1)), dtype.type(0))
        if not ftz:
            return result
        return flush_bits(result) if by_bits else flush(result)

    types = [np.dtype(np.uint16) if narrow and i < operands - 1 else dtype for i in range(operands)]
    sources = list(zip(ins.args[1 : 1 + operands], types))
    flushes = ftz if dtype == F32 else False
    return Alu([(ins.args[0], dtype)], sources, whole, pairs=ins.parts[-1] == "f32x2", flushes=flushes)


def direction(ins) -> str | None:
    """Return the rounding, None for to nearest even."""
    return next((p for p in ins.parts if p in ("rz", "rm", "rp")), None)


def _is_f64(ins) -> bool:
    return ins.parts[-1] == "f64"


def float_add(ins) -> Alu:
    """d = a + b. ``.rm .rp .rz`` round toward −∞, +∞, zero."""
    mode = direction(ins)
    if _is_f64(ins):
        function = np.add if mode is None else (lambda a, b: fma64(a, F64(1), b, mode))
        return _float_alu(ins, lambda a, b: propagate_nan(function(a, b), a, b), 2)
    if mode is None:
        return _float_alu(ins, np.add, 2)
    return _float_alu(
        ins, lambda a, b: to_f32(*exact_sum_toward(a.astype(F64), b.astype(F64), mode), mode), 2, by_bits=True
    )


def float_sub(ins) -> Alu:
    """d = a − b."""
    mode = direction(ins)
    if _is_f64(ins):
        function = np.subtract if mode is None else (lambda a, b: fma64(a, F64(1), -b, mode))
        return _float_alu(ins, lambda a, b: propagate_nan(function(a, b), a, b), 2)
    if mode is None:
        return _float_alu(ins, np.subtract, 2)
    return _float_alu(
        ins,
        lambda a, b: to_f32(*exact_sum_toward(a.astype(F64), -b.astype(F64), mode), mode),
        2,
        by_bits=True,
    )


def float_mul(ins) -> Alu:
    """d = a · b."""
    mode = direction(ins)
    if _is_f64(ins):
        function = np.multiply if mode is None else (lambda a, b: fma64(a, b, _zero_like(a, b), mode))
        return _float_alu(ins, lambda a, b: propagate_nan(function(a, b), a, b), 2)
    product = lambda a, b: (a.astype(F64) * b.astype(F64), F64(0))
    if mode is None and ins.has("ftz"):
        return _float_alu(ins, lambda a, b: flush_product(a * b, lambda: product(a, b)), 2)
    if mode is None:
        return _float_alu(ins, np.multiply, 2)
    return _float_alu(ins, lambda a, b: to_f32(*product(a, b), mode, ins.has("ftz")), 2, by_bits=True)


def _zero_like(a, b):
    """Return zeros with the sign of a · b."""
    return ((a.view(np.uint64) ^ b.view(np.uint64)) & np.uint64(1 << 63)).view(F64)


@alu("fma")
def fused_multiply_add(ins) -> Alu:
    """d = a · b + c, rounded once; ``.f32.bf16``: a and b are bf16."""
    if ins.parts[-1] in FORMATS and ins.parts[-2] != "f32" or ins.parts[-1].endswith("6x2"):
        return halves.half_fma(ins)
    mode = direction(ins)
    if _is_f64(ins):
        return _float_alu(
            ins, lambda a, b, c: fma64_rn(a, b, c) if mode is None else fma64(a, b, c, mode), 3, by_bits=True
        )
    exact = lambda a, b, c: exact_sum_toward(a.astype(F64) * b.astype(F64), c.astype(F64), mode)
    if mode is None and ins.has("ftz"):
        return _float_alu(ins, lambda a, b, c: flush_product(fma(a, b, c), lambda: exact(a, b, c)), 3)
    if mode is None:
        return _float_alu(ins, fma, 3)
    ftz = ins.has("ftz")
    return _float_alu(ins, lambda a, b, c: to_f32(*exact(a, b, c), mode, ftz), 3, by_bits=True)


def fma64_rn(a, b, c):
    """To nearest: in one instruction where code is generated."""
    return propagate_nan(a.fma(b, c), a, c, b) if hasattr(a, "fma") else fma64(a, b, c)


def float_extremum(ins) -> Alu:
    """d = max or min of two or three operands; ``.NaN``: NaN if any is NaN (else NaN operands are ignored).

    ``.xorsign.abs`` compares magnitudes and gives the result the product's sign.
    """
    function, count = extremum_of(ins)
    if _is_f64(ins):
        plain = function
        function = lambda *sources: propagate_nan(plain(*sources), *sources)
    return _float_alu(ins, function, count, by_bits=True)


def extremum(name: str, count: int = 2, nan: bool = False, xorsign: bool = False):
    """Return the function of arrays for "min" or "max" of ``count`` operands."""
    two = _larger if name == "max" else _smaller
    function = two if count == 2 else lambda a, b, c: two(two(a, b), c)
    if nan:
        function = _with_nan(function)
    return _of_magnitudes(function) if xorsign else function


def extremum_of(ins):
    """Return (function of arrays, operands) of a min or max instruction."""
    count = len(ins.args) - 1
    return extremum(ins.parts[0], count, ins.has("NaN"), ins.has("xorsign")), count


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


def _of_magnitudes(function):
    word, sign = np.uint32, np.uint32(1 << 31)

    def whole(*sources):
        bits = [s.view(word) for s in sources]
        signs = bits[0] & sign
        for b in bits[1:]:
            signs = signs ^ b & sign
        size = function(*((b & ~sign).view(F32) for b in bits))
        return np.where(np.isnan(size), size.view(word), size.view(word) | signs).view(F32)

    return whole


def float_div(ins) -> Alu:
    """d = a / b (``.approx`` and ``.full`` are computed exactly too)."""
    return _quotient(ins, 2, lambda a, b: (a, b))


def _quotient(ins, operands: int, pick) -> Alu:
    mode = direction(ins)
    if _is_f64(ins):

        def function(*sources):
            a, b = pick(*sources)
            q = a / b
            if mode:
                rest = fma64(-q, b, a, "odd")
                q = directed(q, np.where(b < 0, -rest, rest), mode)
            return propagate_nan(q, *sources)

        return _float_alu(ins, function, operands)
    if mode is None:
        return _float_alu(ins, lambda *sources: np.divide(*pick(*sources)), operands)

    def toward(*sources):
        a, b = pick(*sources)
        return to_f32(a.astype(F64) / b.astype(F64), F64(0), mode, ins.has("ftz"))

    return _float_alu(ins, toward, operands, by_bits=True)


def float_sign(ins) -> Alu:
    """d = −a or |a|; a NaN becomes the canonical one, in f64 it stays."""
    negate = ins.parts[0] == "neg"
    function = np.negative if negate else np.absolute
    if _is_f64(ins):
        return _float_alu(ins, lambda a: propagate_nan(function(a), a), 1)
    return replace(_float_alu(ins, function, 1, by_bits=True), flushes=None)


@alu("rcp")
def reciprocal(ins) -> Alu:
    """d = 1 / a."""
    if ins.has("approx"):
        return _upper_half(ins, lambda a: 1 / a) if _is_f64(ins) else transcendental(ins)
    one = np.dtype(dtype_of(ins)).type(1)
    return _quotient(ins, 1, lambda a: (one, a))


@alu("sqrt")
def square_root(ins) -> Alu:
    """d = √a."""
    mode = direction(ins)
    if _is_f64(ins):

        def function(a):
            q = np.sqrt(a)
            return propagate_nan(directed(q, fma64(-q, q, a, "odd"), mode) if mode else q, a)

        return _float_alu(ins, function, 1)
    if mode is None:
        return _float_alu(ins, np.sqrt, 1)
    return _float_alu(ins, lambda a: to_f32(np.sqrt(a.astype(F64)), F64(0), mode), 1, by_bits=True)


_IN_F64 = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda a: 1 / a,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
}


def _upper_half(ins, function) -> Alu:
    """The coarse f64 approximations look at the upper 32 bits of a, and give only those of the result."""
    high = np.uint64(0xFFFFFFFF << 32)
    upper = lambda a: (a.view(np.uint64) & high).view(F64)
    return _float_alu(ins, lambda a: upper(propagate_nan(function(upper(a)), upper(a))), 1)


@alu("ex2", "lg2", "rsqrt", "tanh", "sin", "cos")
def transcendental(ins) -> Alu:
    """d = f(a), rounded from f64: the ``.approx`` forms too, which is closer than the hardware promises."""
    function = _IN_F64[ins.parts[0]]
    if ins.parts[-1] in FORMATS or ins.parts[-1].endswith("6x2"):
        return halves.half_alu(ins, lambda a: halves.exact(function(a)), 1)
    if _is_f64(ins) and ins.has("ftz"):
        return _upper_half(ins, function)
    dtype = dtype_of(ins)
    return _float_alu(ins, lambda a: function(a.astype(F64)).astype(dtype), 1)
