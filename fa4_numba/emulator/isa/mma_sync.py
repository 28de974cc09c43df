"""mma.sync: a warp multiplies matrices that its lanes hold in registers, D = A·B + C."""

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from .accumulate import multiply, multiply_f64, multiply_integers
from .fma64 import fma64
from .matrix_fragments import factor_places, sum_places
from .registry import effect, vector_items
from .tensor_core import whole_warp

DTYPE = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
_SHAPES = {  # element type → shapes with a layout of eight rows per group of lanes
    "f16": ("m16n8k8", "m16n8k16"), "bf16": ("m16n8k8", "m16n8k16"), "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), "e4m3": ("m16n8k16", "m16n8k32"),
    "e5m2": ("m16n8k16", "m16n8k32"), "s8": ("m8n8k16", "m16n8k16", "m16n8k32"), "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """Shape and types of an instruction."""

    m: int
    k: int
    d: str
    a: str
    b: str


def _form(ins) -> Form:
    kinds = [p for p in ins.parts if p in DTYPE]
    shape = next((p for p in ins.parts if re.fullmatch(r"m\d+n\d+k\d+", p)), "")
    if len(kinds) != 4 or ins.parts[1] != "sync" or shape not in _SHAPES.get(kinds[1], ()):
        raise ValueError(
            "only dense multiplies of f16, bf16, tf32, f64, e4m3, e5m2, s8 and u8 in the shapes of sm_80 and later"
        )
    m, _, k = map(int, re.findall(r"\d+", shape))
    return Form(m, k, *kinds[:3])


@effect("mma")
def mma(warp, ins):
    """D = A·B + C; A is row-major, B column-major, each in the fragment layout of its shape."""
    form = _form(ins)
    registers = [[warp.row(r) for r in vector_items(operand)] for operand in ins.args[:4]]
    d, a, b, c = registers
    left = _Factor(a, form.a, form.m, form.k)
    right = _Factor(b, form.b, 8, form.k)
    result = _Sum(d, c, form.d, form.m)
    saturate = ins.has("satfinite")

    def run():
        whole_warp(warp, ins)
        result.write(product(form, left.read(), right.read(), result.read(), saturate))

    return run


class _Factor:
    """A or B in registers: lanes hold words of elements that follow each other along K."""

    def __init__(self, rows, kind: str, height: int, depth: int):
        self.registers, self.kind = rows, kind
        self.places = factor_places(len(rows), height)
        self.words = np.empty(
            (height, depth * np.dtype(DTYPE[kind]).itemsize // rows[0].itemsize), rows[0].dtype
        )

    def read(self) -> np.ndarray:
        for register, place in zip(self.registers, self.places):
            self.words[place] = register
        return elements(self.words, self.kind)


def elements(words: np.ndarray, kind: str) -> np.ndarray:
    """Return the values of words of elements: f64, or integers."""
    if kind == "tf32":
        words = words & np.uint32(0xFFFFE000)
    values = words.view(DTYPE[kind])
    return values if kind in ("s8", "u8") else values.astype(np.float64)


class _Sum:
    """C and D in registers: two elements side by side."""

    def __init__(self, targets, sources, kind: str, height: int):
        self.targets, self.sources, self.dtype = targets, sources, np.dtype(DTYPE[kind])
        self.each = targets[0].itemsize // self.dtype.itemsize
        self.places = sum_places(len(targets), self.each)
        self.shape = (height, 8)

    def read(self) -> np.ndarray:
        matrix = np.empty(self.shape, self.dtype)
        for i, source in enumerate(self.sources):
            for e in range(self.each):
                matrix[self.places[i * self.each + e]] = source.view(self.dtype)[e :: self.each]
        return matrix

    def write(self, matrix: np.ndarray) -> None:
        for i, target in enumerate(self.targets):
            for e in range(self.each):
                target.view(self.dtype)[e :: self.each] = matrix[self.places[i * self.each + e]]


def product(form: Form, a, b, c, saturate: bool) -> np.ndarray:
    """Return A·Bᵀ + C."""
    if form.d == "s32":
        return multiply_integers(a, b, c, saturate)
    if form.d == "f64":
        return multiply_f64(a, b, c, fma64)
    if form.a in ("e4m3", "e5m2"):
        return _as_f16(form, a, b, c)
    return multiply(a, b, c, (form.a, form.b))


def _as_f16(form: Form, a, b, c) -> np.ndarray:
    """8-bit floats become f16 first: two multiplies, of the lower and of the upper two of every four elements along K.

    C is added at the end, with a rounding of its own.
    """
    k, total = np.arange(form.k), np.zeros_like(c)
    for half in (k % 4 < 2, k % 4 >= 2):
        total = multiply(a[:, half], b[:, half], total, ("f16", "f16"))
    with np.errstate(all="ignore"):
        total = total + c
    nan = np.array(0x7FFF if c.dtype == np.float16 else 0x7FFFFFFF, f"u{c.itemsize}").view(c.dtype)
    return np.where(np.isnan(total), nan, total)
