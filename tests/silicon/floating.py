"""Floating-point arithmetic: f32, f64, f16, bf16 and packed pairs; comparisons; approximations."""

from itertools import product

import numpy as np

from .case import Close, lanes
from .integer import simple
from .values import COUNT, operands, random_bits

ROUNDINGS = ("rn", "rz", "rm", "rp")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")


def single():
    """f32."""
    for op, rounding, ftz, sat in product(
        ("add", "sub", "mul", "fma"), ROUNDINGS, ("", ".ftz"), ("", ".sat")
    ):
        yield simple(f"{op}.{rounding}{ftz}{sat}.f32", "f32", ["f32"] * (3 if op == "fma" else 2))
    for rounding, ftz in product(ROUNDINGS, ("", ".ftz")):
        yield simple(f"div.{rounding}{ftz}.f32", "f32", ["f32"] * 2)
        for op in ("rcp", "sqrt"):
            yield simple(f"{op}.{rounding}{ftz}.f32", "f32", ["f32"])
    for op, ftz in product(("abs", "neg"), ("", ".ftz")):
        yield simple(f"{op}{ftz}.f32", "f32", ["f32"])
    for op, ftz, nan, sign in product(("min", "max"), ("", ".ftz"), ("", ".NaN"), ("", ".xorsign.abs")):
        yield simple(f"{op}{ftz}{nan}{sign}.f32", "f32", ["f32"] * 2)


def double():
    """f64."""
    for op, rounding in product(("add", "sub", "mul", "fma", "div"), ROUNDINGS):
        yield simple(f"{op}.{rounding}.f64", "f64", ["f64"] * (3 if op == "fma" else 2))
    for op, rounding in product(("rcp", "sqrt"), ROUNDINGS):
        yield simple(f"{op}.{rounding}.f64", "f64", ["f64"])
    for op in ("abs", "neg"):
        yield simple(f"{op}.f64", "f64", ["f64"])
    for op in ("min", "max"):
        yield simple(f"{op}.f64", "f64", ["f64"] * 2)
    for kind, test in product(
        ("f32", "f64"), ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    ):
        yield simple(f"testp.{test}.{kind}", "pred", [kind])
    for kind in ("f32", "f64"):
        yield simple(f"copysign.{kind}", kind, [kind] * 2)


def half():
    """f16, bf16 and pairs of them."""
    for op, kind in product(("add", "sub", "mul", "fma"), HALVES):
        sources = [kind] * (3 if op == "fma" else 2)
        for ftz, sat in product(("", ".ftz"), ("", ".sat")):
            if kind.startswith("bf16") and (ftz or sat):
                continue
            yield simple(f"{op}.rn{ftz}{sat}.{kind}", kind, sources)
            if op != "fma" and kind.startswith("f16"):
                yield simple(f"{op}{ftz}{sat}.{kind}", kind, sources)
        if op == "fma":
            yield simple(f"fma.rn.relu.{kind}", kind, sources)
            yield simple(f"fma.rn.oob.{kind}", kind, sources)
    for op, kind, nan, sign in product(("min", "max"), HALVES, ("", ".NaN"), ("", ".xorsign.abs")):
        yield simple(f"{op}{nan}{sign}.{kind}", kind, [kind] * 2)
        if kind.startswith("f16"):
            yield simple(f"{op}.ftz{nan}{sign}.{kind}", kind, [kind] * 2)
    for op, kind in product(("abs", "neg"), HALVES):
        yield simple(f"{op}.{kind}", kind, [kind])


def comparisons():
    """setp and set on floats: ordered, unordered, NaN tests."""
    every = (*COMPARE, *(f"{name}u" for name in COMPARE), "num", "nan")
    for name, kind in product(every, ("f32", "f64", "f16", "bf16")):
        yield simple(f"setp.{name}.{kind}", "pred", [kind] * 2)
        if kind in ("f32", "f16"):
            yield simple(f"setp.{name}.ftz.{kind}", "pred", [kind] * 2)
    for name, kind in product(("lt", "neu", "num"), ("f16x2", "bf16x2")):
        yield lanes(
            f"setp.{name}.{kind}", f"setp.{name}.{kind} %x|%y, %a, %b;", ["pred"] * 2, operands([kind] * 2, 2)
        )
    for name, result, kind in product(("lt", "equ"), ("u32", "s32", "f32"), ("f32", "f64")):
        yield simple(f"set.{name}.{result}.{kind}", result, [kind] * 2)
    for name, result in product(("lt", "neu"), ("f16x2", "u32")):
        if result == "u32":
            yield simple(f"set.{name}.u32.f16", "u32", ["f16"] * 2)
        else:
            yield simple(f"set.{name}.f16x2.f16x2", "f16x2", ["f16x2"] * 2)


