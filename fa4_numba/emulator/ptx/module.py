"""What the parser produces: modules, entries, instructions and operands."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reg:
    """A virtual register: ``width`` in bits (1 for predicates), ``index`` among those of its width."""

    name: str
    width: int
    index: int


@dataclass(frozen=True)
class Not:
    """``!p``: a predicate register that is read inverted."""

    register: Reg


@dataclass(frozen=True)
class Imm:
    """An immediate: an int, or a float given by its bits."""

    value: int | float


@dataclass(frozen=True)
class Special:
    """A special register such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable or parameter."""

    name: str


@dataclass(frozen=True)
class Vector:
    """Operands in braces."""

    items: tuple


@dataclass(frozen=True)
class Memory:
    """``[base + offset]``, for tensor copies with coordinates ``[base, {…}]``."""

    base: object
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True)
class Pair:
    """``d|p``: two destinations."""

    first: object
    second: object


@dataclass(frozen=True)
class Sink:
    """``_``: a result that nobody wants."""


@dataclass
class Instruction:
    """One decoded instruction.

    ``op`` is the full opcode (``"add.rn.f32"``), ``parts`` its pieces; ``guard`` a predicate register or None,
    ``negate`` whether it is ``@!``; ``line`` the line in the PTX text, ``python_line`` what ``.loc`` said, if anything.
    A marker comment has the opcode ``"//fa4"`` and its text in ``text``.
    """

    op: str
    parts: tuple[str, ...]
    args: tuple
    line: int
    text: str
    guard: Reg | None = None
    negate: bool = False
    python_line: str | None = None
    target: int | None = None  # index of the instruction that a branch jumps to
    scope: object = None  # while parsing
    found: tuple | None = None  # its entry in the instruction registry, once looked up
    alu: object = None  # its description, once made

    def has(self, *modifiers: str) -> bool:
        """Return whether all modifiers are present."""
        return all(modifier in self.parts for modifier in modifiers)


@dataclass
class Entry:
    """A kernel: parameters as (name, bytes, alignment), instructions, and how many registers of each width it has."""

    name: str
    params: list[tuple[str, int, int]]
    instructions: list[Instruction] = field(default_factory=list)
    register_counts: dict[int, int] = field(default_factory=dict)
    max_threads: int | None = None
    max_registers: int | None = None  # .maxnreg
    cluster: tuple[int, int, int] | None = None  # CTAs of a cluster, if the kernel requires them
    locals: dict[str, int] = field(default_factory=dict)  # variables that each lane has for itself → offset
    local_bytes: int = 0

    def param_offsets(self) -> tuple[dict[str, int], int]:
        """Return the byte offset of each parameter and the total size."""
        offsets, at = {}, 0
        for name, size, alignment in self.params:
            at = -(-at // alignment) * alignment
            offsets[name] = at
            at += size
        return offsets, at


@dataclass
class Module:
    """A parsed PTX module.

    ``shared`` maps static shared variables to offsets, dynamic ones start after them; ``variables`` holds the initial
    bytes of ``.global`` and ``.const`` variables.
    """

    entries: dict[str, Entry]
    shared: dict[str, int]
    dynamic_shared: set[str]
    static_shared_bytes: int
    text: str
    variables: dict[str, bytes] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The architecture that ``.target`` names."""
        found = re.search(r"^\s*\.target\s+(\w+)", self.text, re.M)
        return found[1] if found else ""
