"""Tracing numpy functions into LLVM: a :class:`Value` stands for an array and records what is done to it.

A description such as ``lambda a, b: np.where(a == b, a & b, np.fmax(a, b))`` is called with values instead of arrays;
every ufunc, operator, ``np.where``, ``.astype`` and ``.view`` writes one LLVM instruction on a vector of lanes.
"""

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..isa.rounding import CANONICAL_NAN
from ..isa.types import BF16

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
UFUNCS: dict = {}  # name → function of (trace, values), filled by ``ufuncs``
U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
FLOATS = {np.dtype(np.float16): "half", F32: "float", F64: "double"}


class NotTraceable(Exception):
    """The function uses what LLVM code cannot be made of here: the interpreter has to run it."""


class Trace:
    """LLVM instructions of one function, on vectors of ``lanes`` elements."""

    def __init__(self, lanes: int, flushing: bool):
        self.lanes, self.flushing = lanes, flushing
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}
        self._names = 0

    def emit(self, text: str) -> str:
        """Append an instruction; return the name of its result."""
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def element(self, dtype) -> str:
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return "i1"
        return FLOATS.get(dtype) or f"i{8 * dtype.itemsize}"

    def type(self, dtype) -> str:
        return f"<{self.lanes} x {self.element(dtype)}>"

    def splat(self, element: str, text: str) -> str:
        return "<" + ", ".join([f"{element} {text}"] * self.lanes) + ">"

    def constant(self, value, dtype) -> "Value":
        """Return a value whose lanes are all ``value``."""
        result = self._constant(value, np.dtype(dtype))
        result.known = True
        return result

    def _constant(self, value, dtype) -> "Value":
        if dtype.kind == "b":
            return Value(self, dtype, self.splat("i1", "true" if value else "false"))
        scalar = np.asarray(value).astype(dtype)
        if dtype in FLOATS:
            bits = int(scalar.astype(F64).view(np.uint64))
            if np.isnan(scalar):  # a NaN's own bits
                word = np.dtype(f"u{dtype.itemsize}")
                return self.constant(scalar.view(word), word).view(dtype)
            text = f"0x{bits:016X}"
            if dtype.itemsize == 2:
                text = f"0xH{int(scalar.view(np.uint16)):04X}"
            return Value(self, dtype, self.splat(FLOATS[dtype], text))
        word = scalar.view(np.dtype(f"u{dtype.itemsize}"))
        return Value(self, dtype, self.splat(self.element(dtype), str(int(word))))

    def call(self, intrinsic: str, dtype, *values: "Value") -> "Value":
        """Call an intrinsic whose operands and result have one type."""
        kind = self.type(dtype)
        name = f"@llvm.{intrinsic}.v{self.lanes}{_suffix(np.dtype(dtype))}"
        self.declarations.add(f"declare {kind} {name}({', '.join([kind] * len(values))})")
        arguments = ", ".join(f"{kind} {v.name}" for v in values)
        return Value(self, dtype, self.emit(f"call {kind} {name}({arguments})"))

    def call_once_compiled(self, name: str, body, argument: "Value") -> "Value":
        """Call a function of one value that is compiled once, however often it is used."""
        kind, name = self.type(argument.dtype), f"{name}.flushing{int(self.flushing)}"
        if name not in self.functions:
            inner = Trace(self.lanes, self.flushing)
            result = body(inner, Value(inner, argument.dtype, "%x"))
            lines = "\n".join(inner.lines)
            attribute = f"#{int(self.flushing)}"
            self.functions[name] = (
                f"define internal {kind} @{name}({kind} %x) {attribute} {{\n{lines}\n  ret {kind} {result.name}\n}}\n"
            )
            self.declarations |= inner.declarations
        return Value(self, argument.dtype, self.emit(f"call {kind} @{name}({kind} {argument.name})"))


def _suffix(dtype) -> str:
    return f"{'f' if dtype in FLOATS else 'i'}{8 * dtype.itemsize}"


