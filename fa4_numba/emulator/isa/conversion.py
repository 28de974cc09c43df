"""mov, cvt and cvta: moving, packing and converting values."""

import ml_dtypes
import numpy as np

from ..machine.memory import SHARED_WINDOW
from ..machine.warp import LANES
from ..ptx.module import Reg, Vector
from .flushing import keeping_subnormals
from .registry import Alu, alu, effect
from .rounding import flush
from .types import DTYPE, dtype_of, unsigned

_PACKED = {
    "bf16x2": ml_dtypes.bfloat16,
    "f16x2": np.float16,
    "e4m3x2": ml_dtypes.float8_e4m3fn,
    "e5m2x2": ml_dtypes.float8_e5m2,
}
_FP8_LIMIT = {"e4m3x2": 448.0, "e5m2x2": 57344.0}


@alu("mov")
def move(ins) -> Alu:
    """d = a; with a vector on one side, packs or unpacks (first element = lowest bits)."""
    target, source = ins.args
    if isinstance(source, Vector):
        return _pack(ins, target, source.items)
    if isinstance(target, Vector):
        return _unpack(ins, target.items, source)
    dtype = dtype_of(ins)
    dtype = dtype if dtype == np.bool_ else unsigned(dtype)
    return Alu([(target, dtype)], [(source, dtype)], np.positive if dtype != np.bool_ else (lambda a: a))


@effect("mov.special")
def move_special(warp, ins):
    """d = a special register or an address: what may differ from CTA to CTA."""
    dtype = dtype_of(ins)
    target, operand = warp.destination(ins.args[0], dtype), ins.args[1]

    def run():
        np.copyto(target, warp.source(operand, dtype), where=warp.mask)

    return run


def _pack(ins, target, items) -> Alu:
    width = 8 * dtype_of(ins).itemsize // len(items)
    part = np.dtype(f"u{width // 8}")

    whole = unsigned(dtype_of(ins))

    def function(*parts):
        return np.stack(parts, 1).view(whole)[:, 0]

    def fast(targets, sources):
        columns = list(zip(targets[0].view(part).reshape(LANES, -1).T, sources))
        (low, a), (high, b) = columns[0], columns[-1]
        if len(columns) == 2 and not (np.shares_memory(low, b) or np.shares_memory(high, a)):
            return _two_copies(low, a, high, b)
        return lambda: np.copyto(targets[0], function(*sources))

    return Alu([(target, whole)], [(item, part) for item in items], function, fast=fast)


def _two_copies(target0, source0, target1, source1):
    copy = np.copyto

    def run():
        copy(target0, source0)
        copy(target1, source1)

    return run


def _unpack(ins, items, source) -> Alu:
    whole = unsigned(dtype_of(ins))
    part = np.dtype(f"u{whole.itemsize // len(items)}")

    def function(a):
        return tuple(a.view(part).reshape(LANES, -1).T)

    if len(items) == 1:
        return Alu([(items[0], whole)], [(source, whole)], lambda a: a)

    def fast(targets, sources):
        columns = sources[0].view(part).reshape(LANES, -1).T
        if len(targets) == 2:
            return _two_copies(targets[0], columns[0], targets[1], columns[1])
        return lambda: [np.copyto(t, c) for t, c in zip(targets, columns)]

    return Alu([(item, part) for item in items], [(source, whole)], function, fast=fast)


@alu("cvt")
def convert(ins) -> Alu:
    """d = a in another type: ``cvt.<rounding>.<to>.<from>``; two f32 to one packed pair with two sources."""
    to = next(p for p in ins.parts[1:] if p in DTYPE or p in _PACKED)
    if to in _PACKED:
        return _convert_pair(ins, to)
    source = dtype_of(ins)
    target = np.dtype(DTYPE[to])
    args = ins.args
    wide = isinstance(args[0], Reg) and args[0].width > 8 * target.itemsize
    if source.kind in "iu" and target.kind in "iu":
        if ins.has("sat"):
            info = np.iinfo(target)
            function = lambda a: np.clip(a.astype(object), info.min, info.max).astype(target)
        else:
            function = lambda a: a.astype(target)
    elif target.kind in "iu":
        function = lambda a: _to_integer(ins, a, target)
    else:
        function = lambda a: _to_float(ins, a, target)
    if source.kind == "f" or target.kind == "f":
        function = keeping_subnormals(function)
    if wide:  # a narrow value in a wide register: sign- or zero-extended
        register = np.dtype(f"{target.kind if target.kind in 'iu' else 'u'}{args[0].width // 8}")
        narrow = function
        function = lambda a: (narrow(a) if target.kind in "iu" else narrow(a).view(unsigned(target))).astype(
            register
        )
        target = register
    return Alu([(args[0], target)], [(args[1], source)], function)


def _to_integer(ins, a, target):
    """Round as asked (``.rni .rzi .rmi .rpi``), clamp to the range; NaN becomes 0."""
    rounding = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    how = next((f for n, f in rounding.items() if ins.has(n)), np.trunc)
    info = np.iinfo(target)
    x = how(a.astype(np.float64))
    inside = np.clip(np.nan_to_num(x, nan=0.0), float(info.min), float(info.max))
    return np.where(
        x >= float(info.max), info.max, inside.astype(np.int64 if target.kind == "i" else np.uint64)
    ).astype(target)


def _to_float(ins, a, target):
    if a.dtype.kind == "f" and any(ins.has(n) for n in ("rni", "rzi", "rmi", "rpi")):
        how = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
        a = next(f for n, f in how.items() if ins.has(n))(a)
    with np.errstate(over="ignore"):
        out = a.astype(target)
    if ins.has("sat"):
        out = np.clip(np.nan_to_num(out, nan=0.0), 0, 1).astype(target)
    return flush(out) if ins.has("ftz") and target == np.float32 else out


def _convert_pair(ins, to) -> Alu:
    """The first source goes to the upper half."""
    kind = _PACKED[to]
    limit = _FP8_LIMIT.get(to)

    def function(high, low):
        both = np.stack([low, high], 1)
        if ins.has("relu"):
            both = np.where(both < 0, np.float32(0), both)
        if limit is not None:
            both = np.clip(both, -limit, limit)  # .satfinite; NaN stays
        with np.errstate(over="ignore"):
            packed = np.ascontiguousarray(both.astype(kind))
        return packed.view(result)[:, 0]

    def fast(targets, sources):
        both = np.empty((LANES, 2), np.float32)
        low, high = both[:, 0], both[:, 1]
        target, (upper, lower) = targets[0], sources

        def run():
            np.copyto(low, lower)
            np.copyto(high, upper)
            np.copyto(target, both.astype(kind).view(result)[:, 0])

        return run

    result = np.dtype(np.uint32 if limit is None else np.uint16)
    plain = limit is None and not ins.has("relu")
    sources = [(a, np.float32) for a in ins.args[1:3]]
    return Alu([(ins.args[0], result)], sources, function, fast=fast if plain else None)


@alu("cvta")
def convert_address(ins) -> Alu:
    """Between generic addresses and those of a state space; global addresses are the same in both."""
    dtype = dtype_of(ins)
    args = [(ins.args[0], dtype)], [(ins.args[1], dtype)]
    if not ins.has("shared"):
        return Alu(*args, np.positive)
    shift = np.array(SHARED_WINDOW, dtype)
    return Alu(*args, (lambda a: a - shift) if ins.has("to") else (lambda a: a + shift))
