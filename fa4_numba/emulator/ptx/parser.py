"""A parser for the PTX that compilers emit: one entry or several, nested scopes, inline-asm blocks."""

import re
import struct

from ...errors import PtxSyntaxError
from .module import Entry, Imm, Instruction, Memory, Module, Not, Pair, Reg, Sink, Special, Symbol, Vector

TYPE_BITS = {"pred": 1, "b8": 16, "u8": 16, "s8": 16, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16}
TYPE_BITS |= dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 32)
TYPE_BITS |= dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), 64) | {"b128": 128}
TYPE_BYTES = {"b8": 1, "u8": 1, "s8": 1} | {
    t: b // 8 for t, b in TYPE_BITS.items() if t not in ("b8", "u8", "s8", "pred")
}
DYNAMIC_SHARED_START = 1024  # ptxas reserves the first kilobyte of the window

_MARKER = re.compile(r"//\s*fa4:[^\n]*")
_LABEL = re.compile(r"([\w$%.]+)\s*:(?!:)")
_NAME = re.compile(r"[\w$%.]+$")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|laneid|warpid|nwarpid|smid|clock|clock64"
    r"|clock_hi|globaltimer|cluster_ctarank|cluster_nctarank|is_explicit_cluster|dynamic_smem_size|total_smem_size|lanemask_\w+|gridid)"
    r"(\.[xyz])?$"
)


class _Scope:
    """Registers and labels declared between two braces."""

    def __init__(self, parent=None):
        self.parent, self.registers, self.ranges, self.labels = parent, {}, [], {}

    def find(self, name, table):
        scope = self
        while scope is not None:
            found = getattr(scope, table).get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


def parse(text: str) -> Module:
    """Parse PTX text.

    Raises
    ------
    PtxSyntaxError
        Naming the line, for text that is no PTX or uses what the parser does not know.
    """
    if not isinstance(text, str):
        raise PtxSyntaxError(f"PTX must be text (str), got {type(text).__name__}")
    clean = _strip_comments(text)
    if ".entry" not in clean:
        raise PtxSyntaxError("no .entry in the PTX: nothing to run (is the text complete?)")
    shared, dynamic, size = _shared_variables(clean)
    entries = {}
    for match in re.finditer(r"\.entry\s+([\w$]+)\s*(\(|\{)?", clean):
        entry = _EntryParser(clean, match, shared, dynamic).parse()
        entries[entry.name] = entry
    return Module(entries, shared, dynamic, size, text)