class Value(NDArrayOperatorsMixin):
    """A vector of lanes in a trace. 64-bit integers may be kept as (low, high) halves of 32 bits.

    ``nan``: a NaN may not be the canonical one yet; that matters only where its bits are looked at. ``known``: made of
    constants, so that LLVM computes it when it compiles, in no flush mode.
    """

    def __init__(self, trace: Trace, dtype, name: str | None, halves=None, nan: bool = False):
        self.trace, self.dtype, self._name, self._halves, self.nan = trace, np.dtype(dtype), name, halves, nan
        self.known = False

    # -- representation -------------------------------------------------------------------
    @property
    def name(self) -> str:
        if self._name is None:
            low, high = (half.astype(U64).name for half in self._halves)
            kind = self.trace.type(U64)
            up = self.trace.emit(f"shl {kind} {high}, {self.trace.splat('i64', '32')}")
            self._name = self.trace.emit(f"or {kind} {up}, {low}")
        return self._name

    @property
    def halves(self) -> tuple["Value", "Value"]:
        if self._halves is None:
            t, name = self.trace, self.name
            wide = f"<{2 * t.lanes} x i32>"
            both = t.emit(f"bitcast {t.type(U64)} {name} to {wide}")
            picks = [", ".join(f"i32 {2 * i + k}" for i in range(t.lanes)) for k in (0, 1)]
            shuffle = lambda mask: t.emit(
                f"shufflevector {wide} {both}, {wide} poison, <{t.lanes} x i32> <{mask}>"
            )
            self._halves = tuple(Value(t, U32, shuffle(mask)) for mask in picks)
        return self._halves

    @property
    def is_split(self) -> bool:
        return self._halves is not None

    def with_name(self, dtype, text: str) -> "Value":
        return Value(self.trace, dtype, self.trace.emit(text))

    # -- what arrays can do ------------------------------------------------------------------
    def view(self, dtype) -> "Value":
        """Reinterpret the bits."""
        return self._as_known(self._view(dtype), self)

    def _as_known(self, result: "Value", *sources) -> "Value":
        if result is not self:
            result.known = all(s.known for s in sources if isinstance(s, Value))
        return result

    def _view(self, dtype) -> "Value":
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype.itemsize != self.dtype.itemsize:
            raise NotTraceable(f"a view of {self.dtype} as {dtype}")
        value = self.settled()
        source, target = self.trace.element(self.dtype), self.trace.element(dtype)
        if source == target:
            return Value(self.trace, dtype, value._name, value._halves)
        kinds = f"{self.trace.type(self.dtype)} {value.name} to {self.trace.type(dtype)}"
        return self.with_name(dtype, f"bitcast {kinds}")

    def astype(self, dtype) -> "Value":
        """Convert lane by lane, as numpy does."""
        return self._as_known(self._astype(dtype), self)

    def _astype(self, dtype) -> "Value":
        dtype, t = np.dtype(dtype), self.trace
        if dtype == self.dtype:
            return self
        if BF16 in (dtype, self.dtype) or "fp8" in str(dtype) or "float8" in str(dtype):
            raise NotTraceable(f"{self.dtype} to {dtype}")
        if self.dtype.kind in "iu" and self.dtype.itemsize == 8:
            if dtype.kind in "iu" and dtype.itemsize == 4 and self.is_split:
                return Value(t, dtype, self._halves[0].name)
            if dtype.kind in "iu" and dtype.itemsize == 8:
                return Value(t, dtype, self._name, self._halves)
        how = _conversion(self.dtype, dtype)
        if how is None:
            return Value(t, dtype, self.name)
        return self.with_name(dtype, f"{how} {t.type(self.dtype)} {self.name} to {t.type(dtype)}")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        emit = UFUNCS.get(ufunc.__name__)
        if emit is None or method != "__call__" or options:
            raise NotTraceable(ufunc.__name__)
        return self._as_known(emit(self.trace, *_alike(self.trace, inputs)), *inputs)

    def __array_function__(self, function, types, args, kwargs):
        if function is not np.where or kwargs:
            raise NotTraceable(function.__name__)
        condition, a, b = args
        result = select(self.trace, condition, *_alike(self.trace, (a, b)))
        return self._as_known(result, condition, a, b)

    # -- what the helpers of ``isa`` ask for ----------------------------------------------------
    def flush(self) -> "Value":
        """Subnormals become zeros: the CPU's mode does it, or the bits are looked at."""
        if self.trace.flushing and not self.known:
            return self
        bits = self.view(U32)
        exponent = bits & np.uint32(0x7F800000)
        kept = select(self.trace, exponent != np.uint32(0), bits, bits & np.uint32(0x80000000))
        return kept.view(F32)

    def canonical(self) -> "Value":
        return self._as_known(Value(self.trace, self.dtype, self._name, self._halves, nan=True), self)

    def settled(self) -> "Value":
        """The value with canonical NaNs."""
        if not self.nan:
            return self
        word = np.dtype(f"u{self.dtype.itemsize}")
        quiet = self.trace.constant(CANONICAL_NAN[self.dtype], word)
        kind = f"{self.trace.type(self.dtype)} {self.name} to {self.trace.type(word)}"
        bits = self.with_name(word, f"bitcast {kind}")
        bits = select(self.trace, np.isnan(self), quiet, bits)
        back = f"{self.trace.type(word)} {bits.name} to {self.trace.type(self.dtype)}"
        self._name, self.nan = self.trace.emit(f"bitcast {back}"), False
        return self

    def fma(self, b, c) -> "Value":
        values = _alike(self.trace, (self, b, c))
        return self._as_known(self.trace.call("fma", self.dtype, *values), *values)

    def join(self, others, whole) -> "Value":
        """Put narrower parts together, this one lowest."""
        parts, whole = [self, *others], np.dtype(whole)
        size = whole.itemsize // len(parts)
        if size == 4 and len(parts) == 2:
            return Value(self.trace, whole, None, tuple(p.view(U32) for p in parts))
        if whole.itemsize == 8 and size == 2:
            return parts[0].join(parts[1:2], U32).join([parts[2].join(parts[3:], U32)], whole)
        if whole.itemsize > 8:
            raise NotTraceable("128-bit registers")
        result = parts[0].astype(whole)
        for i, part in enumerate(parts[1:], 1):
            result = result | part.astype(whole) << whole.type(8 * size * i)
        return result

    def split(self, part) -> tuple:
        """Take apart, the lowest bits first."""
        part = np.dtype(part)
        if self.dtype.itemsize == 8 and part.itemsize == 4:
            return tuple(half.view(part) for half in self.halves)
        if self.dtype.itemsize == 8:
            return tuple(piece for half in self.halves for piece in half.split(part))
        if self.dtype.itemsize > 8:
            raise NotTraceable("128-bit registers")
        size = part.itemsize
        return tuple(
            (self >> self.dtype.type(8 * i)).astype(part) for i in range(0, self.dtype.itemsize, size)
        )


