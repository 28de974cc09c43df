"""Memory and tensor-memory instructions in machine code, for their common forms.

Each function returns false, having done nothing, where the machine has to do the instruction: a fault, an address in
another CTA, or somebody who watches.
"""

from dataclasses import dataclass

from ..isa.registry import vector_items
from ..isa.types import dtype_of
from ..machine.memory import PARAM_WINDOW
from ..machine.program import Piece
from ..machine.state import LANES, WATCH_ACCESSES, WATCH_TMEM_STORES, StateLayout
from ..ptx.module import Reg, Symbol
from . import signals
from .text import field, lane_loop, unwatched

_PLAIN = {"ld", "st", "global", "shared", "shared::cta", "param", "nc", "v2", "v4", "v8", "weak"}
_SPACES = ("global", "shared", "param")


@dataclass(frozen=True)
class _Form:
    """What tells one generated access function from another."""

    store: bool
    space: str
    size: int  # bytes of an element
    register: int  # bytes of a register
    signed: bool
    address: int  # bytes of the address register, 0: a constant

    @property
    def name(self) -> str:
        kind = "st" if self.store else "ld"
        return f"{kind}_{self.space}_{self.size}_{self.register}_{'s' if self.signed else 'u'}_{self.address}"


class AccessCompiler:
    """Collects the access functions that a program needs, and one small function per site that calls them."""

    def __init__(self, layout: StateLayout, address_of):
        self.layout, self.address_of = layout, address_of
        self.forms: dict[str, str] = {}
        self.sites: list[str] = []

    def function_for(self, piece: Piece) -> str | None:
        """Return the name of a function that does the effect, or None if there is none."""
        ins = piece.instruction
        if piece.kind != "effect" or ins.op == "//fa4":
            return None
        try:
            return self._function_of(ins)
        except (ValueError, IndexError, AttributeError):
            return None  # not understood: the machine says so when it gets there

    def _function_of(self, ins) -> str | None:
        if ins.parts[0] in ("ld", "st"):
            return self._access(ins)
        if ins.op.startswith(("tcgen05.ld.sync.aligned.32x32b.x", "tcgen05.st.sync.aligned.32x32b.x")):
            return self._tensor_memory(ins)
        return self._add(signals.function_for(ins, self.layout, len(self.sites)))

    def _add(self, site: tuple[str, str] | None) -> str | None:
        if site is None:
            return None
        self.sites.append(site[1])
        return site[0]

    def text(self) -> str:
        return "\n".join([*self.forms.values(), *self.sites])

    # -- sites ----------------------------------------------------------------------------------
    def _access(self, ins) -> str | None:
        dtype, store = dtype_of(ins), ins.parts[0] == "st"
        types = {part for part in ins.parts if part not in _PLAIN and not part.startswith("L")}
        space = next((s for s in _SPACES for p in ins.parts if p.split("::")[0] == s), None)
        memory, data = (ins.args[0], ins.args[1]) if store else (ins.args[1], ins.args[0])
        items = vector_items(data)
        if len(types) != 1 or space is None or not all(isinstance(i, Reg) and i.width <= 64 for i in items):
            return None
        if len({i.width for i in items}) != 1 or (space == "param" and store):
            return None
        signed = dtype.kind == "i"
        base, offset = memory.base, memory.offset
        if isinstance(base, Symbol):
            width, at, offset = 0, 0, offset + self.address_of(base.name)
        elif isinstance(base, Reg):
            width, at = base.width // 8, self.layout.register(base.width, base.index)
        else:
            return None
        form = _Form(store, space, dtype.itemsize, items[0].width // 8, signed, width)
        self.forms.setdefault(form.name, _access_function(form, self.layout))
        return self._site(form.name, at, offset, items)

    def _tensor_memory(self, ins) -> str | None:
        store = ins.parts[1] == "st"
        memory, data = (ins.args[0], ins.args[1]) if store else (ins.args[1], ins.args[0])
        items = vector_items(data)
        if (
            len(ins.parts) != 7
            or ins.parts[5] != f"x{len(items)}"
            or not isinstance(memory.base, Reg)
            or not all(isinstance(i, Reg) for i in items)
        ):
            return None
        name = "tmem_store" if store else "tmem_load"
        self.forms.setdefault(name, _tmem_function(name, store, self.layout))
        base = memory.base
        return self._site(name, self.layout.register(base.width, base.index), memory.offset, items)

    def _site(self, function: str, address: int, offset: int, items) -> str:
        """Write the function of one instruction: a call with its registers' rows."""
        k = len(self.sites)
        rows = ", ".join(f"i32 {self.layout.register(i.width, i.index)}" for i in items)
        self.sites.append(
            f"@rows{k} = private constant [{len(items)} x i32] [{rows}]\n"
            f"define internal i1 @site{k}(ptr %base) #0 {{\n"
            f"  %done = call i1 @{function}(ptr %base, i64 {address}, i64 {offset}, ptr @rows{k}, i64 {len(items)})\n"
            f"  ret i1 %done\n}}\n"
        )
        return f"site{k}"


def _address(form: _Form, loop: str) -> str:
    """Return text that computes lane ``%{loop}_t``'s address as ``%{loop}_a``."""
    if form.address == 0:  # a variable's own address
        return f"  %{loop}_a = add i64 %offset, {'%low' if form.space == 'shared' else 0}\n"
    kind = f"i{8 * form.address}"
    widened = (
        f"  %{loop}_w = zext {kind} %{loop}_r to i64\n"
        if form.address < 8
        else f"  %{loop}_w = add i64 %{loop}_r, 0\n"
    )
    return (
        f"  %{loop}_i = mul i64 %{loop}_t, {form.address}\n"
        f"  %{loop}_p = getelementptr i8, ptr %addresses, i64 %{loop}_i\n"
        f"  %{loop}_r = load {kind}, ptr %{loop}_p\n{widened}"
        f"  %{loop}_a = add i64 %{loop}_w, %offset\n"
    )


def _region(form: _Form) -> str:
    """Return text that gives ``%low`` and ``%bytes`` of addresses that exist, and ``%host`` where they lie."""
    if form.space == "shared":
        return (
            field("shared")
            + field("shared_bytes")
            + field("shared_low")
            + "  %low = add i64 %shared_low, 0\n  %bytes = add i64 %shared_bytes, 0\n"
            "  %host = inttoptr i64 %shared to ptr\n  br label %check_entry\n"
        )
    if form.space == "param":
        return (
            field("params") + field("param_bytes") + f"  %low = add i64 {PARAM_WINDOW}, 0\n"
            "  %bytes = add i64 %param_bytes, 0\n  %host = inttoptr i64 %params to ptr\n  br label %check_entry\n"
        )
    return _global_region(form)


def _global_region(form: _Form) -> str:
    """The bound array that holds the first active lane's address."""
    writable = "  %permitted = icmp ne i64 %w, 0\n" if form.store else "  %permitted = add i1 true, 0\n"
    first = _address(form, "first").replace("%first_t", "%lane")
    return (
        field("globals")
        + field("global_count")
        + f"""  %table = inttoptr i64 %globals to ptr
  br label %seek
seek:
  %lane = phi i64 [0, %start], [%lane1, %seek_on]
  %seek_m = getelementptr i8, ptr %mask, i64 %lane
  %seek_b = load i8, ptr %seek_m
  %seek_hit = icmp ne i8 %seek_b, 0
  br i1 %seek_hit, label %found, label %seek_on
seek_on:
  %lane1 = add i64 %lane, 1
  %seek_more = icmp ult i64 %lane1, {LANES}
  br i1 %seek_more, label %seek, label %slow
found:
{first}  br label %arrays
arrays:
  %k = phi i64 [0, %found], [%k1, %arrays_on]
  %k_more = icmp ult i64 %k, %global_count
  br i1 %k_more, label %array, label %slow
array:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  %low = load i64, ptr %row
  %bytes_at = getelementptr i64, ptr %row, i64 1
  %bytes = load i64, ptr %bytes_at
  %relative = sub i64 %first_a, %low
  %inside = icmp ult i64 %relative, %bytes
  br i1 %inside, label %hit, label %arrays_on
arrays_on:
  %k1 = add i64 %k, 1
  br label %arrays
hit:
  %host_at = getelementptr i64, ptr %row, i64 2
  %host_int = load i64, ptr %host_at
  %host = inttoptr i64 %host_int to ptr
  %w_at = getelementptr i64, ptr %row, i64 3
  %w = load i64, ptr %w_at
{writable}  br i1 %permitted, label %check_entry, label %slow
"""
    )


def _access_function(form: _Form, layout: StateLayout) -> str:
    """A load or store: first every address is checked, then every lane moves its elements."""
    check = (
        _address(form, "check")
        + """  %check_o = sub i64 %check_a, %low
  %check_end = add i64 %check_o, %size
  %check_in = icmp ule i64 %check_end, %bytes
  %check_pos = icmp ult i64 %check_o, %bytes
  %check_al = and i64 %check_a, %size_less_one
  %check_ok = icmp eq i64 %check_al, 0
  %check_both = and i1 %check_in, %check_ok
  %check_all = and i1 %check_both, %check_pos
  br i1 %check_all, label %check_next2, label %slow
check_next2:
"""
    )
    return f"""
define internal i1 @{form.name}(ptr %base, i64 %address_row, i64 %offset, ptr %rows, i64 %items) #0 {{
entry:
{unwatched(WATCH_ACCESSES)}  %mask = getelementptr i8, ptr %base, i64 {layout.mask}
  %addresses = getelementptr i8, ptr %base, i64 %address_row
  %size = mul i64 %items, {form.size}
  %size_less_one = sub i64 %size, 1
{_region(form)}check_entry:
{lane_loop("check", "check_entry", check, "move_entry")}move_entry:
{lane_loop("move", "move_entry", _move(form), "end")}end:
  ret i1 true
}}
"""


def _move(form: _Form) -> str:
    """One lane's elements, one after the other."""
    element, register = f"i{8 * form.size}", f"i{8 * form.register}"
    if form.store:
        narrow = "add" if form.size == form.register else "trunc"
        value = (
            f"%value = add {element} %word, 0"
            if narrow == "add"
            else f"%value = trunc {register} %word to {element}"
        )
        copy = f"  %word = load {register}, ptr %cell\n  {value}\n  store {element} %value, ptr %place, align 1\n"
    else:
        extend = "sext" if form.signed else "zext"
        value = (
            f"%word = add {register} %value, 0"
            if form.size == form.register
            else f"%word = {extend} {element} %value to {register}"
        )
        copy = f"  %value = load {element}, ptr %place, align 1\n  {value}\n  store {register} %word, ptr %cell\n"
    return (
        _address(form, "move")
        + f"""  %move_o = sub i64 %move_a, %low
  %lane_host = getelementptr i8, ptr %host, i64 %move_o
  %lane_at = mul i64 %move_t, {form.register}
  %lane_row = getelementptr i8, ptr %base, i64 %lane_at
  br label %item
item:
  %i = phi i64 [0, %move_body], [%i1, %item]
  %row_at = getelementptr i32, ptr %rows, i64 %i
  %row32 = load i32, ptr %row_at
  %row64 = zext i32 %row32 to i64
  %cell = getelementptr i8, ptr %lane_row, i64 %row64
  %element_at = mul i64 %i, {form.size}
  %place = getelementptr i8, ptr %lane_host, i64 %element_at
{copy}  %i1 = add i64 %i, 1
  %item_more = icmp ult i64 %i1, %items
  br i1 %item_more, label %item, label %item_end
item_end:
"""
    )


def _tmem_function(name: str, store: bool, layout: StateLayout) -> str:
    """32 lanes x n columns between tensor memory and registers, in the shape 32x32b."""
    copy = ("%cell", "%place") if store else ("%place", "%cell")
    return f"""
define internal i1 @{name}(ptr %base, i64 %address_row, i64 %offset, ptr %rows, i64 %items) #0 {{
entry:
{unwatched(WATCH_TMEM_STORES if store else WATCH_ACCESSES)}  %address_at = getelementptr i8, ptr %base, i64 %address_row
  %address32 = load i32, ptr %address_at
  %address0 = zext i32 %address32 to i64
  %address = add i64 %address0, %offset
  %lane = lshr i64 %address, 16
  %column = and i64 %address, 65535
  %end = add i64 %column, %items
{field("tmem")}{field("tmem_lane")}{field("active")}{field("tmem_allocated")}  %mine = icmp eq i64 %lane, %tmem_lane
  %full = icmp eq i64 %active, {LANES}
  %in = icmp ule i64 %end, 512
  %ok0 = and i1 %mine, %full
  %ok1 = and i1 %ok0, %in
  br i1 %ok1, label %columns, label %slow
columns:
  %bitmap = inttoptr i64 %tmem_allocated to ptr
  %bits = load i64, ptr %bitmap
  %group_low = lshr i64 %column, 5
  %end_less = sub i64 %end, 1
  %group_high = lshr i64 %end_less, 5
  %count0 = sub i64 %group_high, %group_low
  %count = add i64 %count0, 1
  %power = shl i64 1, %count
  %ones = sub i64 %power, 1
  %wanted = shl i64 %ones, %group_low
  %have = and i64 %bits, %wanted
  %allocated = icmp eq i64 %have, %wanted
  br i1 %allocated, label %lanes, label %slow
lanes:
  %t = phi i64 [0, %columns], [%t1, %lane_end]
  %tmem_row0 = add i64 %lane, %t
  %tmem_row1 = mul i64 %tmem_row0, 512
  %tmem_row2 = add i64 %tmem_row1, %column
  %tmem_row3 = mul i64 %tmem_row2, 4
  %tmem_row4 = add i64 %tmem_row3, %tmem
  %source = inttoptr i64 %tmem_row4 to ptr
  %lane_at = mul i64 %t, 4
  %lane_row = getelementptr i8, ptr %base, i64 %lane_at
  br label %item
item:
  %i = phi i64 [0, %lanes], [%i1, %item]
  %row_at = getelementptr i32, ptr %rows, i64 %i
  %row32 = load i32, ptr %row_at
  %row64 = zext i32 %row32 to i64
  %cell = getelementptr i8, ptr %lane_row, i64 %row64
  %place = getelementptr i32, ptr %source, i64 %i
  %value = load i32, ptr {copy[0]}
  store i32 %value, ptr {copy[1]}
  %i1 = add i64 %i, 1
  %item_more = icmp ult i64 %i1, %items
  br i1 %item_more, label %item, label %lane_end
lane_end:
  %t1 = add i64 %t, 1
  %lane_more = icmp ult i64 %t1, {LANES}
  br i1 %lane_more, label %lanes, label %done
done:
  ret i1 true
}}
"""
