"""The table of implemented instructions.

Two kinds of functions are registered. ``@alu("add", …)`` describes a *lane-wise* instruction: it gets the instruction
and returns an :class:`Alu`, destinations, sources and a function of arrays. The interpreter calls that function with
numpy arrays of 32 lanes; the compiler calls the same function with traced values and gets LLVM code. So it may use
ufuncs, operators, ``np.where``, ``.astype`` and ``.view``, and the helpers of ``rounding`` and ``bits``: nothing that
looks at a value. ``@effect("mbarrier.init", …)`` gets the warp and the instruction and returns a function to call each
time; it returns None, or what the warp must wait for.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...errors import Fa4Error, UnknownInstructionError
from ..machine.state import WATCH_ACCESSES, WATCH_STAGES, WATCH_TMEM_STORES
from ..ptx.module import Imm, Instruction, Not, Pair, Reg, Sink, Special, Symbol, Vector

BRANCHES = ("bra", "ret", "exit")
CLOCKS = ("%clock", "%clock64", "%clock_hi", "%globaltimer")
SILENT = (
    "fence.",
    "membar",
    "nanosleep",
    "prefetch",
    "griddepcontrol",
    "bar.warp.sync",
    "tcgen05.fence",
    "tcgen05.wait::ld",
)
ALU: dict[str, Callable] = {}
EFFECT: dict[str, Callable] = {}
_tried: set[tuple] = set()  # kinds of lane-wise instructions whose functions have been run once


@dataclass
class Alu:
    """``dst[i] = function(*src)``, lane by lane. Each operand comes with its dtype.

    ``pairs``: 64-bit operands are two f32 each, and the function is applied to both.
    ``flushes``: the function flushes subnormal inputs and results, as ``.ftz`` asks; None: it does no f32 arithmetic.
    """

    dst: list[tuple]
    src: list[tuple]
    function: Callable
    pairs: bool = False
    flushes: bool | None = None


def alu(*names):
    """Register a description for opcodes (leading parts joined by dots)."""

    def register(function):
        ALU.update(dict.fromkeys(names, function))
        return function

    return register


def effect(*names):
    """Register a binder for opcodes (leading parts joined by dots)."""

    def register(function):
        EFFECT.update(dict.fromkeys(names, function))
        return function

    return register


def watched_by(ins: Instruction) -> int | None:
    """Return who cares for an effect that a program cannot see: bits of ``machine.state``; None if programs can."""
    if ins.op == "//fa4":
        return WATCH_STAGES if ins.text.startswith("stage") else None
    if ins.op.startswith("tcgen05.wait::st"):
        return WATCH_ACCESSES | WATCH_TMEM_STORES
    return WATCH_ACCESSES if ins.op.startswith(SILENT) else None


def find(ins: Instruction) -> tuple[str, Callable]:
    """Return ("alu" or "effect", function) for the longest registered prefix of the opcode."""
    if ins.parts[0] == "mov" and isinstance(ins.args[1], Special) and ins.args[1].name in CLOCKS:
        return "effect", EFFECT["mov.clock"]
    for n in range(len(ins.parts), 0, -1):
        name = ".".join(ins.parts[:n]).partition("::")[0]
        if name in EFFECT:
            return "effect", EFFECT[name]
        if name in ALU:
            return "alu", ALU[name]
    raise unknown(ins)


def unknown(ins: Instruction, why: str = "") -> UnknownInstructionError:
    close = difflib.get_close_matches(ins.op, [*ALU, *EFFECT], n=3, cutoff=0.3)
    return UnknownInstructionError(
        f"PTX line {ins.line}: {ins.op!r} is not implemented{why and ': ' + why} ({ins.text[:100]}); "
        f"nearest implemented: {', '.join(close) or 'none'}"
    )


def check(instructions) -> None:
    """Look every instruction up; raise ``UnknownInstructionError`` for the first that nothing implements."""
    for ins in instructions:
        if ins.op == "//fa4":
            ins.found = ("effect", marker)
        elif ins.parts[0] not in BRANCHES and ins.found is None:
            ins.found = understood(ins, lambda ins=ins: find(ins))
            if ins.found[0] == "alu":
                ins.alu = describe(ins)


def describe(ins: Instruction) -> Alu:
    """Return the description of a lane-wise instruction."""
    op = _with_inverted(understood(ins, lambda: ins.found[1](ins)))
    _check_registers(ins, op)
    kind = (ins.op, tuple(dtype for _, dtype in op.src), len(op.dst))
    if kind not in _tried:
        understood(ins, lambda: _try(op))
        _tried.add(kind)
    return op


def _try(op: Alu) -> None:
    """Run the function once, on zeros: it must take as many operands as there are, and give as many results."""
    with np.errstate(all="ignore"):
        result = op.function(*(np.zeros(2, dtype) for _, dtype in op.src))
    if len(op.dst) > 1 and len(result) != len(op.dst):
        raise ValueError(f"{len(result)} results for {len(op.dst)} registers")


def _check_registers(ins: Instruction, op: Alu) -> None:
    """Results need registers of their width, operands none that are narrower, and each must be something to read."""
    for i, (operand, dtype) in enumerate([*op.dst, *op.src]):
        kind, result = np.dtype(np.uint64 if op.pairs else dtype), i < len(op.dst)
        width = 1 if kind == np.bool_ else 8 * kind.itemsize
        if isinstance(operand, Reg):
            if operand.width < width or (operand.width > width and (result or width == 1)):
                raise unknown(ins, f"{operand.name} has {operand.width} bits where {width} are wanted")
        elif not isinstance(operand, Sink if result else Imm | Special | Symbol):
            raise unknown(ins, f"operand {i} is a {type(operand).__name__.lower()}")


def _with_inverted(op: Alu) -> Alu:
    """Read ``!p`` as p, and let the function invert it."""
    inverted = [isinstance(operand, Not) for operand, _ in op.src]
    if not any(inverted):
        return op
    function = op.function
    sources = [
        (operand.register if flag else operand, dtype) for flag, (operand, dtype) in zip(inverted, op.src)
    ]
    invert = lambda *values: function(*(~v if flag else v for flag, v in zip(inverted, values)))
    return replace(op, src=sources, function=invert)


def bind_effect(warp, ins: Instruction) -> Callable:
    """Return the function that does a non-lane-wise instruction for a warp, under its predicate."""
    run = understood(ins, lambda: ins.found[1](warp, ins))
    return run if ins.guard is None else _guarded(warp, ins, run)


def understood(ins, function):
    """Call ``function``; what goes wrong because the instruction is no good becomes our error."""
    try:
        return function()
    except Fa4Error:
        raise
    except (IndexError, KeyError, AttributeError, TypeError, ValueError, StopIteration) as error:
        raise unknown(ins, f"operands or modifiers not understood ({error})") from error


def _guarded(warp, ins, run):
    predicate = warp.row(ins.guard)

    def guarded():
        before = warp.mask.copy()
        lanes = before & (~predicate if ins.negate else predicate)
        if not lanes.any():
            return None
        warp.set_mask(lanes)
        try:
            return run()
        finally:
            warp.set_mask(before)

    return guarded


def marker(warp, ins):
    """A comment of the program for whoever watches: a role begins, or a stage of it."""
    key, _, value = ins.text.partition("=")

    def run():
        if key == "role":
            warp.role = value
        warp.cta.machine.mark(warp, key, value)

    return run


def vector_items(operand) -> tuple:
    """Return the operands of a vector, or a single operand as a tuple of one."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def pair_items(operand) -> tuple:
    """Return (d, p) of ``d|p``, with a sink for what is missing."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())