def _conversion(source, target) -> str | None:
    floats = source in FLOATS, target in FLOATS
    if all(floats):
        return "fpext" if target.itemsize > source.itemsize else "fptrunc"
    if floats[0]:
        return "fptosi" if target.kind == "i" else "fptoui"
    if floats[1]:
        return "sitofp" if source.kind == "i" else "uitofp"
    if source.kind == "b":
        return "zext"
    if target.itemsize == source.itemsize:
        return None
    return "trunc" if target.itemsize < source.itemsize else "sext" if source.kind == "i" else "zext"


def _alike(trace: Trace, inputs) -> list[Value]:
    """Return the inputs as values of one type: numbers take the type of the values."""
    dtypes = [x.dtype for x in inputs if isinstance(x, Value)]
    dtypes += [x.dtype for x in inputs if isinstance(x, np.generic | np.ndarray)] if not dtypes else []
    common = np.result_type(*dtypes)
    return [x.astype(common) if isinstance(x, Value) else trace.constant(x, common) for x in inputs]


def select(trace: Trace, condition, a: Value, b: Value) -> Value:
    """Lane by lane: a where the condition holds, else b."""
    if not isinstance(condition, Value):
        condition = trace.constant(condition, np.bool_)
    elif condition.dtype != np.bool_:
        condition = condition != condition.dtype.type(0)
    if a.is_split and b.is_split:
        halves = [select(trace, condition, x, y) for x, y in zip(a.halves, b.halves)]
        return Value(trace, a.dtype, None, tuple(halves))
    kind, mask = trace.type(a.dtype), f"{trace.type(np.bool_)} {condition.name}"
    name = trace.emit(f"select {mask}, {kind} {a.name}, {kind} {b.name}")
    return Value(trace, a.dtype, name, nan=a.nan or b.nan)
