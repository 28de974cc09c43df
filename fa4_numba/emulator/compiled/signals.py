"""mbarriers, votes and elections in machine code, for their common forms.

As in ``accesses``, a function returns false, having done nothing, where the machine has to do the instruction: a wait
that does not pass, a fault, or somebody who watches.
"""

from ..isa.mbarriers import COUNT_BITS
from ..isa.registry import pair_items
from ..machine.barriers import ARRIVED_PC, ARRIVED_WARP, EXPECTED, MBARRIER_CELLS, PENDING, PHASE, TX_BYTES
from ..machine.memory import RANK_SHIFT, WINDOW_BYTES
from ..machine.state import LANES, WATCH_ACCESSES, WATCH_SIGNALS, StateLayout
from ..ptx.module import Imm, Memory, Reg, Sink
from .text import field, lane_loop, unwatched


def function_for(ins, layout: StateLayout, number: int) -> tuple[str, str] | None:
    """Return (name, text) of a function that does the instruction, or None if there is none."""
    name = f"site{number}"
    for prefix, make in _MAKERS.items():
        if ins.op.startswith(prefix):
            body = make(ins, layout)
            return body and (name, _function(name, layout, body))
    return None


def _function(name: str, layout: StateLayout, body: str) -> str:
    return f"""
define internal i1 @{name}(ptr %base) #0 {{
entry:
  %mask = getelementptr i8, ptr %base, i64 {layout.mask}
{body}}}
"""


def _row(layout: StateLayout, register: Reg) -> str:
    return f"getelementptr i8, ptr %base, i64 {layout.register(register.width, register.index)}"


def _first_lane() -> str:
    """Text that finds the first active lane, ``%first``; goes on at ``first_found``."""
    return f"""  br label %first_seek
first_seek:
  %first = phi i64 [0, %start], [%first1, %first_on]
  %first_m = getelementptr i8, ptr %mask, i64 %first
  %first_b = load i8, ptr %first_m
  %first_hit = icmp ne i8 %first_b, 0
  br i1 %first_hit, label %first_found, label %first_on
first_on:
  %first1 = add i64 %first, 1
  %first_more = icmp ult i64 %first1, {LANES}
  br i1 %first_more, label %first_seek, label %slow
first_found:
"""


def _lane_value(name: str, operand, layout: StateLayout, lane: str) -> str:
    """Text that loads a register of one lane, or an immediate, as the i64 ``%name``."""
    if isinstance(operand, Imm):
        return f"  %{name} = add i64 0, {int(operand.value)}\n"
    size = operand.width // 8
    kind = f"i{operand.width}"
    widened = f"add i64 %{name}_r, 0" if size == 8 else f"zext {kind} %{name}_r to i64"
    return (
        f"  %{name}_row = {_row(layout, operand)}\n  %{name}_i = mul i64 {lane}, {size}\n"
        f"  %{name}_p = getelementptr i8, ptr %{name}_row, i64 %{name}_i\n"
        f"  %{name}_r = load {kind}, ptr %{name}_p\n  %{name} = {widened}\n"
    )


def _barrier(memory: Memory, layout: StateLayout) -> str:
    """Text that finds the cells of the mbarrier at the first active lane's address, in any CTA of the cluster."""
    cells = "".join(
        f"  %{name}_at = getelementptr i64, ptr %cells, i64 {cell}\n  %{name} = load i64, ptr %{name}_at\n"
        for name, cell in (("expected", EXPECTED), ("pending", PENDING), ("tx", TX_BYTES), ("phase", PHASE))
    )
    return (
        _first_lane()
        + _lane_value("register", memory.base, layout, "%first")
        + field("shared_bytes")
        + field("shared_pitch")
        + field("cluster_size")
        + field("barriers")
        + f"""  %address = add i64 %register, {memory.offset}
  %rank = lshr i64 %address, {RANK_SHIFT}
  %at = and i64 %address, {WINDOW_BYTES - 1}
  %inside = icmp ult i64 %at, %shared_bytes
  %member = icmp ult i64 %rank, %cluster_size
  %odd = and i64 %at, 7
  %aligned = icmp eq i64 %odd, 0
  %exists0 = and i1 %inside, %aligned
  %exists = and i1 %exists0, %member
  br i1 %exists, label %in_table, label %slow
in_table:
  %table = inttoptr i64 %barriers to ptr
  %rank_start = mul i64 %rank, %shared_pitch
  %place = add i64 %rank_start, %at
  %number = lshr i64 %place, 3
  %cell = mul i64 %number, {MBARRIER_CELLS}
  %cells = getelementptr i64, ptr %table, i64 %cell
{cells}  %known = icmp ne i64 %expected, 0
  br i1 %known, label %found, label %slow
found:
"""
    )


