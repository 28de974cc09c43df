"""Names that PTX declares between two braces: registers, labels, tables of branch targets, local variables."""

import re
from dataclasses import dataclass, field

from .module import Reg, Symbol

_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass
class Scope:
    """Where a name is looked up: here, then in what encloses it."""

    parent: "Scope | None" = None
    registers: dict[str, Reg] = field(default_factory=dict)
    ranges: list[tuple[str, int, int, int]] = field(default_factory=list)  # prefix, count, width, first index
    labels: dict[str, int] = field(default_factory=dict)  # label → index of the instruction that it precedes
    tables: dict[str, list[str]] = field(default_factory=dict)  # .branchtargets
    variables: dict[str, Symbol] = field(default_factory=dict)  # .local and .param variables

    def find(self, table: str, name: str):
        """Return what ``name`` means in one of the dictionaries, or None."""
        scope = self
        while scope is not None:
            if name in (names := getattr(scope, table)):
                return names[name]
            scope = scope.parent
        return None

    def register(self, name: str) -> Reg | None:
        """Return the register called ``name``; those declared as ``%r<8>`` are made when they first appear."""
        numbered, scope = _NUMBERED.fullmatch(name), self
        while scope is not None:
            if name in scope.registers:
                return scope.registers[name]
            for prefix, count, width, first in scope.ranges if numbered else ():
                if (
                    prefix == numbered[1]
                    and int(numbered[2]) < count
                    and str(int(numbered[2])) == numbered[2]
                ):
                    return scope.registers.setdefault(name, Reg(name, width, first + int(numbered[2])))
            scope = scope.parent
        return None
