"""cvt: every pair of types, roundings, saturation; packed and 8-bit formats."""

from itertools import product

from .case import lanes
from .integer import simple
from .values import operands

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
WHOLE = ("rni", "rzi", "rmi", "rpi")
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def _narrow(opcode: str, result: str, source: str):
    """8-bit values live in 16-bit registers: widen what is stored, sign-extended where that is what cvt does."""
    out = {"u8": "u16", "s8": "s16"}.get(result, result)
    return lanes(
        opcode, f"{opcode} %x, %a;", [out], operands([{"u8": "u16", "s8": "s16"}.get(source, source)], 3)
    )


def _contains(to: str, source: str) -> bool:
    """Whether every value of an integer type fits another: then cvt takes no .sat."""
    wide, narrow = int(to[1:]), int(source[1:])
    return to == source or (narrow < wide and (to[0] == "s" or source[0] == "u"))


def integers():
    """Between integers, with and without saturation."""
    for to, source in product(INTEGERS, INTEGERS):
        if to != source:
            yield _narrow(f"cvt.{to}.{source}", to, source)
        if not _contains(to, source):
            yield _narrow(f"cvt.sat.{to}.{source}", to, source)


def integer_and_float():
    """From integers to floats and back, in every rounding."""
    for to, source, rounding in product(FLOATS, INTEGERS, ROUNDINGS):
        if to == "bf16" and source[1:] == "8":
            continue
        yield _narrow(f"cvt.{rounding}.{to}.{source}", to, source)
    for source, to, rounding in product(FLOATS, INTEGERS, WHOLE):
        if source == "bf16" and to[1:] == "8":
            continue
        yield _narrow(f"cvt.{rounding}.{to}.{source}", to, source)
        if source == "f32":
            yield _narrow(f"cvt.{rounding}.ftz.{to}.{source}", to, source)
            yield _narrow(f"cvt.{rounding}.sat.{to}.{source}", to, source)


def floats():
    """Between floats."""
    for to, source in product(FLOATS, FLOATS):
        if to == source:
            for rounding in WHOLE:
                yield simple(f"cvt.{rounding}.{to}.{source}", to, [source])
            if to == "f32":
                yield simple("cvt.rni.ftz.f32.f32", to, [source])
                yield simple("cvt.rzi.sat.f32.f32", to, [source])
                yield simple("cvt.sat.f32.f32", to, [source])
        elif MANTISSA[to] > MANTISSA[source] and {to, source} != {"f16", "bf16"}:
            yield simple(f"cvt.{to}.{source}", to, [source])
            if to == "f32" and source == "f16":
                yield simple("cvt.ftz.f32.f16", to, [source])
                yield simple("cvt.sat.f32.f16", to, [source])
        else:
            for rounding in ROUNDINGS:
                yield simple(f"cvt.{rounding}.{to}.{source}", to, [source])
    for rounding in ROUNDINGS:
        yield simple(f"cvt.{rounding}.ftz.f32.f64", "f32", ["f64"])
        yield simple(f"cvt.{rounding}.sat.f32.f64", "f32", ["f64"])
        yield simple(f"cvt.{rounding}.sat.f16.f32", "f16", ["f32"])
        yield simple(f"cvt.{rounding}.ftz.f16.f32", "f16", ["f32"])


def packed():
    """Pairs: f16x2, bf16x2, the 8-bit floats; relu and satfinite; tf32; cvt.pack."""
    for kind, rounding, relu in product(("f16", "bf16", "f16x2", "bf16x2"), ("rn", "rz"), ("", ".relu")):
        sources = ["f32"] * (2 if kind.endswith("x2") else 1)
        if relu or len(sources) == 2:
            yield simple(f"cvt.{rounding}{relu}.{kind}.f32", kind, sources)
    for kind, relu in product(("f16", "bf16"), ("", ".relu")):
        yield simple(f"cvt.rn{relu}.satfinite.{kind}.f32", kind, ["f32"])
        yield simple(f"cvt.rn{relu}.satfinite.{kind}x2.f32", f"{kind}x2", ["f32"] * 2)
    for kind, relu in product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        yield simple(f"cvt.rn.satfinite{relu}.{kind}.f32", kind, ["f32"] * 2)
        yield simple(f"cvt.rn.satfinite{relu}.{kind}.f16x2", kind, ["f16x2"])
        yield simple(f"cvt.rn{relu}.f16x2.{kind}", "f16x2", [kind])
    yield simple("cvt.rna.tf32.f32", "b32", ["f32"])
    for rounding, relu in product(("rn", "rz"), ("", ".relu")):
        yield simple(f"cvt.{rounding}{relu}.tf32.f32", "b32", ["f32"])
    for to in ("u16", "s16"):
        yield simple(f"cvt.pack.sat.{to}.s32", "b32", ["s32"] * 2)
    for to in ("u8", "s8"):
        yield simple(f"cvt.pack.sat.{to}.s32.b32", "b32", ["s32", "s32", "b32"])


def cases():
    """Return every case of this family."""
    return [*integers(), *integer_and_float(), *floats(), *packed()]
