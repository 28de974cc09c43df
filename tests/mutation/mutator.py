"""One-line mutants of a PTX kernel: each plants a bug of a known kind at an instruction that the program executes."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A planted bug: ``kind``, the PTX line, and what stands there now."""

    kind: str
    line: int
    old: str
    new: str

    def apply(self, ptx: str) -> str:
        lines = ptx.split("\n")
        at, count = self.line - 1, self.old.count("\n") + 1
        text = "\n".join(lines[at : at + count])
        flat = " ".join(self.old.split())
        pattern = r"\s+".join(re.escape(word) for word in flat.split(" "))
        mutated, found = re.subn(pattern + r"\s*;", lambda m: self.new, text, count=1)
        if not found:  # several instructions on the line, or one over several lines
            text = "\n".join(lines[at : at + 8])
            count = 8
            mutated, found = re.subn(pattern + r"\s*;", lambda m: self.new, text, count=1)
        if not found:
            raise ValueError(f"line {self.line} does not read {self.old!r}")
        return "\n".join([*lines[:at], *mutated.split("\n"), *lines[at + count :]])

    def __str__(self):
        return f"{self.kind} at line {self.line}: {self.old[:90]}"


def _operands(text: str) -> list[str]:
    """Split an instruction's operands at commas outside of brackets."""
    rest = text.split(None, 1)[1] if not text.startswith("@") else text.split(None, 2)[2]
    parts, depth, start = [], 0, 0
    for i, char in enumerate(rest):
        depth += char in "[{(" or -(char in "]})")
        if char == "," and depth == 0:
            parts.append(rest[start:i].strip())
            start = i + 1
    return [*parts, rest[start:].strip()]


def _head(text: str) -> str:
    """Return guard and opcode."""
    words = text.split()
    return " ".join(words[:2]) if text.startswith("@") else words[0]


def _with(text: str, number: int, function) -> str:
    """Replace an operand by an expression of it, in a scope of its own."""
    operands = _operands(text)
    before, operands[number] = function(operands[number])
    return f"{{ {before} {_head(text)} {', '.join(operands)}; }}"


def _xor(amount: int, kind: str = "b32"):
    return lambda operand: (f".reg .{kind} mutant; xor.{kind} mutant, {operand}, {amount};", "mutant")


def _plus(amount: int, kind: str = "s32"):
    register = kind.replace("s", "b")
    return lambda operand: (f".reg .{register} mutant; add.{kind} mutant, {operand}, {amount};", "mutant")


def _dropped(text: str) -> str:
    return " "


def _wait_dropped(text: str) -> str:
    return f"setp.eq.u32 {_operands(text)[0]}, 0, 0;"


def _address_off(number: int, amount: int):
    """Add to the address in ``[base …]``."""

    def mutate(text):
        operands = _operands(text)
        operand = operands[number]
        inner = operand[1:-1].strip()
        inner = f"{inner}+{amount}" if "+" not in inner else inner + f"+{amount}"
        base = re.split(r"[+]", operand[1:-1])
        offset = amount + sum(int(part, 0) for part in base[1:])
        operands[number] = f"[{base[0].strip()}+{offset}]"
        return f"{_head(text)} {', '.join(operands)};"

    return mutate


