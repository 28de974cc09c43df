"""Narrow formats, f64 in every rounding, and the conversions that no recorded GPU has."""

from fractions import Fraction
from math import isfinite

import ml_dtypes
import numpy as np
import pytest
from programs import run_lanewise

from fa4_numba.emulator.isa.fma64 import fma64
from fa4_numba.emulator.isa.formats import FORMATS, narrow, widen

DTYPE = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def _patterns(name: str) -> np.ndarray:
    return np.arange(1 << FORMATS[name].bits, dtype=np.uint32)


@pytest.mark.parametrize("name", DTYPE)
def test_every_pattern_widens_exactly(name):
    patterns = _patterns(name)
    word = np.uint16 if FORMATS[name].bits == 16 else np.uint8
    expected = patterns.astype(word).view(DTYPE[name]).astype(np.float32)
    values = widen(patterns, FORMATS[name])
    assert np.array_equal(values, expected, equal_nan=True)
    assert np.array_equal(np.signbit(values[values == 0]), np.signbit(expected[values == 0]))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp", "rna"])
@pytest.mark.parametrize("name", FORMATS)
def test_narrowing_picks_the_right_neighbour(name, mode):
    """Between two neighbouring values, at both, in the middle, and a little beside it."""
    fmt = FORMATS[name]
    below = widen(np.arange(0, min(fmt.largest, 4000), dtype=np.uint32), fmt).astype(np.float64)
    above = widen(np.arange(1, min(fmt.largest, 4000) + 1, dtype=np.uint32), fmt).astype(np.float64)
    even = np.arange(len(below)) % 2 == 0
    for part, tie in ((0.0, None), (0.25, False), (0.5, True), (0.75, False)):
        for sign in (1.0, -1.0):
            x = sign * (below + part * (above - below))
            up = {
                "rn": even == 0 if tie else np.full(len(x), part > 0.5),
                "rna": np.full(len(x), part >= 0.5),
            }
            up |= {"rz": np.zeros(len(x), bool), "rm": np.full(len(x), part > 0 and sign < 0)}
            up |= {"rp": np.full(len(x), part > 0 and sign > 0)}
            expected = sign * np.where(up[mode], above, below)
            got = widen(narrow(x, fmt, mode), fmt)
            assert np.array_equal(got, expected.astype(np.float32)), (part, sign)


def _exact(mode: str, a: float, b: float, c: float) -> float | None:
    """Return a · b + c by rational arithmetic, or None where it is zero or too large."""
    value = Fraction(a) * Fraction(b) + Fraction(c)
    nearest = float(value) if abs(value) < Fraction(2) ** 1024 - Fraction(2) ** 969 else None
    if value == 0 or nearest is None or not isfinite(nearest):
        return None
    below = nearest if Fraction(nearest) <= value else np.nextafter(nearest, -np.inf)
    above = nearest if Fraction(nearest) >= value else np.nextafter(nearest, np.inf)
    toward_zero = below if value > 0 else above
    odd = nearest if Fraction(nearest) == value else below if np.float64(below).view(np.int64) & 1 else above
    return {"rn": nearest, "rm": below, "rp": above, "rz": toward_zero, "odd": odd}[mode]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp", "odd"])
def test_fma_of_f64_rounds_once(mode):
    rng = np.random.default_rng(3)
    count = 3000
    a, b, c = (rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count) for _ in range(3))
    c[::3] = -(a * b)[::3]  # cancellation: what is left is the rounding of the product
    scale = 2.0 ** rng.integers(-540, -480, count)
    a[1::3] *= scale[1::3]  # results among the subnormal numbers
    b[1::3] *= scale[1::3]
    c[1::3] = rng.integers(-100, 100, count)[1::3] * 2.0**-1074
    got = fma64(a, b, c, mode)
    for x, y, z, d in zip(a, b, c, got):
        expected = _exact(mode, x, y, z)
        assert expected is None or d == expected, (x.hex(), y.hex(), z.hex())


VALUES = np.array(
    [0, -0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.75, 2.5, 3.5, 5, 7, -6, 9, 100, -1000, 0.0625, 0.1, -0.3, 28, 29, 1e9, -1e9, 2**-9]
    + [7.5, 7.75, 0.125, 0.1875, 2.0**-10, 448, 57344, np.inf],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["e2m3", "e3m2", "e2m1"])
def test_pairs_of_six_and_four_bits(kind):
    """Two f32 to a packed pair, saturating, and back to f16: ml_dtypes rounds in the same way."""
    fmt = FORMATS[kind]
    largest = float(widen(np.array([fmt.largest], np.uint32), fmt)[0])
    dtype = DTYPE[kind]
    expected = np.clip(VALUES, -largest, largest).astype(dtype)
    other = expected[::-1]
    if kind == "e2m1":
        body = """.reg .b8 %q; cvt.rn.satfinite.e2m1x2.f32 %q, %a32, %b32; cvt.u32.u8 %d32, %q;"""
        packed = run_lanewise(body, VALUES, VALUES[::-1].copy()).view(np.uint32)
        assert np.array_equal(packed, expected.view(np.uint8).astype(np.uint32) << 4 | other.view(np.uint8))
        return
    body = f"cvt.rn.satfinite.{kind}x2.f32 %h1, %a32, %b32; cvt.u32.u16 %d32, %h1;"
    packed = run_lanewise(body, VALUES, VALUES[::-1].copy()).view(np.uint32)
    assert np.array_equal(packed, expected.view(np.uint8).astype(np.uint32) << 8 | other.view(np.uint8))
    body = f"cvt.rn.satfinite.{kind}x2.f32 %h1, %a32, %b32; cvt.rn.f16x2.{kind}x2 %d32, %h1;"
    halves = run_lanewise(body, VALUES, VALUES[::-1].copy()).view(np.uint16).view(np.float16).reshape(-1, 2)
    assert np.array_equal(halves, np.stack([other, expected], 1).astype(np.float16))


def test_scales_keep_the_exponent_alone():
    x = np.resize(np.array([1, 1.5, 2, 3, 0.75, 2.0**-127, 2.0**-126, 3e38], np.float32), 32)
    for mode, expected in (
        ("rz", [127, 127, 128, 128, 126, 0, 1, 254]),
        ("rp", [127, 128, 128, 129, 127, 1, 1, 254]),
    ):
        body = f"cvt.{mode}.satfinite.ue8m0x2.f32 %h1, %a32, %b32; cvt.u32.u16 %d32, %h1;"
        pair = run_lanewise(body, x, x).view(np.uint32)
        assert np.array_equal(pair & 255, np.resize(expected, 32)), mode
        assert np.array_equal(pair >> 8, np.resize(expected, 32)), mode


def test_mixed_precision_takes_two_halves_and_an_f32():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(32).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = rng.standard_normal(32).astype(np.float32)
    words = [x.view(np.uint16).astype(np.uint32).view(np.float32) for x in (a, b)]
    body = "cvt.u16.u32 %h1, %a32; cvt.u16.u32 %h2, %b32; fma.rn.f32.bf16 %d32, %h1, %h2, %c32;"
    got = run_lanewise(body, words[0], words[1], c)
    assert np.array_equal(got, (a.astype(np.float64) * b.astype(np.float64) + c).astype(np.float32))
