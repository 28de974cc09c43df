"""Integer arithmetic, logic, shifts; and the opcodes that integers share with floats."""

import numpy as np

from ..ptx.module import Sink
from . import floating
from .flushing import keeping_subnormals
from .registry import Alu, alu, pair_items
from .types import dtype_of, unsigned


def _alu(ins, function, dtype=None, result=None) -> Alu:
    dtype = np.dtype(dtype or dtype_of(ins))
    return Alu([(ins.args[0], result or dtype)], [(a, dtype) for a in ins.args[1:]], function)


@alu("add", "sub", "mul", "min", "max", "div", "rem", "neg", "abs")
def arithmetic(ins) -> Alu:
    """d = a op b, wrapping for integers. ``mul`` takes ``.lo .hi .wide``; division by zero gives all ones."""
    name = ins.parts[0]
    if floating.is_float(ins):
        if name in ("neg", "abs"):
            return _alu(ins, {"neg": np.negative, "abs": np.absolute}[name])
        return {
            "add": floating.float_add,
            "sub": floating.float_sub,
            "mul": floating.float_mul,
            "min": floating.float_extremum,
            "max": floating.float_extremum,
            "div": floating.float_div,
        }[name](ins)
    if name == "mul":
        return _multiply(ins)
    functions = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
    functions |= {"neg": np.negative, "abs": np.absolute, "div": _divide, "rem": _remainder}
    return _alu(ins, functions[name])


def _divide(a, b):
    """Quotient toward zero."""
    safe = np.where(b == 0, 1, b)
    q = np.abs(a) // np.abs(safe) if a.dtype.kind == "i" else a // safe
    q = np.where((a < 0) != (safe < 0), -q, q) if a.dtype.kind == "i" else q
    return np.where(b == 0, np.array(-1).astype(a.dtype), q).astype(a.dtype)


def _remainder(a, b):
    safe = np.where(b == 0, 1, b)
    r = np.fmod(a, safe)
    return np.where(b == 0, a, r).astype(a.dtype)


def _multiply(ins) -> Alu:
    dtype = dtype_of(ins)
    if ins.has("wide"):
        double = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return _alu(ins, lambda a, b: a.astype(double) * b.astype(double), dtype, double)
    if ins.has("hi"):
        return _alu(ins, _multiply_high, dtype)
    return _alu(ins, np.multiply, dtype)


def _multiply_high(a, b):
    bits = 8 * a.dtype.itemsize
    if bits == 64:
        product = a.astype(object) * b.astype(object)
        return np.array([int(p) >> 64 for p in product], object).astype(a.dtype)
    double = np.dtype(f"{a.dtype.kind}{bits // 4}")
    return (a.astype(double) * b.astype(double) >> bits).astype(a.dtype)


@alu("mad")
def multiply_add(ins) -> Alu:
    """d = a · b + c, with ``.lo``, ``.hi`` or ``.wide``."""
    dtype = dtype_of(ins)
    result = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if ins.has("wide") else dtype
    if ins.has("hi"):
        function = lambda a, b, c: _multiply_high(a, b) + c
    else:
        function = lambda a, b, c: a.astype(result) * b.astype(result) + c
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], result)]
    return Alu([(ins.args[0], result)], sources, function)


@alu("and", "or", "xor", "not", "cnot")
def logic(ins) -> Alu:
    """Bitwise, or logical for ``.pred``."""
    name, dtype = ins.parts[0], dtype_of(ins)
    if name == "cnot":
        return _alu(ins, lambda a: (a == 0).astype(a.dtype))
    functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
    return _alu(ins, functions[name], dtype if dtype == np.bool_ else unsigned(dtype))


@alu("shl", "shr")
def shift(ins) -> Alu:
    """d = a << b or a >> b; amounts from the width on clamp: 0, or the sign for ``.s``."""
    dtype = dtype_of(ins)
    bits = 8 * dtype.itemsize
    if ins.parts[0] == "shl":
        function = lambda a, n: np.where(n < bits, a << np.minimum(n, bits - 1).astype(a.dtype), 0).astype(
            a.dtype
        )
    elif dtype.kind == "i":
        function = lambda a, n: a >> np.minimum(n, bits - 1).astype(a.dtype)
    else:
        function = lambda a, n: np.where(n < bits, a >> np.minimum(n, bits - 1).astype(a.dtype), 0).astype(
            a.dtype
        )
    return Alu([(ins.args[0], dtype)], [(ins.args[1], dtype), (ins.args[2], np.uint32)], function)


@alu("shf")
def funnel_shift(ins) -> Alu:
    """d = the high (``.l``) or low (``.r``) half of the 64-bit b:a shifted by c, ``.clamp`` or ``.wrap``."""
    left, clamp = ins.has("l"), ins.has("clamp")

    def function(a, b, c):
        n = (np.minimum(c, 32) if clamp else c & 31).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a
        return (both << n >> np.uint64(32) if left else both >> n).astype(np.uint32)

    return _alu(ins, function, np.uint32)


