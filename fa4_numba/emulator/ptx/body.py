"""The body of an entry: statements in nested scopes become a flat list of instructions.

Three things are rewritten on the way, so that nothing after the parser has to know of them: ``brx.idx`` becomes
comparisons and branches, a call of a function of the module becomes that function's body, and the carry flag of
extended-precision arithmetic becomes a predicate.
"""

import re

from ...errors import PtxSyntaxError
from .declarations import TYPE_BITS, Declaration, Function, parse_declaration
from .module import Entry, Imm, Instruction, Reg, Symbol
from .operands import parse_operand, split
from .scope import Scope

CARRYING = ("addc", "subc", "madc")
MAX_REGISTERS = 1 << 20
MAX_INSTRUCTIONS = 1 << 20
_LABEL = re.compile(r"([\w$%.]+)\s*:(?!:)")
_BLANK = re.compile(r"\s*")
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.+)")
_MANY = re.compile(r"([\w$%.]+?)<(\d+)>")
_CALL = re.compile(r"(?:\(([^)]*)\)\s*,\s*)?([\w$%.]+)\s*(?:,\s*\(([^)]*)\))?\s*(?:,\s*([\w$%.]+))?")
_IGNORED = (".pragma", ".shared", ".calltargets", ".callprototype")
_RETURN = "<return>"  # label after an inlined body