def _plain(memory) -> bool:
    return isinstance(memory, Memory) and isinstance(memory.base, Reg) and memory.coordinates is None


def _wait(ins, layout: StateLayout) -> str | None:
    """Set the predicate where the phase has completed."""
    target, memory, parity = ins.args[0], ins.args[1], ins.args[2]
    if "parity" not in ins.parts or not _plain(memory) or not isinstance(target, Reg):
        return None
    if not isinstance(parity, Reg | Imm):
        return None
    body = """  %write_p = getelementptr i8, ptr %target, i64 %write_t
  store i8 1, ptr %write_p
"""
    return (
        unwatched(WATCH_ACCESSES)
        + _barrier(memory, layout)
        + _lane_value("parity", parity, layout, "%first")
        + f"""  %seen = and i64 %phase, 1
  %passed = icmp ne i64 %seen, %parity
  br i1 %passed, label %write_entry, label %slow
write_entry:
  %target = {_row(layout, target)}
{lane_loop("write", "write_entry", body, "end")}end:
  ret i1 true
"""
    )


def _arrive(ins, layout: StateLayout) -> str | None:
    """Count one arrival per active lane, all on one barrier; a wanted state is that before the lane's arrival."""
    target, memory, *counts = ins.args
    if not isinstance(target, Sink | Reg) or not _plain(memory):
        return None
    count = counts[0] if counts else Imm(1)
    if len(counts) > 1 or not (isinstance(count, Imm) or (isinstance(count, Reg) and count.width == 32)):
        return None
    if "expect_tx" in ins.parts or "noComplete" in ins.parts or memory.base.width != 32:
        return None
    same = """  %same_i = mul i64 %same_t, 4
  %same_p = getelementptr i8, ptr %register_row, i64 %same_i
  %same_r = load i32, ptr %same_p
  %same_eq = icmp eq i32 %same_r, %register_r
  br i1 %same_eq, label %same_ok, label %slow
same_ok:
"""
    if isinstance(count, Reg):
        same += """  %count_p = getelementptr i8, ptr %each_row, i64 %same_i
  %count_r = load i32, ptr %count_p
  %count_eq = icmp eq i32 %count_r, %each_r
  br i1 %count_eq, label %count_ok, label %slow
count_ok:
"""
    return (
        unwatched(WATCH_ACCESSES | WATCH_SIGNALS)
        + _barrier(memory, layout)
        + _lane_value("each", count, layout, "%first")
        + f"""  %some = icmp ne i64 %each, 0
  br i1 %some, label %same_entry, label %slow
same_entry:
{lane_loop("same", "same_entry", same, "count")}count:
{field("active")}{field("warp")}{field("pc")}  %arrivals = mul i64 %active, %each
  %enough = icmp uge i64 %pending, %arrivals
  br i1 %enough, label %arrive, label %slow
arrive:
{_states(target, layout)}  %left = sub i64 %pending, %arrivals
  store i64 %left, ptr %pending_at
  %who_at = getelementptr i64, ptr %cells, i64 {ARRIVED_WARP}
  store i64 %warp, ptr %who_at
  %where_at = getelementptr i64, ptr %cells, i64 {ARRIVED_PC}
  store i64 %pc, ptr %where_at
  %all = or i64 %left, %tx
  %complete = icmp eq i64 %all, 0
  br i1 %complete, label %next_phase, label %end
next_phase:
  %phase1 = add i64 %phase, 1
  store i64 %phase1, ptr %phase_at
  store i64 %expected, ptr %pending_at
  br label %end
end:
  ret i1 true
"""
    )


