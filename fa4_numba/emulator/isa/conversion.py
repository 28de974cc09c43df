"""mov, cvt and cvta: moving, packing and converting values."""

import ml_dtypes
import numpy as np

from ..machine.memory import SHARED_WINDOW
from ..ptx.module import Reg, Vector
from .bits import join, split
from .registry import Alu, alu, effect
from .rounding import F64, canonical, flush
from .types import BF16, DTYPE, dtype_of, unsigned

_FP8 = {
    "e4m3x2": (np.dtype(ml_dtypes.float8_e4m3fn), 448.0),
    "e5m2x2": (np.dtype(ml_dtypes.float8_e5m2), 57344.0),
}
_HALVES = {"f16x2": np.dtype(np.float16), "bf16x2": BF16}


@alu("mov")
def move(ins) -> Alu:
    """d = a; with a vector on one side, packs or unpacks (first element = lowest bits)."""
    target, source = ins.args
    whole = dtype_of(ins)
    whole = whole if whole == np.bool_ else unsigned(whole)
    if isinstance(source, Vector):
        part = np.dtype(f"u{whole.itemsize // len(source.items)}")
        function = lambda *parts: join(parts, whole) if len(parts) > 1 else parts[0]
        return Alu([(target, whole)], [(item, part) for item in source.items], function)
    if isinstance(target, Vector):
        part = np.dtype(f"u{whole.itemsize // len(target.items)}")
        function = (lambda a: split(a, part)) if len(target.items) > 1 else (lambda a: a)
        return Alu([(item, part) for item in target.items], [(source, whole)], function)
    return Alu([(target, whole)], [(source, whole)], lambda a: a)


@effect("mov.clock")
def move_clock(warp, ins):
    """d = a counter: here of warp-instructions."""
    dtype = dtype_of(ins)
    target = warp.destination(ins.args[0], dtype)

    def run():
        target[warp.mask] = np.uint64(warp.cta.machine.executed).astype(dtype)

    return run


@alu("cvt")
def convert(ins) -> Alu:
    """d = a in another type: ``cvt.<rounding>.<to>.<from>``; two f32 to one packed pair with two sources."""
    to = next(p for p in ins.parts[1:] if p in DTYPE or p in _HALVES or p in _FP8)
    if to in _HALVES:
        return _to_halves(ins, _HALVES[to])
    if to in _FP8:
        return _to_fp8_pair(ins, *_FP8[to])
    source, target = dtype_of(ins), np.dtype(DTYPE[to])
    if source.kind in "iu" and target.kind in "iu":
        function = (lambda a: _saturated(a, target)) if ins.has("sat") else (lambda a: a.astype(target))
    elif target.kind in "iu":
        function = lambda a: _to_integer(ins, flush(a) if ins.has("ftz") else a, target)
    else:
        function = lambda a: _to_float(ins, a, target)
    flushes = ins.has("ftz") if np.float32 in (source, target) else None
    return _in_register(ins, function, source, target, flushes)


def _in_register(ins, function, source, target, flushes) -> Alu:
    """A narrow result in a wide register is extended by its sign or with zeros."""
    register = ins.args[0]
    if not isinstance(register, Reg) or register.width <= 8 * target.itemsize:
        return Alu([(register, target)], [(ins.args[1], source)], function, flushes=flushes)
    wide = np.dtype(f"{target.kind if target.kind in 'iu' else 'u'}{register.width // 8}")
    word = target if target.kind in "iu" else unsigned(target)
    extended = lambda a: function(a).view(word).astype(wide)
    return Alu([(register, wide)], [(ins.args[1], source)], extended, flushes=flushes)


def _saturated(a, target):
    """Clamp to the range of the target."""
    low, high = np.iinfo(target).min, np.iinfo(target).max
    own = np.iinfo(a.dtype)
    if low > own.min:
        a = np.maximum(a, a.dtype.type(low))
    if high < own.max:
        a = np.minimum(a, a.dtype.type(high))
    return a.astype(target)


_TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _integral(ins):
    return next((f for name, f in _TO_INTEGRAL.items() if ins.has(name)), None)


