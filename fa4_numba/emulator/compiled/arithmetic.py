"""One LLVM function per run of lane-wise instructions: a loop over groups of lanes around the traced descriptions."""

import numpy as np

from ..isa.registry import Alu
from ..machine.program import Piece, special_name
from ..machine.state import LANES, StateLayout
from ..machine.warp import constant
from ..ptx.module import Imm, Memory, Not, Pair, Reg, Vector
from . import ufuncs  # noqa: F401  (fills the tracer's table)
from .tracer import U32, U64, Trace, Value, select

WORD = {1: np.dtype(np.bool_), 16: np.dtype(np.uint16), 32: U32, 64: U64}


def registers_in(operand) -> list[Reg]:
    """Return all registers of an operand."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Not):
        return [operand.register]
    if isinstance(operand, Vector):
        return [r for item in operand.items for r in registers_in(item)]
    if isinstance(operand, Pair):
        return registers_in(operand.first) + registers_in(operand.second)
    if isinstance(operand, Memory):
        return registers_in(operand.base) + registers_in(operand.coordinates)
    return []


def _reads(ins) -> list[Reg]:
    read = [r for operand, _ in ins.alu.src for r in registers_in(operand)]
    if ins.guard is not None:  # lanes without the predicate keep the old value
        read += [ins.guard, *_writes(ins)]
    return read


def _writes(ins) -> list[Reg]:
    return [operand for operand, _ in ins.alu.dst if isinstance(operand, Reg)]


def read_elsewhere(pieces: list[Piece]) -> set[tuple[int, int]]:
    """Return the registers that some piece reads before it writes them: only those must be stored."""
    needed = set()
    for piece in pieces:
        written = set()
        for ins in piece.instructions:
            read = _reads(ins) if piece.kind == "alu" else [r for a in ins.args for r in registers_in(a)]
            if piece.kind != "alu" and ins.guard is not None:
                read.append(ins.guard)
            needed |= {(r.width, r.index) for r in read} - written
            if piece.kind == "alu":
                written |= {(r.width, r.index) for r in _writes(ins)}
    return needed


def wants_flush_mode(piece: Piece, available: bool) -> bool:
    """Whether the piece's f32 arithmetic is all ``.ftz``, so that the CPU's flush mode can do it."""
    modes = {ins.alu.flushes for ins in piece.instructions} - {None}
    return available and modes == {True}


class PieceCompiler:
    """Writes the function of one piece."""

    def __init__(self, name: str, layout: StateLayout, lanes: int, flushing: bool):
        self.name, self.layout = name, layout
        self.trace = Trace(lanes, flushing)
        self.values: dict[tuple[int, int], Value] = {}
        self.written: dict[tuple[int, int], None] = {}

    def compile(self, instructions, needed: set) -> str:
        """Return the function's text; ``needed``: registers to store at the end."""
        mask = Value(self.trace, WORD[1], "%mask")
        for ins in instructions:
            self._instruction(ins)
        for key in self.written:
            if key in needed:
                self._store(key, mask)
        return self._function()

    def _instruction(self, ins) -> None:
        op: Alu = ins.alu
        sources = [self._source(operand, U64 if op.pairs else dtype) for operand, dtype in op.src]
        if op.pairs:
            halves = [op.function(*(s.halves[k].view(np.float32) for s in sources)).view(U32) for k in (0, 1)]
            results = (Value(self.trace, U64, None, tuple(halves)),)
        else:
            results = op.function(*sources)
            results = (results,) if len(op.dst) == 1 else results
        guard = None if ins.guard is None else self._register(ins.guard)
        for (operand, _), result in zip(op.dst, results):
            if isinstance(operand, Reg):
                self._assign(operand, result, guard, ins.negate)

    def _assign(self, register: Reg, result: Value, guard, negate: bool) -> None:
        word = WORD[register.width]
        result = result if result.dtype == word else result.view(word)
        if guard is not None:
            old = self._register(register)
            new, old = (old, result) if negate else (result, old)
            result = select(self.trace, guard, new, old)
        key = register.width, register.index
        self.values[key], self.written[key] = result, None

    # -- operands ----------------------------------------------------------------------------
    def _source(self, operand, dtype) -> Value:
        dtype = np.dtype(dtype)
        if isinstance(operand, Reg):
            value = self._register(operand)
            if value.dtype.itemsize > dtype.itemsize:
                value = value.astype(np.dtype(f"u{dtype.itemsize}"))
            return value if dtype == value.dtype else value.view(dtype)
        if isinstance(operand, Imm):
            return self.trace.constant(constant(operand.value, dtype), dtype)
        return self._load(self.layout.special(special_name(operand)), U64).astype(dtype)

    def _register(self, register: Reg) -> Value:
        key = register.width, register.index
        if key not in self.values:
            self.values[key] = self._load(self.layout.register(*key), WORD[register.width])
        return self.values[key]

    # -- memory --------------------------------------------------------------------------------
    def _pointer(self, offset: int, dtype) -> str:
        return self.trace.emit(f"getelementptr i8, ptr %p{dtype.itemsize}, i64 {offset}")

    def _load(self, offset: int, dtype) -> Value:
        t, pointer = self.trace, self._pointer(offset, dtype)
        if dtype == np.bool_:
            raw = t.emit(f"load <{t.lanes} x i8>, ptr {pointer}, align 1")
            return Value(t, dtype, t.emit(f"icmp ne <{t.lanes} x i8> {raw}, zeroinitializer"))
        return Value(t, dtype, t.emit(f"load {t.type(dtype)}, ptr {pointer}, align {dtype.itemsize}"))

    def _store(self, key, mask: Value) -> None:
        t, dtype = self.trace, WORD[key[0]]
        value, offset = self.values[key], self.layout.register(*key)
        old = self._load(offset, dtype)
        pointer = self._pointer(offset, dtype)
        if value.is_split:
            value = self._interleaved(value)
        value = select(t, mask, value, old)
        kind, name = t.type(dtype), value.name
        if dtype == np.bool_:
            kind = f"<{t.lanes} x i8>"
            name = t.emit(f"zext {t.type(dtype)} {name} to {kind}")
        t.lines.append(f"  store {kind} {name}, ptr {pointer}, align {dtype.itemsize}")

    def _interleaved(self, value: Value) -> Value:
        """Return a value kept in halves as one vector."""
        t = self.trace
        low, high = value.halves
        order = ", ".join(f"i32 {i}, i32 {i + t.lanes}" for i in range(t.lanes))
        half = f"<{t.lanes} x i32>"
        both = t.emit(f"shufflevector {half} {low.name}, {half} {high.name}, <{2 * t.lanes} x i32> <{order}>")
        return Value(t, U64, t.emit(f"bitcast <{2 * t.lanes} x i32> {both} to {t.type(U64)}"))

    def _function(self) -> str:
        t = self.trace
        lines, group = "\n".join(t.lines), f"<{t.lanes} x i8>"
        attribute = "#1" if t.flushing else "#0"
        return f"""
define internal void @{self.name}(ptr noalias %base) {attribute} {{
entry:
  br label %loop
loop:
  %l = phi i64 [0, %entry], [%next, %step]
  %l2 = shl i64 %l, 1
  %l4 = shl i64 %l, 2
  %l8 = shl i64 %l, 3
  %p1 = getelementptr i8, ptr %base, i64 %l
  %p2 = getelementptr i8, ptr %base, i64 %l2
  %p4 = getelementptr i8, ptr %base, i64 %l4
  %p8 = getelementptr i8, ptr %base, i64 %l8
  %mask_at = getelementptr i8, ptr %p1, i64 {self.layout.mask}
  %mask_bytes = load {group}, ptr %mask_at, align 1
  %mask = icmp ne {group} %mask_bytes, zeroinitializer
  %bits = bitcast <{t.lanes} x i1> %mask to i{t.lanes}
  %none = icmp eq i{t.lanes} %bits, 0
  br i1 %none, label %step, label %body
body:
{lines}
  br label %step
step:
  %next = add i64 %l, {t.lanes}
  %more = icmp ult i64 %next, {LANES}
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