def approximations():
    """Approximate functions, within the bounds that the ISA documents."""
    f32 = lambda relative, absolute=0.0: Close("float32", relative + 2.0**-24, absolute)
    tiny = 2.0**-126  # where subnormal results may be flushed or not
    bounds = {
        "ex2.approx": f32(2.0**-22.5, 2.0**-149), "ex2.approx.ftz": f32(2.0**-22.5, tiny),
        "lg2.approx": f32(2.0**-22, 2.0**-22), "lg2.approx.ftz": f32(2.0**-22, 2.0**-22),
        "rcp.approx": f32(2.0**-23, 2.0**-149), "rcp.approx.ftz": f32(2.0**-23),
        "rsqrt.approx": f32(2.0**-22.9), "rsqrt.approx.ftz": f32(2.0**-22.9),
        "sqrt.approx": f32(2.0**-23), "sqrt.approx.ftz": f32(2.0**-23),
        "tanh.approx": f32(2.0**-11),
    }  # fmt: skip
    for opcode, bound in bounds.items():
        yield simple(f"{opcode}.f32", "f32", ["f32"], compare=bound)
    small = "and.b32 %a, %a, 0xBFFFFFFF;"  # keeps the magnitude below 2
    for op, ftz in product(("sin", "cos"), ("", ".ftz")):
        text = f"{small} {op}.approx{ftz}.f32 %x, %a;"
        yield lanes(f"{op}.approx{ftz}.f32", text, ["f32"], operands(["f32"], 5), compare=f32(0, 2.0**-20.5))
    for form, ftz in product(("approx", "full"), ("", ".ftz")):
        text = f"div.{form}{ftz}.f32 %x, %a, %b;"  # divisors of moderate size: outside, the ISA allows more
        keep = "and.b32 %b, %b, 0xBFFFFFFF; or.b32 %b, %b, 0x20000000;"
        bound = f32(2.0**-22, 2.0**-125)
        yield lanes(
            f"div.{form}{ftz}.f32", f"{keep} {text}", ["f32"], operands(["f32"] * 2, 6), compare=bound
        )
    yield simple("rcp.approx.ftz.f64", "f64", ["f64"], compare=Close("float64", 2.0**-20))
    yield simple("rsqrt.approx.f64", "f64", ["f64"], compare=Close("float64", 2.0**-20))
    yield simple("rsqrt.approx.ftz.f64", "f64", ["f64"], compare=Close("float64", 2.0**-20))
    for kind, dtype, ftz, ulp in (
        ("f16", "float16", "", 2.0**-9.9), ("f16x2", "float16", "", 2.0**-9.9),
        ("bf16", "bfloat16", ".ftz", 2.0**-7), ("bf16x2", "bfloat16", ".ftz", 2.0**-7),
    ):  # fmt: skip
        bound = Close(dtype, ulp + ulp, 2.0**-24 if dtype == "float16" else tiny)
        yield simple(f"ex2.approx{ftz}.{kind}", kind, [kind], compare=bound)
        error = (2.0**-9, 2.0**-8) if ftz else (2.0**-12, 2.0**-10.987)  # own rounding; absolute, documented
        yield simple(f"tanh.approx.{kind}", kind, [kind], compare=Close(dtype, *error))


def boundaries():
    """Results just below the smallest normal f32, where rounding and flushing meet; NaNs that mark what is out of bounds."""
    mantissa = (random_bits(COUNT, 21) & np.uint64(0x7FFFFF)).astype(np.uint32)
    a = (mantissa | np.uint32(0x3F800000)).view(np.float32)  # 1 to 2
    b = (2.0**-126 / a.astype(np.float64)).astype(np.float32)
    steps = (np.arange(COUNT) % 7 - 3).astype(np.int32)
    b = np.where(np.arange(COUNT) % 2, np.float32(2.0**-126), b)
    a = np.where(np.arange(COUNT) % 2, (np.full(COUNT, 0x3F800000, np.int32) + steps - 1).view(np.float32), a)
    c = np.resize(np.array([0, 1, 0x80000001, 0x807FFFFF, 0x00800000, 0x80800000], np.uint32), COUNT)
    tiny = [("f32", a.view(np.uint32)), ("f32", b.view(np.uint32)), ("f32", c)]
    inverse = [("f32", (1 / b.astype(np.float64)).astype(np.float32).view(np.uint32))]
    for ftz, sat in product(("", ".ftz"), ("", ".sat")):
        yield lanes(f"mul.rn{ftz}{sat}.f32 near tiny", f"mul.rn{ftz}{sat}.f32 %x, %a, %b;", ["f32"], tiny[:2])
        yield lanes(f"fma.rn{ftz}{sat}.f32 near tiny", f"fma.rn{ftz}{sat}.f32 %x, %a, %b, %c;", ["f32"], tiny)
    for ftz, rounding in product(("", ".ftz"), ROUNDINGS):
        yield lanes(
            f"mul.{rounding}{ftz}.f32 at tiny", f"mul.{rounding}{ftz}.f32 %x, %a, %b;", ["f32"], tiny[:2]
        )
        text = f"div.{rounding}{ftz}.f32 %x, %b, %a;"
        yield lanes(f"div.{rounding}{ftz}.f32 near tiny", text, ["f32"], tiny[:2])
        yield lanes(
            f"rcp.{rounding}{ftz}.f32 near tiny", f"rcp.{rounding}{ftz}.f32 %x, %a;", ["f32"], inverse
        )
    for kind, first in (("f16", 0x7C00), ("bf16", 0x7F80)):
        count = 0x8000 - first
        patterns = np.concatenate([np.arange(first, 0x8000), np.arange(first, 0x8000) | 0x8000]).astype(
            np.uint16
        )
        one = np.full(2 * count, {"f16": 0x3C00, "bf16": 0x3F80}[kind], np.uint16)
        for position in range(3):
            sources = [(kind, one)] * 3
            sources[position] = (kind, patterns)
            yield lanes(
                f"fma.rn.oob.{kind} operand {position}", f"fma.rn.oob.{kind} %x, %a, %b, %c;", [kind], sources
            )


def cases():
    """Return every case of this family."""
    return [*single(), *double(), *half(), *comparisons(), *approximations(), *boundaries()]
