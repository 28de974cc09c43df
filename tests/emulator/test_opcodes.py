"""Opcodes against independent arithmetic: exact fractions, Python integers, edge values."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import run_lanewise

F32 = np.float32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1.1e-38, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan], F32
)
A = np.resize(SPECIAL, 32).astype(F32)
B = np.resize(np.roll(SPECIAL, 5), 32).astype(F32)
C = np.resize(np.roll(SPECIAL, 3), 32).astype(F32)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    nan = np.isnan(got) & np.isnan(want)
    bad = ~nan & (got.view(np.uint32) != want.view(np.uint32))
    assert not bad.any(), (np.flatnonzero(bad), got[bad], want[bad])


def ftz(x):
    return np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x).astype(F32)


@pytest.mark.parametrize("op, function", [("add", np.add), ("sub", np.subtract), ("mul", np.multiply)])
def test_float_arithmetic_with_and_without_flushing(op, function):
    with np.errstate(all="ignore"):
        same(run_lanewise(f"{op}.rn.f32 %d32, %a32, %b32;", A, B), function(A, B))
        same(run_lanewise(f"{op}.rn.ftz.f32 %d32, %a32, %b32;", A, B), ftz(function(ftz(A), ftz(B))))


def round_to_f32(value: Fraction, toward=None) -> np.float32:
    """Round an exact value to f32: to nearest even, or toward -inf."""
    if value == 0:
        return F32(0)
    near = F32(float(value))  # double rounding, corrected by looking at the neighbours
    candidates = [np.nextafter(near, F32(-np.inf)), near, np.nextafter(near, F32(np.inf))]
    candidates = [c for c in candidates if np.isfinite(c)]
    if toward == "down":
        return max(c for c in candidates if Fraction(float(c)) <= value)
    distance = lambda c: abs(Fraction(float(c)) - value)
    best = min(map(distance, candidates))
    nearest = [c for c in candidates if distance(c) == best]
    return next((c for c in nearest if not c.view(np.uint32) & 1), nearest[0])


small = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(small, small, small), min_size=32, max_size=32))
def test_fma_rounds_once(rows):
    a, b, c = (np.array(x, F32) for x in zip(*rows))
    want = [
        round_to_f32(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c)
    ]
    got = run_lanewise("fma.rn.f32 %d32, %a32, %b32, %c32;", a, b, c)
    assert (got == np.array(want, F32)).all(), (a[got != want], b[got != want], c[got != want])


def test_fma_at_a_tie_that_double_rounding_gets_wrong():
    a, b = F32(1 + 2.0**-12), F32(1 + 2.0**-12)
    c = F32(2.0**-77)
    want = round_to_f32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
    got = run_lanewise("fma.rn.f32 %d32, %a32, %b32, %c32;", np.full(32, a), np.full(32, b), np.full(32, c))
    assert (got == want).all()
    assert F32(np.float64(a) * np.float64(b) + np.float64(c)) != want  # the naive way is wrong here


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(small, small), min_size=32, max_size=32))
def test_packed_add_rounds_down_exactly(rows):
    a, b = (np.array(x, F32) for x in zip(*rows))
    body = """mov.b64 %a, {%a32, %b32}; mov.b64 %b, {%b32, %a32}; add.rm.ftz.f32x2 %d, %a, %b; mov.b64 {%d32, %hi}, %d;"""
    got = run_lanewise(body, a, b)
    want = ftz(
        np.array(
            [round_to_f32(Fraction(float(x)) + Fraction(float(y)), "down") for x, y in zip(ftz(a), ftz(b))]
        )
    )
    assert (got == want).all(), (a[got != want], b[got != want])


def test_maximum_treats_nan_as_told():
    same(run_lanewise("max.f32 %d32, %a32, %b32;", A, B), np.fmax(A, B))
    same(run_lanewise("max.NaN.f32 %d32, %a32, %b32;", A, B), np.maximum(A, B))
    same(run_lanewise("max.NaN.f32 %d32, %a32, %b32, %c32;", A, B, C), np.maximum(np.maximum(A, B), C))
    same(run_lanewise("min.f32 %d32, %a32, %b32;", A, B), np.fmin(A, B))


def test_packed_halves_keep_their_order():
    body = "mov.b64 %a, {%a32, %b32}; mov.b64 %b, {%c32, %c32}; mul.rn.ftz.f32x2 %d, %a, %b;"
    a, b, c = (np.arange(32, dtype=F32) + k for k in (1, 100, 2))
    halves = run_lanewise(body, a, b, c, wide=True).view(F32).reshape(32, 2)
    assert (halves[:, 0] == a * c).all() and (halves[:, 1] == b * c).all()


@pytest.mark.parametrize("kind, dtype", [("bf16x2", ml_dtypes.bfloat16), ("f16x2", np.float16)])
def test_conversion_to_pairs_rounds_to_nearest_even(kind, dtype):
    a = np.concatenate([SPECIAL, np.linspace(-3, 3, 20, dtype=F32)])
    b = np.roll(a, 1)
    with np.errstate(all="ignore"):
        got = run_lanewise(f"cvt.rn.{kind}.f32 %d32, %a32, %b32;", a, b).view(np.uint32)
        high, low = (x.astype(dtype).astype(F32) for x in (a, b))
    halves = np.ascontiguousarray(got).view(dtype).reshape(32, 2).astype(F32)
    same(halves[:, 1], high)
    same(halves[:, 0], low)


def test_exp2_is_within_an_ulp():
    x = np.linspace(-140, 20, 32).astype(F32)
    got = run_lanewise("ex2.approx.ftz.f32 %d32, %a32;", x).astype(np.float64)
    want = np.exp2(x.astype(np.float64))
    want = np.where(want < 2.0**-126, 0, want)
    assert (np.abs(got - want) <= want * 2.0**-23).all()
    assert run_lanewise("ex2.approx.ftz.f32 %d32, %a32;", np.full(32, -np.inf, F32))[0] == 0


word = st.integers(0, 2**32 - 1)


def s32(x):
    return x - (1 << 32) if x >> 31 else x


INTEGER = {
    "add.s32": lambda a, b, c: a + b,
    "sub.s32": lambda a, b, c: a - b,
    "mul.lo.s32": lambda a, b, c: a * b,
    "mul.hi.u32": lambda a, b, c: a * b >> 32,
    "mul.hi.s32": lambda a, b, c: s32(a) * s32(b) >> 32,
    "and.b32": lambda a, b, c: a & b,
    "or.b32": lambda a, b, c: a | b,
    "xor.b32": lambda a, b, c: a ^ b,
    "min.s32": lambda a, b, c: min(s32(a), s32(b)),
    "max.s32": lambda a, b, c: max(s32(a), s32(b)),
    "shl.b32": lambda a, b, c: a << b if b < 32 else 0,
    "shr.u32": lambda a, b, c: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b, c: s32(a) >> min(b, 31),
    "div.u32": lambda a, b, c: a // b if b else 0xFFFFFFFF,
    "rem.u32": lambda a, b, c: a % b if b else 0xFFFFFFFF,  # as recorded on silicon
}
TERNARY = {
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "shf.l.wrap.b32": lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    "shf.r.clamp.b32": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "lop3.b32": lambda a, b, c: (a & b) | (~a & c),
    "bfe.u32": lambda a, b, c: a >> (b & 255) & ((1 << (c & 255)) - 1),
}


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("op", [*INTEGER, *TERNARY])
@given(
    rows=st.lists(
        st.tuples(word, st.one_of(word, st.integers(0, 40)), st.one_of(word, st.integers(0, 40))),
        min_size=32,
        max_size=32,
    )
)
def test_integer_operations(op, rows):
    a, b, c = (np.array(x, np.uint32) for x in zip(*rows))
    operands = "%a32, %b32" if op in INTEGER else "%a32, %b32, %c32"
    extra = ", 0xCA" if op == "lop3.b32" else ""
    got = run_lanewise(f"{op} %d32, {operands}{extra};", a, b, c)
    function = INTEGER.get(op) or TERNARY[op]
    want = np.array([function(*row) & 0xFFFFFFFF for row in rows], np.uint64)
    assert (got.astype(np.uint64) == want).all(), (op, a, b, c)


def test_comparisons_with_nan():
    for name, want in {
        "eq": A == B, "ne": (A != B) & ~np.isnan(A) & ~np.isnan(B), "lt": A < B, "neu": (A != B),
        "ltu": (A < B) | np.isnan(A) | np.isnan(B), "nan": np.isnan(A) | np.isnan(B),
    }.items():  # fmt: skip
        got = run_lanewise(f"setp.{name}.f32 %p1, %a32, %b32; selp.b32 %d32, 1, 0, %p1;", A, B).view(
            np.uint32
        )
        assert (got.astype(bool) == want).all(), name


def test_wide_products_and_conversions():
    a = np.array([0, 1, 0xFFFFFFFF, 0x80000000] * 8, np.uint32)
    wide = run_lanewise("mul.wide.s32 %d, %a32, %a32;", a, wide=True)
    assert wide.tolist() == [(s32(int(x)) ** 2) & (2**64 - 1) for x in a]
    signed = run_lanewise("cvt.s64.s32 %d, %a32;", a, wide=True)
    assert signed.tolist() == [s32(int(x)) & (2**64 - 1) for x in a]
