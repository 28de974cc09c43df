"""Integer arithmetic, logic, shifts, bit fields, comparisons."""

from itertools import product

from .case import Case, lanes
from .values import operands

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def simple(opcode: str, result, sources, extra: str = "", **options) -> Case:
    """Return the case ``opcode x, a, b, …``; ``extra`` is appended to the operands."""
    names = ", ".join(["%x", *(f"%{letter}" for letter, _ in zip("abcdefgh", sources))])
    return lanes(
        opcode + extra.replace(" ", ""),
        f"{opcode} {names}{extra};",
        [result],
        operands(sources, len(opcode)),
        **options,
    )


def arithmetic():
    """add sub min max mul mad div rem and friends."""
    for op, kind in product(("add", "sub", "min", "max", "div", "rem"), INTEGERS):
        yield simple(f"{op}.{kind}", kind, [kind] * 2)
    for op in ("add", "sub"):
        yield simple(f"{op}.sat.s32", "s32", ["s32"] * 2)
    for op, kind in product(("add", "min", "max"), ("u16x2", "s16x2")):
        yield simple(f"{op}.{kind}", kind, [kind] * 2)
    for op, kind in product(("min", "max"), ("s32", "s16x2")):
        yield simple(f"{op}.relu.{kind}", kind, [kind] * 2)
    for half, kind in product(("lo", "hi", "wide"), INTEGERS):
        if half == "wide" and kind[1:] == "64":
            continue
        result = f"{kind[0]}{int(kind[1:]) * 2}" if half == "wide" else kind
        yield simple(f"mul.{half}.{kind}", result, [kind] * 2)
        yield simple(f"mad.{half}.{kind}", result, [kind, kind, result])
    yield simple("mad.hi.sat.s32", "s32", ["s32"] * 3)
    for half, kind in product(("lo", "hi"), ("u32", "s32")):
        yield simple(f"mul24.{half}.{kind}", kind, [kind] * 2)
        yield simple(f"mad24.{half}.{kind}", kind, [kind] * 3)
    yield simple("mad24.hi.sat.s32", "s32", ["s32"] * 3)
    for kind in INTEGERS:
        yield simple(f"sad.{kind}", kind, [kind] * 3)
    for op, kind in product(("abs", "neg"), ("s16", "s32", "s64")):
        yield simple(f"{op}.{kind}", kind, [kind])
    for a, b in product(("u32", "s32"), repeat=2):
        result = "u32" if a == b == "u32" else "s32"
        yield simple(f"dp4a.{a}.{b}", result, [a, b, result])
        for half in ("lo", "hi"):
            yield simple(f"dp2a.{half}.{a}.{b}", result, [a, b, result])


def carries():
    """Extended precision: each instruction that writes the carry, followed by one that reads it."""
    kinds = ("u32", "s32", "u64", "s64")
    for (first, second), kind in product((("add.cc", "addc"), ("sub.cc", "subc")), kinds):
        text = f"{first}.{kind} %x, %a, %b; {second}.{kind} %y, %c, %d;"
        yield lanes(f"{first}+{second}.{kind}", text, [kind] * 2, operands([kind] * 4, 3))
        text = f"{first}.{kind} %x, %a, %b; {second}.cc.{kind} %y, %c, %d; {second}.{kind} %z, %a, %d;"
        yield lanes(f"{first}+{second}.cc.{kind}", text, [kind] * 3, operands([kind] * 4, 4))
    for (half, other), kind in product((("lo", "hi"), ("hi", "lo")), kinds):
        text = f"mad.{half}.cc.{kind} %x, %a, %b, %c; madc.{other}.cc.{kind} %y, %a, %b, %d; addc.{kind} %z, %c, %d;"
        yield lanes(f"mad.{half}.cc+madc.{other}.{kind}", text, [kind] * 3, operands([kind] * 4, 5))


