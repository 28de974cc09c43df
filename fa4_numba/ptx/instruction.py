"""What one row of the instruction table says, and how its PTX text is made.

A template is PTX with ``$name`` for each operand. Operand kinds:

======== ========================= ==================
kind     PTX register              LLVM constraint
======== ========================= ==================
``u32``  ``.b32`` (also bf16x2)    ``r``
``i32``  ``.b32``                  ``r``
``u64``  ``.b64`` (addresses, ...) ``l``
``f32``  ``.f32``                  ``f``
``f32x2`` ``.b64`` (two packed f32) ``l``
``T[n]`` n registers in ``{}``     n times T's
======== ========================= ==================

``@uid`` makes a label unique per expansion; ``<name>`` is an immediate that :meth:`Instruction.bind` fills in.
"""

import re
from dataclasses import dataclass, replace

CONSTRAINT = {"u32": "r", "i32": "r", "u64": "l", "f32": "f", "f32x2": "l"}
PTX_REGISTER = {"u32": "b32", "i32": "b32", "u64": "b64", "f32": "f32", "f32x2": "b64"}


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction: ``count`` registers of ``kind`` (``count`` 0 = a single scalar)."""

    name: str
    kind: str
    count: int = 0

    @property
    def registers(self) -> int:
        return self.count or 1


def parse_operands(text: str) -> tuple[Operand, ...]:
    """Parse ``"d:f32[32] taddr:u32"`` into operands."""
    operands = []
    for word in text.split():
        match = re.fullmatch(r"(\w+):(\w+)(?:\[(\d+)\])?", word)
        if match is None or match[2] not in CONSTRAINT:
            raise ValueError(
                f"operand {word!r} is not name:kind or name:kind[n] with kind in {sorted(CONSTRAINT)}"
            )
        operands.append(Operand(match[1], match[2], int(match[3] or 0)))
    return tuple(operands)


@dataclass(frozen=True)
class Instruction:
    """One inline-PTX instruction form.

    Parameters
    ----------
    name : str
        Name in code, unique in the table.
    text : str
        PTX template (see the module's docstring).
    outputs, inputs : str
        Operands in the order in which the intrinsic returns and takes them.
    section : str
        Title of the PTX ISA section that defines the form.
    pure : bool
        True if the result depends on the inputs alone: the compiler may merge, move or drop it.
    convergent : bool
        True if every thread of a warp (or more) must execute it together, so that the compiler may not make its
        execution depend on more or fewer branches. All ``.sync.aligned`` forms are.
    scope : str
        Who executes it: "thread", "warp", "warpgroup" or "cta".
    since : str
        First architecture that has it: "sm_80", "sm_90", "sm_90a" or "sm_100a".
    """

    name: str
    text: str
    outputs: str = ""
    inputs: str = ""
    section: str = ""
    pure: bool = False
    convergent: bool = False
    scope: str = "thread"
    since: str = "sm_90"

    def __post_init__(self):
        # ".aligned" means that the warp executes it as one: never less than convergent, never pure.
        if ".aligned" in self.text and not self.convergent:
            raise ValueError(f"{self.name}: an .aligned form must be convergent")
        if self.pure and self.convergent:
            raise ValueError(f"{self.name}: pure instructions cannot be convergent")

    @property
    def out_operands(self) -> tuple[Operand, ...]:
        return parse_operands(self.outputs)

    @property
    def in_operands(self) -> tuple[Operand, ...]:
        return parse_operands(self.inputs)

    @property
    def immediates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(re.findall(r"<(\w+)>", self.text)))

    def bind(self, **values: int) -> "Instruction":
        """Return the form with its immediates filled in, named ``name_value…``."""
        missing = set(self.immediates) ^ set(values)
        if missing:
            raise ValueError(f"{self.name} takes the immediates {self.immediates}, got {tuple(values)}")
        text = re.sub(r"<(\w+)>", lambda m: str(values[m[1]]), self.text)
        suffix = "_".join(str(values[name]) for name in self.immediates)
        return replace(self, name=f"{self.name}_{suffix}", text=text)

    def render(self, spell) -> str:
        """Return the text with each operand spelled by ``spell(operand, first_index) -> str``.

        ``first_index`` counts registers, outputs first: LLVM's numbering of asm operands.
        """
        spelled, index = {}, 0
        for operand in (*self.out_operands, *self.in_operands):
            spelled[operand.name] = spell(operand, index)
            index += operand.registers
        return re.sub(r"\$(\w+)", lambda m: spelled[m[1]], self.text)

    def llvm_asm(self) -> tuple[str, str]:
        """Return the inline-asm text and constraint string for LLVM."""

        def spell(operand, index):
            names = ", ".join(f"${i}" for i in range(index, index + operand.registers))
            return f"{{{names}}}" if operand.count else names

        constraints = ["=" + CONSTRAINT[o.kind] for o in self.out_operands for _ in range(o.registers)]
        constraints += [CONSTRAINT[o.kind] for o in self.in_operands for _ in range(o.registers)]
        if not self.pure:
            constraints.append("~{memory}")
        return self.render(spell).replace("@uid", "${:uid}"), ",".join(constraints)

    def standalone_ptx(self) -> str:
        """Return a PTX block that declares registers for the operands and executes the form once (for tests)."""
        declarations = []

        def spell(operand, _):
            declarations.append(f".reg .{PTX_REGISTER[operand.kind]} {operand.name}_<{operand.registers}>;")
            names = ", ".join(f"{operand.name}_{i}" for i in range(operand.registers))
            return f"{{{names}}}" if operand.count else names

        body = self.render(spell).replace("@uid", self.name)
        return "{\n" + "\n".join(declarations) + f"\n{body}\n}}\n"
