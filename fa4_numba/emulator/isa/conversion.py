"""cvt: between integers, floats, and packed pairs of narrow floats."""

import numpy as np

from ..ptx.module import Reg
from .bits import join, split
from .floating import direction
from .formats import BF16, FORMATS, Format, narrow, widen
from .halves import after
from .integer import clamped
from .registry import Alu, alu, vector_items
from .rounding import F32, F64, canonical, directed, exact_sum, flush, propagate_nan, to_f32, to_odd
from .types import DTYPE, unsigned

F32_FORMAT = Format(8, 23, 0x7F7FFFFF, 0x7FFFFFFF, 0x7F800000)
_U16, _U32 = np.dtype(np.uint16), np.dtype(np.uint32)
_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@alu("cvt")
def convert(ins) -> Alu:
    """d = a in another type: ``cvt.<rounding>.<to>.<from>``."""
    if ins.has("pack"):
        return _pack_integers(ins)
    to, source = _types(ins)
    if to == "tf32":
        return _to_tf32(ins)
    if to.endswith(("x2", "x4")) or source.endswith("x2"):
        return _pairs(ins, to, source)
    if _is_integer(source) and _is_integer(to):
        return _between_integers(ins, np.dtype(DTYPE[source]), np.dtype(DTYPE[to]))
    if _is_integer(to):
        return _float_to_integer(ins, source, np.dtype(DTYPE[to]))
    if _is_integer(source):
        return _integer_to_float(ins, np.dtype(DTYPE[source]), to)
    return _between_floats(ins, source, to)


def _types(ins) -> tuple[str, str]:
    """Return the type modifiers (to, from)."""
    kinds = [p for p in ins.parts[1:] if p in DTYPE or p in FORMATS or p[:-2] in (*FORMATS, "ue8m0")]
    return kinds[0], kinds[1]


def _is_integer(kind: str) -> bool:
    return kind[0] in "us" and kind[1:].isdigit()


def _in_register(ins, function, source, target, flushes=None) -> Alu:
    """A narrow result in a wide register is extended by its sign or with zeros."""
    register = ins.args[0]
    if not isinstance(register, Reg) or register.width <= 8 * target.itemsize:
        return Alu([(register, target)], [(ins.args[1], source)], function, flushes=flushes)
    wide = np.dtype(f"{target.kind if target.kind in 'iu' else 'u'}{register.width // 8}")
    word = target if target.kind in "iu" else unsigned(target)
    extended = lambda a: function(a).view(word).astype(wide)
    return Alu([(register, wide)], [(ins.args[1], source)], extended, flushes=flushes)


# -- integers ---------------------------------------------------------------------------------
def _between_integers(ins, source, target) -> Alu:
    function = (lambda a: _saturated(a, target)) if ins.has("sat") else (lambda a: a.astype(target))
    return _in_register(ins, function, source, target)


def _saturated(a, target):
    """Clamp to the range of the target."""
    low, high = np.iinfo(target).min, np.iinfo(target).max
    own = np.iinfo(a.dtype)
    if low > own.min:
        a = np.maximum(a, a.dtype.type(low))
    if high < own.max:
        a = np.minimum(a, a.dtype.type(high))
    return a.astype(target)


def _pack_integers(ins) -> Alu:
    """d = a and b clamped to 16 bits (``.u16 .s16``), or to 8 bits above the low half of c."""
    target = np.dtype(DTYPE[ins.parts[3]])
    word = unsigned(target)
    narrow_one = lambda a: clamped(a.astype(np.int64), target).view(word)
    sources = [(a, np.int32) for a in ins.args[1:3]]
    if target.itemsize == 2:
        pack = lambda a, b: join([narrow_one(b), narrow_one(a)], _U32)
        return Alu([(ins.args[0], _U32)], sources, pack)
    above = lambda a, b, c: join([narrow_one(b), narrow_one(a)], _U16).astype(_U32) | c << np.uint32(16)
    return Alu([(ins.args[0], _U32)], [*sources, (ins.args[3], _U32)], above)


# -- floats and integers ------------------------------------------------------------------------
def _float_to_integer(ins, source: str, target) -> Alu:
    """Round as asked (``.rni .rzi .rmi .rpi``), clamp to the range; NaN becomes 0, for 64 bits the top bit alone."""
    integral = next((f for name, f in _INTEGRAL.items() if ins.has(name)), np.trunc)
    info = np.iinfo(target)
    low, high = np.float64(info.min), np.float64(info.max)  # 2**63 - 1 and 2**64 - 1 round up here
    wide = target.itemsize == 8 or source == "f64"
    nan = target.type(0)
    if wide:
        nan = unsigned(target).type(1 << 8 * target.itemsize - 1).view(target)

    def function(a):
        a = _value(a, source, ins)
        x = integral(a.astype(F64))
        inside = np.where((x > low) & (x < high), x, F64(0)).astype(target)
        limited = np.where(
            x >= high, target.type(info.max), np.where(x <= low, target.type(info.min), inside)
        )
        return np.where(np.isnan(x), nan, limited)

    return _in_register(ins, function, _register_type(source), target, _flush_mode(ins, source))