def logic():
    """and or xor not cnot lop3, shifts, funnel shifts, byte permutation."""
    for op, kind in product(("and", "or", "xor"), ("b16", "b32", "b64", "pred")):
        yield simple(f"{op}.{kind}", kind, [kind] * 2)
    for kind in ("b16", "b32", "b64", "pred"):
        yield simple(f"not.{kind}", kind, [kind])
    for kind in ("b16", "b32", "b64"):
        yield simple(f"cnot.{kind}", kind, [kind])
    for table in (0x00, 0x01, 0x1A, 0x80, 0xCA, 0xE8, 0x96, 0xFE, 0xFF):
        yield simple("lop3.b32", "b32", ["b32"] * 3, f", {table}")
    for op in ("or", "and"):
        text = f"lop3.{op}.b32 %x|%y, %a, %b, %c, 0xCA, %d;"
        yield lanes(f"lop3.{op}.b32", text, ["b32", "pred"], operands(["b32", "b32", "b32", "pred"], 6))
    for kind in ("b16", "b32", "b64"):
        yield simple(f"shl.{kind}", kind, [kind, "u32"])
    for kind in (*INTEGERS, "b16", "b32", "b64"):
        yield simple(f"shr.{kind}", kind, [kind, "u32"])
    for side, mode in product("lr", ("clamp", "wrap")):
        yield simple(f"shf.{side}.{mode}.b32", "b32", ["b32", "b32", "u32"])
    yield simple("prmt.b32", "b32", ["b32"] * 3)
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield simple(f"prmt.b32.{mode}", "b32", ["b32"] * 3)


def bits():
    """Counting, finding, extracting and inserting bits."""
    for op, kind in product(("popc", "clz"), ("b32", "b64")):
        yield simple(f"{op}.{kind}", "u32", [kind])
    for shift, kind in product(("", ".shiftamt"), ("u32", "s32", "u64", "s64")):
        yield simple(f"bfind{shift}.{kind}", "u32", [kind])
    for kind in ("b32", "b64"):
        yield simple(f"brev.{kind}", kind, [kind])
        yield simple(f"bfi.{kind}", kind, [kind, kind, "u32", "u32"])
    for kind in ("u32", "s32", "u64", "s64"):
        yield simple(f"bfe.{kind}", kind, [kind, "u32", "u32"])
    for mode in ("clamp", "wrap"):
        yield simple(f"bmsk.{mode}.b32", "b32", ["u32", "u32"])
        for kind in ("u32", "s32"):
            yield simple(f"szext.{mode}.{kind}", kind, [kind, "u32"])
    small = "and.b32 %b, %b, 31; and.b32 %c, %c, 15; sub.s32 %c, %c, 7;"
    yield lanes("fns.b32", f"{small} fns.b32 %x, %a, %b, %c;", ["b32"], operands(["b32", "b32", "s32"], 8))


def comparisons():
    """setp, set, selp, slct on integers."""
    for name, kind in product(COMPARE, (*INTEGERS, "b16", "b32", "b64")):
        if kind[0] == "b" and name not in ("eq", "ne"):
            continue
        yield simple(f"setp.{name}.{kind}", "pred", [kind] * 2)
    for name, kind in product(("lo", "ls", "hi", "hs"), ("u16", "u32", "u64")):
        yield simple(f"setp.{name}.{kind}", "pred", [kind] * 2)
    for combine, invert in product(("and", "or", "xor"), ("", "!")):
        text = f"setp.lt.{combine}.s32 %x|%y, %a, %b, {invert}%c;"
        yield lanes(f"setp.lt.{combine}.s32{invert}", text, ["pred"] * 2, operands(["s32", "s32", "pred"], 9))
    for name, result, kind in product(("eq", "lt", "ge"), ("u32", "s32", "f32"), ("u16", "s32", "u64")):
        yield simple(f"set.{name}.{result}.{kind}", result, [kind] * 2)
    text = "set.gt.and.u32.s32 %x, %a, %b, !%c;"
    yield lanes("set.gt.and.u32.s32", text, ["u32"], operands(["s32", "s32", "pred"], 10))
    for kind in ("b16", "b32", "b64", "f32", "f64"):
        yield simple(f"selp.{kind}", kind, [kind, kind, "pred"])
    for kind, by in product(("b16", "u32", "s64", "f32", "f64"), ("s32", "f32")):
        yield simple(f"slct.{kind}.{by}", kind, [kind, kind, by])
    yield simple("slct.ftz.f32.f32", "f32", ["f32"] * 3)


def cases():
    """Return every case of this family."""
    return [*arithmetic(), *carries(), *logic(), *bits(), *comparisons()]