# kind: (which instructions, how their text changes)
KINDS = {
    "dropped mbarrier wait": ("mbarrier.try_wait", _wait_dropped),
    "flipped parity": ("mbarrier.try_wait", lambda t: _with(t, 2, _xor(1))),
    "one arrival more expected": ("mbarrier.init", lambda t: _with(t, 1, _plus(1))),
    "one arrival less expected": ("mbarrier.init", lambda t: _with(t, 1, _plus(-1))),
    "too few bytes expected": ("mbarrier.arrive.expect_tx", lambda t: _with(t, 2, _plus(-16))),
    "too many bytes expected": ("mbarrier.arrive.expect_tx", lambda t: _with(t, 2, _plus(16))),
    "dropped arrive": ("mbarrier.arrive.", _dropped),
    "dropped commit": ("tcgen05.commit", _dropped),
    "dropped wait::st": ("tcgen05.wait::st", _dropped),
    "dropped proxy fence": ("fence.proxy.async", _dropped),
    "dropped bulk wait": ("cp.async.bulk.wait_group", _dropped),
    "dropped bulk commit": ("cp.async.bulk.commit_group", _dropped),
    "dropped named barrier": (("bar.sync", "barrier.sync"), _dropped),
    "dropped named arrive": (("bar.arrive", "barrier.arrive"), _dropped),
    "wrong lane quarter": ("tcgen05.ld", lambda t: _tmem_address(t, 32 << 16)),
    "column outside the allocation": ("tcgen05.ld", lambda t: _tmem_address(t, 512)),
    "one column off": ("tcgen05.st", lambda t: _tmem_address(t, 1)),
    "accumulator off": ("tcgen05.mma", lambda t: _tmem_address(t, 32)),
    "operand descriptor off": ("tcgen05.mma", lambda t: _with(t, 2, _plus(2, "s64"))),
    "swapped LBO and SBO": ("tcgen05.mma", lambda t: _with(t, 2, _swapped)),
    "another swizzle": ("tcgen05.mma", lambda t: _with(t, 2, _xor(1 << 62, "b64"))),
    "transposed B": ("tcgen05.mma", lambda t: _with(t, 3, _xor(1 << 16))),
    "fresh accumulator": ("tcgen05.mma", lambda t: _enable(t, False)),
    "stale accumulator": ("tcgen05.mma", lambda t: _enable(t, True)),
    "early dealloc": ("tcgen05.mma", lambda t: f"{t}; {_DEALLOC}"),
    "misaligned copy": ("cp.async.bulk.tensor", _address_off(0, 16)),
    "too many registers": ("setmaxnreg.inc", lambda t: f"{_head(t)} 256;"),
    "dropped fence before use": ("fence.mbarrier_init", _dropped),
}
_DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 512;"


def _tmem_address(text: str, amount: int) -> str:
    number = next(i for i, operand in enumerate(_operands(text)) if operand.startswith("["))
    return _address_off(number, amount)(text)


def _swapped(operand: str) -> tuple[str, str]:
    """Exchange bits 16–29 and 32–45 of a shared-memory descriptor."""
    return (
        ".reg .b64 mutant, low, high, both; "
        f"shr.u64 both, {operand}, 16; xor.b64 low, both, {operand}; "
        f"shr.u64 high, {operand}, 32; shr.u64 low, {operand}, 16; xor.b64 both, high, low; and.b64 both, both, 16383; "
        f"shl.b64 low, both, 16; shl.b64 high, both, 32; xor.b64 mutant, {operand}, low; xor.b64 mutant, mutant, high;",
        "mutant",
    )


def _enable(text: str, value: bool) -> str:
    operands = _operands(text)
    operands[4] = "mutant"
    comparison = "eq" if value else "ne"
    return (
        f"{{ .reg .pred mutant; setp.{comparison}.u32 mutant, 0, 0; {_head(text)} {', '.join(operands)}; }}"
    )


def mutants(instructions, executed: set[int], per_kind: int) -> list[Mutant]:
    """Return up to ``per_kind`` mutants of each kind, spread over the sites that execute.

    Parameters
    ----------
    instructions : list
        Decoded instructions of the kernel.
    executed : set of int
        PTX lines that the unmutated program executes.
    """
    made = []
    for kind, (prefixes, change) in KINDS.items():
        sites = [ins for ins in instructions if ins.line in executed and _opcode(ins).startswith(prefixes)]
        if kind == "dropped arrive":
            sites = [ins for ins in sites if "expect_tx" not in ins.op]
        if kind == "misaligned copy":
            sites = [ins for ins in sites if "complete_tx" in ins.op]
        step = max(len(sites) / per_kind, 1)
        for i in range(min(per_kind, len(sites))):
            ins = sites[int(i * step)]
            made.append(Mutant(kind, ins.line, ins.text, change(ins.text)))
    return made


def _opcode(ins) -> str:
    return ins.op