def _integer_to_float(ins, source, to: str) -> Alu:
    """Rounded once, from the exact value as a sum of two f64."""
    mode = direction(ins)
    low = np.int64(0xFFFFFFFF)

    def function(a):
        if to in ("f32", "f64") and mode is None:
            return a.astype(DTYPE[to])
        if source.itemsize < 8:
            s, e = a.astype(F64), F64(0)
        else:
            high = (a >> a.dtype.type(32)).astype(F64) * F64(2.0**32)
            s, e = exact_sum(high, (a.view(np.int64) & low).astype(F64))
        if to == "f64":
            return directed(s, e, mode)
        if to == "f32":
            return to_f32(s, e, mode)
        return narrow(to_odd(s, e), FORMATS[to], mode or "rn").astype(_U16)

    return _in_register(ins, function, source, _register_type(to))


# -- floats ---------------------------------------------------------------------------------------
def _register_type(kind: str):
    return _U16 if kind in FORMATS else np.dtype(DTYPE[kind])


def _value(a, kind: str, ins):
    """Return the f32 or f64 that a register holds. ``.ftz`` has no effect where f32 becomes f16."""
    if kind in FORMATS:
        return widen(a.astype(np.uint32), FORMATS[kind])
    return flush(a) if ins.has("ftz") and kind == "f32" and not ins.has("f16") else a


def _flush_mode(ins, *kinds) -> bool | None:
    """Whether the CPU may flush subnormals: None where none can occur."""
    if "f32" in kinds and ins.has("ftz") and "f16" not in kinds:
        return True
    return False if {"f32", "f64", "bf16"} & {*kinds} else None


def _between_floats(ins, source: str, to: str) -> Alu:
    mode = direction(ins)
    integral = next((f for name, f in _INTEGRAL.items() if ins.has(name)), None)

    def function(a):
        a = _value(a, source, ins)
        if integral is not None:
            a = propagate_nan(integral(a), a) if source == "f64" else integral(a)
        if to in FORMATS:
            pattern = narrow(a, FORMATS[to], mode or "rn", ins.has("satfinite"))
            if source == "f64":
                pattern = np.where(np.isnan(a), _nan_from_f64(a, FORMATS[to]), pattern)
            return after(ins, pattern, FORMATS[to]).astype(_U16)
        if source == "bf16" and to == "f32":
            return a  # the same bits, NaNs included
        return _finished(ins, _widened(a, to, mode), to, a)

    plain = mode is None and not ins.has("ftz") and {source, to} in ({"f16", "f32"}, {"bf16", "f32"})
    flushes = (
        None if plain else _flush_mode(ins, source, to)
    )  # in plain ones no f32 is read or made subnormal
    return _in_register(ins, function, _register_type(source), _register_type(to), flushes)


def _widened(a, to: str, mode: str | None):
    """Return f32 or f64 as ``to``."""
    dtype = np.dtype(DTYPE[to])
    if a.dtype == dtype or mode is None:
        return a.astype(dtype)
    return to_f32(a, F64(0), mode)


def _finished(ins, x, to: str, a):
    """NaNs, ``.sat``, ``.ftz`` (for what is too small before rounding)."""
    dtype = x.dtype
    if a.dtype == F64 and to == "f32":
        nan = _nan_from_f64(a, F32_FORMAT).view(F32)
        x = np.where(np.isnan(a), nan, x)
    elif to == "f32":
        x = canonical(x)
    elif a.dtype == F32:
        x = np.where(np.isnan(x), _nan_from_f32(a), x)
    if ins.has("sat"):
        x = np.where(x > 0, np.where(x < 1, x, dtype.type(1)), dtype.type(0))
    if ins.has("ftz") and a.dtype == F64:
        x = np.where(np.absolute(a) < F64(2.0**-126), x * dtype.type(0), x)
    return x


def _nan_from_f32(a):
    """f64 keeps the bits of an f32's NaN."""
    bits = a.view(np.uint32).astype(np.uint64)
    up, sign = np.uint64(29), np.uint64(1 << 31)
    return (
        (bits & sign) << np.uint64(32) | np.uint64(0x7FF8 << 48) | (bits & np.uint64(0x7FFFFF)) << up
    ).view(F64)


def _nan_from_f64(a, fmt: Format):
    """A narrower format keeps the sign and the highest bits of an f64's NaN, made quiet."""
    bits = a.view(np.uint64)
    sign = (bits >> np.uint64(63) << np.uint64(fmt.bits - 1)).astype(np.uint32)
    mantissa = (bits & np.uint64((1 << 52) - 1)) >> np.uint64(52 - fmt.mantissa)
    return sign | np.uint32(fmt.infinity | 1 << fmt.mantissa - 1) | mantissa.astype(np.uint32)