def _strip_comments(text: str) -> str:
    """Blank out comments (newlines stay), turning our markers into statements ``//fa4 text;``."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    lines = []
    for line in text.split("\n"):
        marker = _MARKER.search(line)
        if marker:
            # \x01 stands for the marker's opcode until statements are split
            words = marker.group().split("fa4:", 1)[1].strip().replace(";", ",")
            lines.append(line[: marker.start()] + f"\x01{words};")
        else:
            lines.append(line.split("//")[0])
    return "\n".join(lines)


def _shared_variables(text: str):
    """Return (static variables with offsets, names of dynamic arrays, bytes of the static part)."""
    static, dynamic, at = {}, set(), 0
    pattern = r"(\.extern\s+)?\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*(?:\[(\d*)\])?"
    for match in re.finditer(pattern, text):
        extern, alignment, kind, name, count = match.groups()
        if extern or count == "":
            dynamic.add(name)
            continue
        alignment = int(alignment or TYPE_BYTES.get(kind, 4))
        at = -(-at // alignment) * alignment
        static[name] = at
        at += TYPE_BYTES.get(kind, 4) * int(count or 1)
    return static, dynamic, at


class _EntryParser:
    def __init__(self, text, match, shared, dynamic):
        self.text, self.match = text, match
        self.symbols = set(shared) | dynamic
        self.counts: dict[int, int] = {}
        self.python_line = None
        self.carry = None

    def error(self, position: int, message: str):
        line = self.text.count("\n", 0, position) + 1
        return PtxSyntaxError(f"PTX line {line}: {message}")

    def parse(self) -> Entry:
        text, position = self.text, self.match.end()
        entry = Entry(self.match[1], [])
        if self.match[2] == "(":
            end = text.find(")", position)
            if end < 0:
                raise self.error(position, "the parameter list is not closed")
            entry.params = [self._param(p, position) for p in text[position:end].split(",") if p.strip()]
            self.symbols |= {name for name, _, _ in entry.params}
            position = end + 1
        body = text.find("{", position if self.match[2] != "{" else self.match.end() - 1)
        if body < 0:
            raise self.error(position, f"entry {entry.name} has no body")
        threads = re.search(
            r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text[position:body]
        )
        if threads:
            entry.max_threads = 1
            for n in threads.groups():
                entry.max_threads *= int(n or 1)
        cluster = re.search(
            r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text[position:body]
        )
        if cluster:
            entry.cluster = tuple(int(n or 1) for n in cluster.groups())
        self._body(entry, body + 1)
        entry.register_counts = self.counts
        return entry

    def _param(self, declaration: str, position: int) -> tuple[str, int, int]:
        match = re.fullmatch(
            r"\s*\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\S*\s+)?(?:\.\w+\s+)*(?:\.align\s+\d+\s+)?([\w$]+)\s*(?:\[(\d+)\])?\s*",
            declaration,
        )
        if match is None or match[2] not in TYPE_BYTES:
            raise self.error(position, f"cannot read the parameter {declaration.strip()!r}")
        size = TYPE_BYTES[match[2]]
        return match[3], size * int(match[4] or 1), int(match[1] or size)

    def _body(self, entry: Entry, position: int) -> None:
        text, scope = self.text, _Scope()
        self.instructions, line, counted = entry.instructions, text.count("\n", 0, position) + 1, position
        depth = 1
        skip = re.compile(r"\s*")
        while depth:
            position = skip.match(text, position).end()
            if position >= len(text):
                raise self.error(position, f"the body of {entry.name} is not closed: the text is cut off")
            line += text.count("\n", counted, position)
            counted = position
            char = text[position]
            if char in "{};":
                position += 1
                if char == "{":
                    scope, depth = _Scope(scope), depth + 1
                elif char == "}":
                    scope, depth = scope.parent, depth - 1
                continue
            if text.startswith((".loc", ".file"), position):
                end = text.find("\n", position)
                words = text[position:end].split()
                if words[0] == ".loc":
                    self.python_line = f"file {words[1]} line {words[2]}"
                position = end
                continue
            label = _LABEL.match(text, position)
            if label:
                scope.labels[label[1]] = len(self.instructions)
                position = label.end()
                continue
            end = text.find(";", position)
            if end < 0:
                raise self.error(position, "the statement is not closed by ';'")
            self._statement(" ".join(text[position:end].split()), scope, line)
            position = end + 1
        self._resolve_branches()

    def _statement(self, statement: str, scope: _Scope, line: int) -> None:
        if statement.startswith("\x01"):
            self.instructions.append(Instruction("//fa4", ("//fa4",), (), line, statement[1:]))
        elif statement.startswith(".reg"):
            self._declare(statement, scope, line)
        elif statement.startswith("."):
            if not statement.startswith((".pragma", ".shared", ".local")):
                raise PtxSyntaxError(f"PTX line {line}: directive {statement.split()[0]!r} is not supported")
        else:
            self.instructions.append(self._instruction(statement, scope, line))

    def _declare(self, statement: str, scope: _Scope, line: int) -> None:
        match = re.fullmatch(r"\.reg \.(\w+) (.+)", statement)
        if match is None or match[1] not in TYPE_BITS:
            raise PtxSyntaxError(f"PTX line {line}: cannot read the declaration {statement!r}")
        width = TYPE_BITS[match[1]]
        for name in match[2].split(","):
            many = re.fullmatch(r"\s*([\w$%]+?)<(\d+)>\s*", name)
            first = self.counts.get(width, 0)
            if many:
                scope.ranges.append((many[1], int(many[2]), width, first))
                self.counts[width] = first + int(many[2])
            else:
                scope.registers[name.strip()] = Reg(name.strip(), width, first)
                self.counts[width] = first + 1

    def _instruction(self, statement: str, scope: _Scope, line: int) -> Instruction:
        guard, negate, body = None, False, statement
        if body.startswith("@"):
            name, _, body = body[1:].partition(" ")
            negate, name = name.startswith("!"), name.lstrip("!")
            guard = self._register(name, scope)
            if guard is None:
                raise PtxSyntaxError(f"PTX line {line}: predicate {name!r} is not declared")
        op, _, rest = body.partition(" ")
        parts = tuple(op.split("."))
        if parts[0] == "bra":
            args = (Symbol(rest.strip()),)
        else:
            args = tuple(self._operand(part, scope, line) for part in _split(rest))
        if parts[0] in ("addc", "subc", "madc") or "cc" in parts:
            args += (self._carry_flag(),)
        return Instruction(op, parts, args, line, statement, guard, negate, self.python_line, scope=scope)

    def _carry_flag(self) -> Reg:
        """Return the predicate register that stands for the condition code of extended-precision arithmetic."""
        if self.carry is None:
            self.carry = Reg("%cc", 1, self.counts.get(1, 0))
            self.counts[1] = self.carry.index + 1
        return self.carry

    def _register(self, name: str, scope: _Scope) -> Reg | None:
        numbered = re.fullmatch(r"(.*?)(\d+)", name)
        level = scope
        while level is not None:
            if name in level.registers:
                return level.registers[name]
            if numbered:
                for prefix, count, width, first in level.ranges:
                    if prefix == numbered[1] and int(numbered[2]) < count:
                        register = Reg(name, width, first + int(numbered[2]))
                        level.registers[name] = register
                        return register
            level = level.parent
        return None

    def _operand(self, text: str, scope: _Scope, line: int):
        if text == "_":
            return Sink()
        if text.startswith("{"):
            return Vector(tuple(self._operand(part, scope, line) for part in _split(text[1:-1])))
        if text.startswith("["):
            return self._memory(text[1:-1].strip(), scope, line)
        if "|" in text:
            first, second = text.split("|")
            return Pair(self._operand(first.strip(), scope, line), self._operand(second.strip(), scope, line))
        register = self._register(text.removeprefix("!").strip(), scope)
        if register is not None:
            return Not(register) if text.startswith("!") else register
        if _SPECIAL.match(text):
            return Special(text)
        number = parse_number(text)
        if number is not None:
            return Imm(number)
        if text in self.symbols:
            return Symbol(text)
        raise PtxSyntaxError(f"PTX line {line}: {text!r} is neither a register, a number nor a variable")

    def _memory(self, text: str, scope: _Scope, line: int) -> Memory:
        parts = _split(text)
        coordinates = self._operand(parts[1], scope, line) if len(parts) > 1 else None
        base, offset = parts[0], 0
        match = re.fullmatch(r"(.+?)\s*([+-])\s*(-?\d+|0x[0-9a-fA-F]+)", base)
        if match and not _NAME.match(base):
            base = match[1].strip()
            offset = int(match[3], 0) * (-1 if match[2] == "-" else 1)
        return Memory(self._operand(base, scope, line), offset, coordinates)

    def _resolve_branches(self) -> None:
        for ins in self.instructions:
            if ins.parts[0] == "bra":
                ins.target = ins.scope.find(ins.args[0].name, "labels")
                if ins.target is None:
                    raise PtxSyntaxError(f"PTX line {ins.line}: label {ins.args[0].name!r} is not defined")
            ins.scope = None


def parse_number(text: str) -> int | float | None:
    """Return the value of a PTX literal, or None."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0]
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    if re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0 if not re.fullmatch(r"[-+]?0\d+U?", text) else 8)
    if re.fullmatch(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?", text):
        return float(text)
    return None


def _split(text: str) -> list[str]:
    """Split at commas outside of braces and brackets."""
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last else out
