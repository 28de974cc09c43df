"""What numpy's ufuncs write when they meet a traced value."""

import numpy as np

from .tracer import F64, FLOATS, UFUNCS, NotTraceable, Value, select


def _binary(integer: str, floating: str | None = None, signed: str | None = None):
    def emit(trace, a, b):
        if a.dtype in FLOATS:
            if floating is None:
                raise NotTraceable(integer)
            how = floating
        else:
            how = signed if signed and a.dtype.kind == "i" else integer
        return a.with_name(a.dtype, f"{how} {trace.type(a.dtype)} {a.name}, {b.name}")

    return emit


def _logic(how: str):
    def emit(trace, a, b):
        if a.is_split and b.is_split:
            return Value(trace, a.dtype, None, tuple(emit(trace, x, y) for x, y in zip(a.halves, b.halves)))
        return a.with_name(a.dtype, f"{how} {trace.type(a.dtype)} {a.name}, {b.name}")

    return emit


def _compare(floating: str, signed: str, unsigned: str | None = None):
    def emit(trace, a, b):
        if a.dtype in FLOATS:
            how = f"fcmp {floating}"
        else:
            how = f"icmp {signed if a.dtype.kind == 'i' else unsigned or signed}"
        return a.with_name(np.bool_, f"{how} {trace.type(a.dtype)} {a.name}, {b.name}")

    return emit


def _invert(trace, a):
    ones = "true" if a.dtype == np.bool_ else "-1"
    kind = trace.type(a.dtype)
    return a.with_name(a.dtype, f"xor {kind} {a.name}, {trace.splat(trace.element(a.dtype), ones)}")


def _negative(trace, a):
    if a.dtype in FLOATS:
        return a.with_name(a.dtype, f"fneg {trace.type(a.dtype)} {a.name}")
    return a.with_name(a.dtype, f"sub {trace.type(a.dtype)} zeroinitializer, {a.name}")


def _absolute(trace, a):
    if a.dtype in FLOATS:
        return trace.call("fabs", a.dtype, a)
    return select(trace, a < a.dtype.type(0), -a, a)


def _floor_divide(trace, a, b):
    kind = trace.type(a.dtype)
    if a.dtype.kind == "u":
        return a.with_name(a.dtype, f"udiv {kind} {a.name}, {b.name}")
    one, zero = a.dtype.type(1), a.dtype.type(0)
    q = a.with_name(a.dtype, f"sdiv {kind} {a.name}, {b.name}")
    return select(trace, (q * b != a) & ((a < zero) != (b < zero)), q - one, q)


def _extremum(floating: str, signed: str, unsigned: str):
    def emit(trace, a, b):
        kind = floating if a.dtype in FLOATS else signed if a.dtype.kind == "i" else unsigned
        return trace.call(kind, a.dtype, a, b)

    return emit


def _intrinsic(name: str):
    return lambda trace, a: trace.call(name, a.dtype, a)


def _isnan(trace, a):
    return a.with_name(np.bool_, f"fcmp uno {trace.type(a.dtype)} {a.name}, zeroinitializer")


def _isfinite(trace, a):
    return np.absolute(a) < a.dtype.type(np.inf)


# 2**f on [-1/2, 1/2]: Taylor's series, to below an ulp of f64
_LN2 = np.log(2.0)
_EXP2_SERIES = [_LN2**i / float(np.prod(np.arange(1, i + 1, dtype=float))) for i in range(14)]


def _exp2(trace, a):
    if a.dtype != F64:
        raise NotTraceable("exp2 in other types than f64")
    return trace.call_once_compiled("exp2", _exp2_of_f32, a)


def _exp2_of_f32(trace, a):
    """2**x for x from f32: correctly rounded once it is narrowed, but for a handful of inputs."""
    x = np.fmin(np.fmax(a, F64.type(-160)), F64.type(130))  # beyond, f32 has 0 and infinity
    whole = np.rint(x)
    fraction = x - whole
    p = trace.constant(_EXP2_SERIES[-1], F64)
    for c in _EXP2_SERIES[-2::-1]:
        p = p.fma(fraction, c)
    exponent = whole.astype(np.int32).astype(np.int64) << np.int64(52)
    return select(trace, np.isnan(a), a, (p.view(np.int64) + exponent).view(F64))


UFUNCS.update(
    {
        "add": _binary("add", "fadd"),
        "subtract": _binary("sub", "fsub"),
        "multiply": _binary("mul", "fmul"),
        "divide": _binary("udiv", "fdiv"),
        "floor_divide": _floor_divide,
        "left_shift": _binary("shl"),
        "right_shift": _binary("lshr", None, "ashr"),
        "bitwise_and": _logic("and"),
        "bitwise_or": _logic("or"),
        "bitwise_xor": _logic("xor"),
        "invert": _invert,
        "negative": _negative,
        "absolute": _absolute,
        "equal": _compare("oeq", "eq"),
        "not_equal": _compare("une", "ne"),
        "less": _compare("olt", "slt", "ult"),
        "less_equal": _compare("ole", "sle", "ule"),
        "greater": _compare("ogt", "sgt", "ugt"),
        "greater_equal": _compare("oge", "sge", "uge"),
        "minimum": _extremum("minimum", "smin", "umin"),
        "maximum": _extremum("maximum", "smax", "umax"),
        "fmin": _extremum("minnum", "smin", "umin"),
        "fmax": _extremum("maxnum", "smax", "umax"),
        "isnan": _isnan,
        "isfinite": _isfinite,
        "rint": _intrinsic("rint"),
        "trunc": _intrinsic("trunc"),
        "floor": _intrinsic("floor"),
        "ceil": _intrinsic("ceil"),
        "sqrt": _intrinsic("sqrt"),
        "bitwise_count": _intrinsic("ctpop"),
        "exp2": _exp2,
    }
)