def _to_tf32(ins) -> Alu:
    """d = f32 with 10 mantissa bits, the rest 0: ``.rn``, ``.rz``, or ``.rna`` (ties away from zero)."""
    mode = next(p for p in ins.parts if p in ("rn", "rz", "rna"))
    fmt = FORMATS["tf32"]

    def function(a):
        pattern = after(ins, narrow(a, fmt, mode, ins.has("satfinite")), fmt) << np.uint32(13)
        if mode == "rna":  # a NaN is only cut off
            pattern = np.where(np.isnan(a), a.view(np.uint32) & ~np.uint32(0x1FFF), pattern)
        return pattern

    return Alu([(ins.args[0], _U32)], [(ins.args[1], np.float32)], function)


# -- packed pairs -----------------------------------------------------------------------------------
def _pairs(ins, to: str, source: str) -> Alu:
    """Two (or four) narrow floats; with several sources the first goes to the upper part."""
    many = int(to[-1])
    target = _element(to)
    if source.endswith("x2"):
        return _pair_to_pair(ins, target, to, _element(source), source)
    sources = [item for operand in ins.args[1:] for item in vector_items(operand)][:many]
    size = _slot(target)
    word = np.dtype(f"u{max(1, size * many // 8)}")
    part = np.dtype(f"u{max(1, size // 8)}")
    mode = direction(ins) or "rn"

    def function(*values):
        parts = [_narrowed(ins, v, target, mode).astype(part) for v in reversed(values)]
        return _joined(parts, size, word)

    flushes = None if target is BF16 and mode == "rn" else _flush_mode(ins, source)
    if mode == "rn" and not ins.has("ftz"):
        flushes = None
    return _stored(ins, function, word, [(a, np.float32) for a in sources], flushes)


def _pair_to_pair(ins, target, to: str, source, name: str) -> Alu:
    """From a packed pair to another: fp8 to f16x2 and back, scales to bf16x2."""
    size, slot = _slot(source), _slot(target)
    read = np.dtype(f"u{max(1, size // 4)}")
    word, part = np.dtype(f"u{max(1, slot // 4)}"), np.dtype(f"u{max(1, slot // 8)}")
    mode = direction(ins) or "rn"

    def function(pair):
        values = [_widened_element(p, source) for p in _parts(pair, size)]
        return _joined([_narrowed(ins, v, target, mode).astype(part) for v in values], slot, word)

    return _stored(ins, function, word, [(ins.args[1], read)], False)


def _stored(ins, function, word, sources, flushes) -> Alu:
    """A byte in a wider register is extended with zeros."""
    register = ins.args[0]
    if isinstance(register, Reg) and register.width > 8 * word.itemsize:
        wide = np.dtype(f"u{register.width // 8}")
        return Alu([(register, wide)], sources, lambda *s: function(*s).astype(wide), flushes=flushes)
    return Alu([(register, word)], sources, function, flushes=flushes)


_SCALE = "ue8m0"


def _element(kind: str) -> Format | str:
    return _SCALE if kind[:-2] == _SCALE else FORMATS[kind[:-2]]


def _slot(fmt) -> int:
    """Return the bits that one element takes in a register: fp6 takes a byte, fp4 half of one."""
    return 8 if fmt == _SCALE else {16: 16, 8: 8, 6: 8, 4: 4}[fmt.bits]


def _parts(pair, size: int):
    if size == 4:
        return [(pair & pair.dtype.type(15)).astype(_U32), (pair >> pair.dtype.type(4)).astype(_U32)]
    return [p.astype(_U32) for p in split(pair, np.dtype(f"u{size // 8}"))]


def _joined(parts, size: int, word):
    if size == 4:
        pairs = [a | b << np.uint8(4) for a, b in zip(parts[::2], parts[1::2])]
        return pairs[0] if len(pairs) == 1 else join(pairs, word)
    return join(parts, word)


def _narrowed(ins, value, fmt, mode: str):
    if fmt == _SCALE:
        return _to_scale(value, mode)
    pattern = narrow(value, fmt, mode, ins.has("satfinite"))
    if ins.has("relu"):
        negative = (value < 0) | (value.view(np.uint32) == np.uint32(1 << 31))
        pattern = np.where(negative, np.uint32(0), pattern)
    return pattern


def _widened_element(pattern, fmt):
    if fmt == _SCALE:
        bits = np.where(pattern == np.uint32(0), np.uint32(1 << 22), pattern << np.uint32(23))
        return np.where(pattern == np.uint32(255), np.uint32(0x7FFFFFFF), bits).view(F32)
    return widen(pattern, fmt)


def _to_scale(value, mode: str):
    """The exponent alone, of magnitudes, rounded to zero or up; NaN is 255."""
    bits = value.view(np.uint32) & np.uint32(0x7FFFFFFF)
    up = np.uint32((1 << 23) - 1 if mode == "rp" else 0)
    exponent = bits + up >> np.uint32(23)
    return np.where(np.isnan(value), np.uint32(255), np.minimum(exponent, np.uint32(254)))