def _states(target, layout: StateLayout) -> str:
    """Text that writes the mbarrier's state before each lane's arrival: see ``isa.mbarriers``."""
    if not isinstance(target, Reg):
        return ""
    body = """  %state_i = mul i64 %state_t, 8
  %state_p = getelementptr i8, ptr %target, i64 %state_i
  %value = load i64, ptr %counter
  store i64 %value, ptr %state_p
  %value1 = sub i64 %value, %each
  store i64 %value1, ptr %counter
"""
    return f"""  %target = {_row(layout, target)}
  %counter = alloca i64
  %state_phase = shl i64 %phase, {COUNT_BITS}
  %state0 = or i64 %state_phase, %pending
  store i64 %state0, ptr %counter
  br label %state_entry
state_entry:
{lane_loop("state", "state_entry", body, "counted")}counted:
"""


def _vote(ins, layout: StateLayout) -> str | None:
    """any, all or ballot of the active lanes."""
    mode, target, source = ins.parts[2], ins.args[0], ins.args[1]
    if mode not in ("any", "all", "ballot") or not isinstance(source, Reg) or not isinstance(target, Reg):
        return None
    row = f"<{LANES} x i8>"
    result = {
        "any": f"  %yes = icmp ne i{LANES} %votes, 0\n  %value = zext i1 %yes to i8\n",
        "all": f"  %yes = icmp eq i{LANES} %votes, %voters\n  %value = zext i1 %yes to i8\n",
        "ballot": f"  %value = add i{LANES} %votes, 0\n",
    }[mode]
    kind, size = ("i32", 4) if mode == "ballot" else ("i8", 1)
    body = f"""  %write_i = mul i64 %write_t, {size}
  %write_p = getelementptr i8, ptr %target, i64 %write_i
  store {kind} %value, ptr %write_p
"""
    return f"""  %source = {_row(layout, source)}
  %target = {_row(layout, target)}
  %mask_row = load {row}, ptr %mask, align 1
  %mask_bits = icmp ne {row} %mask_row, zeroinitializer
  %voters = bitcast <{LANES} x i1> %mask_bits to i{LANES}
  %source_row = load {row}, ptr %source, align 1
  %source_bits = icmp ne {row} %source_row, zeroinitializer
  %all_votes = bitcast <{LANES} x i1> %source_bits to i{LANES}
  %votes = and i{LANES} %all_votes, %voters
{result}{lane_loop("write", "entry", body, "end")}end:
  ret i1 true
"""


def _elect(ins, layout: StateLayout) -> str | None:
    """True in the first active lane."""
    lane, chosen = pair_items(ins.args[0])
    if not isinstance(chosen, Reg):
        return None
    tell = ""
    if isinstance(lane, Reg):
        tell = """  %lane_i = mul i64 %write_t, 4
  %lane_p = getelementptr i8, ptr %lanes, i64 %lane_i
  %first32 = trunc i64 %first to i32
  store i32 %first32, ptr %lane_p
"""
    body = f"""  %write_p = getelementptr i8, ptr %target, i64 %write_t
  %write_eq = icmp eq i64 %write_t, %first
  %write_v = zext i1 %write_eq to i8
  store i8 %write_v, ptr %write_p
{tell}"""
    lanes = f"  %lanes = {_row(layout, lane)}\n" if isinstance(lane, Reg) else ""
    return f"""  %target = {_row(layout, chosen)}
{lanes}  br label %start
slow:
  ret i1 false
start:
{_first_lane()}{lane_loop("write", "first_found", body, "end")}end:
  ret i1 true
"""


_MAKERS = {
    "mbarrier.try_wait.": _wait,
    "mbarrier.test_wait.": _wait,
    "mbarrier.arrive.": _arrive,
    "vote.sync.": _vote,
    "elect.sync": _elect,
}
