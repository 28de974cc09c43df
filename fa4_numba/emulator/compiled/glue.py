"""The function that walks through a program's pieces: it calls their functions, branches, and returns to the machine."""

from ..isa.registry import watched_by
from ..machine.interpreter import DIVERGED, EFFECT, ENDED, INTERPRET, MET, TURN_OVER
from ..machine.program import Piece
from ..machine.state import COST_COUNTERS, HEADER, LANES, StateLayout
from ..ptx.module import Reg

_FLUSH_MODES = (0x1F80, 0x9FC0)  # MXCSR: all exceptions masked; with FTZ and DAZ


class Glue:
    """Writes ``run(base)``: from the pc in the state on, until the machine is needed; returns why.

    ``functions[pc]`` names the compiled function of an arithmetic piece, ``fast[pc]`` that of an effect, which
    returns false where the machine has to do it; ``flushing`` holds the pcs that want the CPU's flush mode.
    """

    def __init__(self, layout: StateLayout, pieces: list[Piece], functions: dict, fast: dict, flushing: set):
        self.layout, self.pieces = layout, pieces
        self.functions, self.fast, self.flushing = functions, fast, flushing
        self.lines: list[str] = []
        self._names = 0
        self._here = ""
        self._leaving: list[str] = []  # (pc, LLVM block) of each way out …
        self._whys: list[str] = []  # … and its reason

    def text(self) -> str:
        for pc, piece in enumerate(self.pieces):
            self._piece(pc, piece)
        cases = " ".join(f"i64 {pc}, label %pc{pc}" for pc in range(len(self.pieces)))
        modes = "\n".join(
            f"@mode{i} = private constant i32 {value}, align 4" for i, value in enumerate(_FLUSH_MODES)
        )
        body = "\n".join(self.lines)
        declaration = "declare void @llvm.x86.sse.ldmxcsr(ptr)" if self.flushing else ""
        return f"""
{declaration}
{modes}
define i32 @run(ptr noalias %base) #0 {{
entry:
  %pc_at = getelementptr i8, ptr %base, i64 {_field("pc")}
  %budget_at = getelementptr i8, ptr %base, i64 {_field("budget")}
  %executed_at = getelementptr i8, ptr %base, i64 {_field("executed")}
  %lanes_at = getelementptr i8, ptr %base, i64 {_field("lanes_executed")}
  %active_at = getelementptr i8, ptr %base, i64 {_field("active")}
  %meeting_at = getelementptr i8, ptr %base, i64 {_field("meeting")}
  %cautious_at = getelementptr i8, ptr %base, i64 {_field("cautious")}
  %mask_at = getelementptr i8, ptr %base, i64 {self.layout.mask}
  %pc = load i64, ptr %pc_at
  switch i64 %pc, label %ended [{cases}]
ended:
  store i64 -1, ptr %pc_at
  ret i32 {ENDED}
leave:
  %at = phi i64 [{"], [".join(self._leaving)}]
  %why = phi i32 [{"], [".join(self._whys)}]
  store i64 %at, ptr %pc_at
  ret i32 %why
{body}
}}
"""

    def _emit(self, text: str) -> str:
        self._names += 1
        self.lines.append(f"  %g{self._names} = {text}")
        return f"%g{self._names}"

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._here = name

    def _new_label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def _leave(self, pc: int, why: int) -> None:
        """End the current LLVM block by returning to the machine."""
        self._leaving.append(f"{pc}, %{self._here}")
        self._whys.append(f"{why}, %{self._here}")
        self.lines.append("  br label %leave")

    def _leave_if(self, condition: str, pc: int, why: int) -> None:
        out, on = self._new_label(), self._new_label()
        self.lines.append(f"  br i1 {condition}, label %{out}, label %{on}")
        self._label(out)
        self._leave(pc, why)
        self._label(on)

    def _go(self, pc: int) -> None:
        self.lines.append(f"  br label %{_target(pc)}")

    # -- pieces -----------------------------------------------------------------------------
    def _piece(self, pc: int, piece: Piece) -> None:
        self._label(f"pc{pc}")
        if piece.head:
            meeting = self._emit("load i64, ptr %meeting_at")
            self._leave_if(self._emit(f"icmp eq i64 {meeting}, {pc}"), pc, MET)
        budget = self._emit("load i64, ptr %budget_at")
        self._leave_if(self._emit(f"icmp sle i64 {budget}, 0"), pc, TURN_OVER)
        self.lines.append(f"  store i64 {self._emit(f'sub i64 {budget}, 1')}, ptr %budget_at")
        if piece.count:
            self._count(piece.count)
        if piece.cost is not None and piece.cost.any():
            self._charge(piece.cost)
        {"alu": self._arithmetic, "effect": self._effect, "branch": self._branch}[piece.kind](pc, piece)

    def _count(self, count: int) -> None:
        executed = self._emit("load i64, ptr %executed_at")
        self.lines.append(f"  store i64 {self._emit(f'add i64 {executed}, {count}')}, ptr %executed_at")
        active, lanes = self._emit("load i64, ptr %active_at"), self._emit("load i64, ptr %lanes_at")
        more = self._emit(f"mul i64 {active}, {count}")
        self.lines.append(f"  store i64 {self._emit(f'add i64 {lanes}, {more}')}, ptr %lanes_at")

    def _charge(self, cost) -> None:
        """Add a piece's cost to the timing model's counters."""
        kind = f"<{COST_COUNTERS} x i64>"
        at = self._emit(f"getelementptr i8, ptr %base, i64 {_field('costs')}")
        more = f"<{', '.join(f'i64 {n}' for n in cost)}>"
        total = self._emit(f"add {kind} {self._emit(f'load {kind}, ptr {at}, align 8')}, {more}")
        self.lines.append(f"  store {kind} {total}, ptr {at}, align 8")

    def _arithmetic(self, pc: int, piece: Piece) -> None:
        if pc not in self.functions:
            self._leave(pc, INTERPRET)
            return
        if pc in self.flushing:
            self._set_mode(1)
        self.lines.append(f"  call void @{self.functions[pc]}(ptr %base)")
        if pc in self.flushing:
            self._set_mode(0)
        self._go(pc + 1)

    def _set_mode(self, flush: int) -> None:
        self.lines.append(f"  call void @llvm.x86.sse.ldmxcsr(ptr @mode{flush})")

    def _effect(self, pc: int, piece: Piece) -> None:
        ins = piece.instruction
        if ins.guard is not None:
            skip, do = f"pc{pc + 1}", self._new_label()
            taken = self._taken(ins)
            none = self._emit(f"icmp eq i{LANES} {taken}, 0")
            self.lines.append(f"  br i1 {none}, label %{skip}, label %{do}")
            self._label(do)
        watchers = watched_by(ins)
        if watchers is not None:
            cautious = self._emit("load i64, ptr %cautious_at")
            watched = self._emit(f"and i64 {cautious}, {watchers}")
            self._leave_if(self._emit(f"icmp ne i64 {watched}, 0"), pc, EFFECT)
        elif pc in self.fast:
            if ins.guard is not None:  # for all active lanes, or the machine does it
                others = self._emit(f"icmp ne i{LANES} {taken}, {self._bits('%mask_at')}")
                self._leave_if(others, pc, EFFECT)
            self.lines.append(f"  store i64 {pc}, ptr %pc_at")
            done = self._emit(f"call i1 @{self.fast[pc]}(ptr %base)")
            self._leave_if(self._emit(f"xor i1 {done}, true"), pc, EFFECT)
        else:
            self._leave(pc, EFFECT)
            return
        self._go(pc + 1)

    # -- branches ---------------------------------------------------------------------------
    def _bits(self, pointer: str) -> str:
        row = self._emit(f"load <{LANES} x i8>, ptr {pointer}, align 1")
        ones = self._emit(f"icmp ne <{LANES} x i8> {row}, zeroinitializer")
        return self._emit(f"bitcast <{LANES} x i1> {ones} to i{LANES}")

    def _taken(self, ins) -> str:
        """Return the bits of the active lanes for which the guard holds."""
        guard: Reg = ins.guard
        offset = self.layout.register(guard.width, guard.index)
        condition = self._bits(self._emit(f"getelementptr i8, ptr %base, i64 {offset}"))
        if ins.negate:
            condition = self._emit(f"xor i{LANES} {condition}, -1")
        return self._emit(f"and i{LANES} {condition}, {self._bits('%mask_at')}")

    def _branch(self, pc: int, piece: Piece) -> None:
        branch = piece.instruction
        if branch is None or (branch.guard is None and branch.parts[0] == "bra"):
            self._go(piece.following)
            return
        if branch.guard is None or branch.parts[0] not in ("bra", "ret", "exit"):
            self._leave(pc, DIVERGED)
            return
        taken, on = self._taken(branch), self._new_label()
        none = self._emit(f"icmp eq i{LANES} {taken}, 0")
        self.lines.append(f"  br i1 {none}, label %{_target(piece.following)}, label %{on}")
        self._label(on)
        if branch.parts[0] == "bra":
            everybody = self._emit(f"icmp ne i{LANES} {taken}, {self._bits('%mask_at')}")
            self._leave_if(everybody, pc, DIVERGED)
            self._go(piece.taken)
        else:
            self._leave(pc, DIVERGED)


def _target(pc: int) -> str:
    return f"pc{pc}" if pc >= 0 else "ended"


def _field(name: str) -> int:
    return HEADER.fields[name][1]