def _to_integer(ins, a, target):
    """Round as asked (``.rni .rzi .rmi .rpi``), clamp to the range; NaN becomes 0."""
    info = np.iinfo(target)
    x = (_integral(ins) or np.trunc)(a.astype(F64))
    low, high = np.float64(info.min), np.float64(info.max)  # 2**63 - 1 and 2**64 - 1 round up here
    inside = np.where((x > low) & (x < high), x, F64(0)).astype(target)
    clamped = np.where(x >= high, target.type(info.max), np.where(x <= low, target.type(info.min), inside))
    return np.where(np.isnan(x), target.type(0), clamped)


def _to_float(ins, a, target):
    """From an integer, or from another float, maybe rounded to an integral value."""
    if a.dtype.kind != "f" and a.dtype != BF16:
        return to_bf16(a.astype(np.float32)) if target == BF16 else a.astype(target)
    a = from_bf16(a) if a.dtype == BF16 else a
    a = flush(a) if ins.has("ftz") and a.dtype == np.float32 else a
    integral = _integral(ins)
    a = a if integral is None else integral(a)
    out = to_bf16(a) if target == BF16 else canonical(a.astype(target))
    if ins.has("sat"):
        out = np.where(out > 0, np.where(out < 1, out, target.type(1)), target.type(0))
    if ins.has("relu"):
        out = _relu(out)
    return flush(out) if ins.has("ftz") and target == np.float32 else out


def from_bf16(a):
    return (a.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(a):
    """f32 to bf16, to nearest even; every NaN becomes 0x7fff."""
    bits = a.view(np.uint32)
    odd = bits >> np.uint32(16) & np.uint32(1)
    rounded = bits + (odd + np.uint32(0x7FFF)) >> np.uint32(16)
    return np.where(np.isnan(a), np.uint32(0x7FFF), rounded).astype(np.uint16).view(BF16)


def _relu(x):
    """Negative values become +0; NaN stays."""
    word = unsigned(x.dtype)
    bits = x.view(word)
    sign = word.type(1 << 8 * word.itemsize - 1)
    wide = from_bf16(x) if x.dtype == BF16 else x
    return np.where((bits & sign != 0) & ~np.isnan(wide), word.type(0), bits).view(x.dtype)


def _to_halves(ins, half) -> Alu:
    """Two f32 to one packed pair of f16 or bf16; the first source goes to the upper half."""
    if len(ins.args) != 3 or ins.parts[-1] != "f32":
        raise ValueError("only from two f32")

    def one(a):
        value = to_bf16(a) if half == BF16 else canonical(a.astype(half))
        return (_relu(value) if ins.has("relu") else value).view(np.uint16)

    function = lambda high, low: join((one(low), one(high)), np.uint32)
    return Alu([(ins.args[0], np.uint32)], [(a, np.float32) for a in ins.args[1:3]], function)


def _to_fp8_pair(ins, kind, limit: float) -> Alu:
    """Two f32 to two fp8 with ``.satfinite``; the first source goes to the upper byte."""
    if len(ins.args) != 3 or ins.parts[-1] != "f32":
        raise ValueError("only from two f32")

    def one(a):
        inside = np.where(a > limit, np.float32(limit), np.where(a < -limit, np.float32(-limit), a))
        value = inside.astype(kind).view(np.uint8)
        return np.where(ins.has("relu") & (a < 0), np.uint8(0), value)

    function = lambda high, low: join((one(low), one(high)), np.uint16)
    return Alu([(ins.args[0], np.uint16)], [(a, np.float32) for a in ins.args[1:3]], function)


@alu("cvta")
def convert_address(ins) -> Alu:
    """Between generic addresses and those of a state space; global addresses are the same in both."""
    dtype = dtype_of(ins)
    args = [(ins.args[0], dtype)], [(ins.args[1], dtype)]
    if not ins.has("shared"):
        return Alu(*args, lambda a: a)
    shift = dtype.type(SHARED_WINDOW)
    return Alu(*args, (lambda a: a - shift) if ins.has("to") else (lambda a: a + shift))