@alu("lop3")
def logic3(ins) -> Alu:
    """d = any function of three bits, given by an 8-bit table."""
    table = int(ins.args[4].value)

    def function(a, b, c):
        d = np.zeros_like(a)
        for i in range(8):
            if table >> i & 1:
                d |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        return d

    return Alu([(ins.args[0], np.uint32)], [(a, np.uint32) for a in ins.args[1:4]], function)


@alu("bfe")
def bit_field_extract(ins) -> Alu:
    """d = ``c`` bits of a from bit b on, sign-extended for ``.s``."""
    dtype = dtype_of(ins)
    bits = 8 * dtype.itemsize

    def function(a, start, count):
        out = []
        for value, p, n in zip(
            a.astype(unsigned(dtype)).tolist(), (start & 0xFF).tolist(), (count & 0xFF).tolist()
        ):
            field = value >> p & ((1 << n) - 1)
            if dtype.kind == "i" and n and value >> min(p + n - 1, bits - 1) & 1:
                field |= -1 << min(n, max(bits - p, 0))
            out.append(field & ((1 << bits) - 1))
        return np.array(out, unsigned(dtype)).view(dtype)

    return Alu(
        [(ins.args[0], dtype)],
        [(ins.args[1], dtype), (ins.args[2], np.uint32), (ins.args[3], np.uint32)],
        function,
    )


@alu("popc", "clz", "brev")
def bit_count(ins) -> Alu:
    """Number of ones, of leading zeros; bits reversed."""
    dtype, name = dtype_of(ins), ins.parts[0]
    bits = 8 * dtype.itemsize
    result = dtype if name == "brev" else np.dtype(np.uint32)
    one = {
        "popc": int.bit_count,
        "clz": lambda v: bits - v.bit_length(),
        "brev": lambda v: int(f"{v:0{bits}b}"[::-1], 2),
    }[name]
    return _alu(ins, lambda a: np.array([one(v) for v in a.tolist()], result), unsigned(dtype), result)


@alu("prmt")
def permute_bytes(ins) -> Alu:
    """d = four bytes picked from b:a; a selector nibble's top bit replicates the byte's sign."""

    def function(a, b, c):
        source = np.stack([a, b], 1).copy().view(np.uint8)
        out = np.empty((len(a), 4), np.uint8)
        for i in range(4):
            nibble = c >> np.uint32(4 * i) & 15
            byte = source[np.arange(len(a)), nibble & 7]
            out[:, i] = np.where(nibble & 8, np.where(byte & 128, 255, 0), byte)
        return out.view(np.uint32)[:, 0]

    return _alu(ins, function, np.uint32)


_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _comparison(ins, dtype):
    """Return the predicate function; for floats the ``u`` forms are also true for NaN, all others false."""
    name = next(p for p in ins.parts[1:] if p in _COMPARE or p in ("num", "nan") or p[:-1] in _COMPARE)
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name in _COMPARE:
        function = _COMPARE[name]
        if name == "ne" and dtype.kind == "f":
            return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
        return function
    plain = _COMPARE[name[:-1]]
    return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)


@alu("setp")
def set_predicate(ins) -> Alu:
    """p|q = a compared with b, combined with c by ``.and .or .xor`` if there is a c; q is the opposite."""
    dtype = dtype_of(ins)
    compare = _comparison(ins, dtype)
    if dtype.kind == "f":
        compare = keeping_subnormals(compare)
    combine = next(
        (
            f
            for n, f in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor))
            if ins.has(n)
        ),
        None,
    )
    p, q = pair_items(ins.args[0])
    sources = [(ins.args[1], dtype), (ins.args[2], dtype)]
    if combine is not None and len(ins.args) > 3:
        sources.append((ins.args[3], np.bool_))
        function = lambda a, b, c: (combine(compare(a, b), c), combine(~compare(a, b), c))
    else:
        function = lambda a, b: (compare(a, b), ~compare(a, b))
    if isinstance(q, Sink):
        one = compare if len(sources) == 2 else (lambda a, b, c: function(a, b, c)[0])
        return Alu([(p, np.bool_)], sources, one)
    return Alu([(p, np.bool_), (q, np.bool_)], sources, function)


@alu("selp")
def select(ins) -> Alu:
    """d = a where p, else b."""
    dtype = unsigned(dtype_of(ins)) if dtype_of(ins).kind != "f" else dtype_of(ins)
    sources = [(ins.args[1], dtype), (ins.args[2], dtype), (ins.args[3], np.bool_)]
    return Alu([(ins.args[0], dtype)], sources, lambda a, b, p: np.where(p, a, b))


@alu("slct")
def select_by_sign(ins) -> Alu:
    """d = a where c ≥ 0, else b."""
    dtype = unsigned(np.dtype(np.uint32))
    sources = [
        (ins.args[1], dtype),
        (ins.args[2], dtype),
        (ins.args[3], np.float32 if ins.parts[-1] == "f32" else np.int32),
    ]
    return Alu([(ins.args[0], dtype)], sources, lambda a, b, c: np.where(c >= 0, a, b))