class BodyParser:
    """Fills ``entry.instructions``. ``variables``: names of the module and of the entry's parameters."""

    def __init__(self, text: str, entry: Entry, variables: set[str], functions: dict[str, Function]):
        self.text, self.entry, self.variables, self.functions = text, entry, variables, functions
        self.instructions = entry.instructions
        self.counts = entry.register_counts
        self.calls: list[str] = []  # functions that are being inlined
        self.carry: Reg | None = None
        self.python_line: str | None = None
        self.line = 0

    def parse(self, position: int) -> None:
        """Read the body that starts at ``position``, after its opening brace."""
        self._statements(position, Scope())
        if not self.instructions:
            self._emit("ret", (), "ret", Scope())
        for ins in self.instructions:
            if ins.parts[0] == "bra":
                ins.target = ins.scope.find("labels", ins.args[0].name)
                if ins.target is None:
                    raise self._error(f"label {ins.args[0].name!r} is not defined", ins.line)
            ins.scope = None

    def _error(self, message, line: int | None = None) -> PtxSyntaxError:
        return PtxSyntaxError(f"PTX line {line or self.line}: {message}")

    # -- statements -------------------------------------------------------------------------
    def _statements(self, position: int, scope: Scope) -> None:
        """Read up to the brace that closes the body."""
        text, depth, counted = self.text, 1, position
        self.line, label = text.count("\n", 0, position) + 1, None
        while depth:
            position = _BLANK.match(text, position).end()
            if position >= len(text):
                raise self._error(f"the body of {self.entry.name} is not closed: the text is cut off")
            self.line += text.count("\n", counted, position)
            counted = position
            char = text[position]
            if char in "{};":
                position += 1
                if char == "{":
                    scope, depth = Scope(scope), depth + 1
                elif char == "}":
                    scope, depth = scope.parent, depth - 1
            elif text.startswith((".loc", ".file"), position) and not text.startswith(".local", position):
                end = text.find("\n", position)
                self._source_line(text[position:end].split())
                position = end if end >= 0 else len(text)
            elif found := _LABEL.match(text, position):
                label, position = found[1], found.end()
                if label in scope.labels:
                    raise self._error(f"label {label!r} is defined twice")
                scope.labels[label] = len(self.instructions)
            else:
                end = text.find(";", position)
                if end < 0:
                    raise self._error("the statement is not closed by ';'")
                self._statement(" ".join(text[position:end].split()), scope, label)
                position = end + 1

    def _source_line(self, words: list[str]) -> None:
        if words[0] == ".loc" and len(words) > 2:
            self.python_line = f"file {words[1]} line {words[2]}"

    def _statement(self, statement: str, scope: Scope, label: str | None) -> None:
        if len(self.instructions) > MAX_INSTRUCTIONS:
            raise self._error(f"more than {MAX_INSTRUCTIONS} instructions (functions are inlined)")
        try:
            if statement.startswith("\x01"):
                self.instructions.append(Instruction("//fa4", ("//fa4",), (), self.line, statement[1:]))
            elif statement.startswith(".reg"):
                self._declare_registers(statement, scope)
            elif statement.startswith((".local", ".param")):
                self._declare_variable(statement, scope)
            elif statement.startswith(".branchtargets"):
                scope.tables[label] = split(statement.removeprefix(".branchtargets"))
            elif statement.startswith("."):
                if not statement.startswith(_IGNORED):
                    raise PtxSyntaxError(f"directive {statement.split()[0]!r} is not supported")
            else:
                self._instruction(statement, scope)
        except PtxSyntaxError as error:
            raise error if str(error).startswith("PTX line") else self._error(error) from None

    # -- declarations -----------------------------------------------------------------------
    def _declare_registers(self, statement: str, scope: Scope) -> None:
        match = _REG.fullmatch(statement)
        if match is None or match[1] not in TYPE_BITS:
            raise PtxSyntaxError(f"cannot read the declaration {statement!r}")
        width = TYPE_BITS[match[1]]
        for name in split(match[2]):
            if many := _MANY.fullmatch(name):
                scope.ranges.append((many[1], int(many[2]), width, self._reserve(width, int(many[2]))))
            else:
                scope.registers[name] = Reg(name, width, self._reserve(width, 1))

    def _reserve(self, width: int, count: int) -> int:
        """Return the index of the first of ``count`` new registers."""
        first = self.counts.get(width, 0)
        if first + count > MAX_REGISTERS:
            raise PtxSyntaxError(f"{first + count} registers of {width} bits: no kernel has so many")
        self.counts[width] = first + count
        return first

    def _new_register(self, width: int) -> Reg:
        index = self._reserve(width, 1)
        return Reg(f"new{index}", width, index)

    def _carry_flag(self) -> Reg:
        """Return the predicate register that stands for the condition code of extended-precision arithmetic."""
        if self.carry is None:
            self.carry = self._new_register(1)
        return self.carry

    def _declare_variable(self, statement: str, scope: Scope) -> None:
        """A ``.local`` or ``.param`` variable of a body: bytes that every lane has for itself."""
        found = parse_declaration(statement, "variable")
        if found.size is None:
            raise PtxSyntaxError(f"the variable {found.name} has no size")
        entry = self.entry
        at = -(-entry.local_bytes // found.alignment) * found.alignment
        name = f"{found.name}#{len(entry.locals)}"
        entry.locals[name], entry.local_bytes = at, at + found.size
        scope.variables[found.name] = Symbol(name)

    # -- instructions -----------------------------------------------------------------------
    def _instruction(self, statement: str, scope: Scope) -> None:
        guard, negate, body = None, False, statement
        if body.startswith("@"):
            match = re.fullmatch(r"@\s*(!?)\s*([\w$%.]+)\s+(.+)", body)
            if match is None:
                raise PtxSyntaxError(f"cannot read the predicate of {statement!r}")
            negate, guard, body = bool(match[1]), scope.register(match[2]), match[3]
            if guard is None or guard.width != 1:
                raise PtxSyntaxError(f"predicate {match[2]!r} is not declared")
        op, _, rest = body.partition(" ")
        root = op.split(".")[0]
        if root == "call":
            self._call(op, rest, statement, scope, guard, negate)
        elif op.startswith("brx.idx"):
            self._indexed_branch(rest, statement, scope, guard, negate)
        elif root == "ret" and self.calls:
            self._branch(_RETURN, statement, scope, guard, negate)
        elif root == "bra":
            self._branch(rest.strip(), statement, scope, guard, negate)
        else:
            args = tuple(parse_operand(part, scope, self.variables) for part in split(rest))
            if root in CARRYING or "cc" in op.split("."):
                args += (self._carry_flag(),)
            self._emit(op, args, statement, scope, guard, negate)

    def _emit(self, op: str, args: tuple, text: str, scope: Scope, guard=None, negate=False) -> None:
        self.instructions.append(
            Instruction(
                op, tuple(op.split(".")), args, self.line, text, guard, negate, self.python_line, scope=scope
            )
        )

    def _branch(self, label: str, text: str, scope: Scope, guard=None, negate=False) -> None:
        self._emit("bra", (Symbol(label),), text, scope, guard, negate)

    def _indexed_branch(self, rest: str, text: str, scope: Scope, guard, negate) -> None:
        """``brx.idx index, table``: compare with each index but the last, whose target takes the rest."""
        names = split(rest)
        targets = scope.find("tables", names[1]) if len(names) == 2 else None
        if not targets:
            raise PtxSyntaxError(f"{text!r} needs an index and a .branchtargets table declared before it")
        index = parse_operand(names[0], scope, self.variables)
        skip = Scope(scope)
        if guard is not None:
            self._branch(_RETURN, text, skip, guard, not negate)
        for number, target in enumerate(targets[:-1]):
            equal = self._new_register(1)
            self._emit("setp.eq.u32", (equal, index, Imm(number)), text, scope)
            self._branch(target, text, scope, equal)
        self._branch(targets[-1], text, scope)
        skip.labels[_RETURN] = len(self.instructions)

    # -- calls ------------------------------------------------------------------------------
    def _call(self, op: str, rest: str, text: str, scope: Scope, guard, negate) -> None:
        """Put the function's body here; a function that the module only declares stays a call."""
        match = _CALL.fullmatch(rest.strip())
        function = self.functions.get(match[2]) if match else None
        if function is None:
            raise PtxSyntaxError(
                f"{text!r} calls nothing that the module declares (calls through registers are not supported)"
            )
        if function.body is None:
            self._emit(op, (Symbol(function.name),), text, scope, guard, negate)
            return
        if function.name in self.calls:
            raise PtxSyntaxError(f"{function.name} calls itself: recursion is not supported")
        results, params = split(match[1] or ""), split(match[3] or "")
        if len(results) != len(function.results) or len(params) != len(function.params):
            raise PtxSyntaxError(f"{text!r} does not fit the header of {function.name}")
        inner = Scope()
        if guard is not None:
            self._branch(_RETURN, text, inner, guard, not negate)
        for formal, actual in zip(function.params, params):
            self._bind(formal, actual, text, scope, inner, copy_in=True)
        for formal, actual in zip(function.results, results):
            self._bind(formal, actual, text, scope, inner, copy_in=False)
        line, python_line = self.line, self.python_line
        self.calls.append(function.name)
        self._statements(function.body, Scope(inner))
        self.calls.pop()
        self.line, self.python_line = line, python_line
        inner.labels[_RETURN] = len(self.instructions)
        for formal, actual in zip(function.results, results):
            if formal.space == "reg":
                target = parse_operand(actual, scope, self.variables)
                self._emit(f"mov.b{target.width}", (target, inner.registers[formal.name]), text, scope)

    def _bind(
        self, formal: Declaration, actual: str, text: str, scope: Scope, inner: Scope, copy_in: bool
    ) -> None:
        """Let a formal parameter mean the caller's variable, or a register of its own."""
        operand = parse_operand(actual, scope, self.variables)
        if formal.space == "param":
            if not isinstance(operand, Symbol):
                raise PtxSyntaxError(f"{actual!r} in {text!r} is no .param variable")
            inner.variables[formal.name] = operand
            return
        if formal.kind not in TYPE_BITS:
            raise PtxSyntaxError(f"type .{formal.kind} of {formal.name} is not supported")
        register = inner.registers[formal.name] = self._new_register(TYPE_BITS[formal.kind])
        if copy_in:
            kind = "pred" if register.width == 1 else f"b{register.width}"
            self._emit(f"mov.{kind}", (register, operand), text, scope)
