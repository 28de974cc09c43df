"""What PTX declares outside of bodies: types, parameters, variables of the module, headers of functions."""

import re
import struct
from dataclasses import dataclass

from ...errors import PtxSyntaxError
from .numbers import parse_number
from .operands import split

TYPE_BITS = {"pred": 1, "b8": 16, "u8": 16, "s8": 16, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16}
TYPE_BITS |= dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 32)
TYPE_BITS |= dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), 64) | {"b128": 128}
TYPE_BYTES = {"b8": 1, "u8": 1, "s8": 1} | {
    t: b // 8 for t, b in TYPE_BITS.items() if t not in ("b8", "u8", "s8", "pred")
}
MAX_VARIABLE_BYTES = 1 << 26
_DECLARATION = re.compile(
    r"\s*\.(reg|param|local|shared|global|const)\s+(?:\.align\s+(\d+)\s+)?(?:\.attribute\([^)]*\)\s*)?\.(\w+)\s+"
    r"(?:\.ptr\S*\s+)?(?:\.\w+\s+)*(?:\.align\s+\d+\s+)?([\w$%.]+)\s*((?:\[\d*\]\s*)*)"
)
_MODULE_VARIABLE = re.compile(
    r"^[ \t]*(?:\.(?:visible|weak|common|extern)\s+)*(\.(?:global|const)\s[^;={}]*)(?:=\s*([^;]*))?;", re.M
)
_SHARED = re.compile(
    r"(\.extern\s+)?(\.shared\s+[^;={}.]*(?:\.align\s+\d+\s+)?\.\w+\s+[\w$]+\s*(?:\[\d*\])*)\s*;"
)


@dataclass(frozen=True)
class Declaration:
    """``.space .type name[count]``; ``size`` is None where the count is left out, as in dynamic shared memory."""

    space: str
    kind: str
    name: str
    size: int | None
    alignment: int


def parse_declaration(text: str, what: str) -> Declaration:
    """Read one declaration.

    Raises
    ------
    PtxSyntaxError
        Naming ``what`` it was to be; the caller adds the line.
    """
    match = _DECLARATION.fullmatch(text)
    if match is None or (match[3] not in TYPE_BYTES and match[1] != "reg"):
        raise PtxSyntaxError(f"cannot read the {what} {' '.join(text.split())[:100]!r}")
    space, alignment, kind, name, counts = match.groups()
    size = element = TYPE_BYTES.get(kind, 1)
    for count in re.findall(r"\[(\d*)\]", counts):
        size = None if size is None or not count else size * int(count)
    if size is not None and size > MAX_VARIABLE_BYTES:
        raise PtxSyntaxError(f"the {what} {name} has {size} bytes: at most {MAX_VARIABLE_BYTES} are possible")
    alignment = int(alignment or element)
    if alignment & (alignment - 1) or alignment == 0:
        raise PtxSyntaxError(f"the {what} {name} has alignment {alignment}, which is no power of two")
    return Declaration(space, kind, name, size, alignment)


def shared_variables(text: str) -> tuple[dict[str, int], set[str], int]:
    """Return (static variables with offsets, names of dynamic arrays, bytes of the static part)."""
    static, dynamic, at = {}, set(), 0
    for match in _SHARED.finditer(text):
        variable = parse_declaration(match[2], "shared variable")
        if match[1] or variable.size is None:
            dynamic.add(variable.name)
            continue
        at = -(-at // variable.alignment) * variable.alignment
        static[variable.name] = at
        at += variable.size
    return static, dynamic, at


def module_variables(text: str) -> dict[str, bytes]:
    """Return the initial bytes of ``.global`` and ``.const`` variables."""
    found = {}
    for match in _MODULE_VARIABLE.finditer(text):
        variable = parse_declaration(match[1].strip(), "variable")
        data = _initial_bytes(variable, match[2]) if match[2] else b""
        size = len(data) if variable.size is None else variable.size
        if len(data) > size:
            raise PtxSyntaxError(
                f"the variable {variable.name} has {size} bytes, but {len(data)} initial ones"
            )
        found[variable.name] = data.ljust(size, b"\0")
    return found


def _initial_bytes(variable: Declaration, text: str) -> bytes:
    out = b""
    for part in split(re.sub(r"[{}]", " ", text)):
        number = parse_number(part)
        if number is None:
            raise PtxSyntaxError(f"the variable {variable.name} starts as {part!r}, which is no number")
        size = TYPE_BYTES[variable.kind]
        if isinstance(number, float):
            out += struct.pack("<d" if size == 8 else "<f", number)
        else:
            out += (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return out


@dataclass(frozen=True)
class Function:
    """The header of a ``.func``; ``body`` is the position after its opening brace, or None if it is only declared."""

    name: str
    results: tuple[Declaration, ...]
    params: tuple[Declaration, ...]
    body: int | None


_FUNCTION = re.compile(r"\.func\s*(?:\(([^)]*)\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?[^;{}]*([;{])")


def functions(text: str) -> dict[str, Function]:
    """Return the headers of all functions of the module; a definition wins over a declaration."""
    found: dict[str, Function] = {}
    for match in _FUNCTION.finditer(text):
        results, name, params, ending = match.groups()
        formals = [tuple(_formal(part) for part in split(group or "")) for group in (results, params)]
        body = match.end() if ending == "{" else None
        if name not in found or found[name].body is None:
            found[name] = Function(name, *formals, body)
    return found


def _formal(text: str) -> Declaration:
    return parse_declaration(text, "function parameter")
