"""The table of implemented instructions, and how a decoded instruction becomes something that runs.

Two kinds of functions are registered. ``@alu("add", …)`` describes a *lane-wise* instruction: it gets the instruction
and returns an :class:`Alu`, destinations, sources and a function of arrays. ``@effect("mbarrier.init", …)`` gets the
warp and the instruction and returns a function to call each time; it returns None, or what the warp must wait for.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import Fa4Error, UnknownInstructionError
from ..ptx.module import Instruction, Pair, Sink, Special, Symbol, Vector

ALU: dict[str, Callable] = {}
EFFECT: dict[str, Callable] = {}


@dataclass
class Alu:
    """``dst[i] = function(*src)``, lane by lane. Each operand comes with its dtype; ``pairs``: two f32 per lane.

    ``fast(targets, sources)``, if given, returns a function that does the same for all lanes with less overhead:
    it may keep scratch arrays.
    """

    dst: list[tuple]
    src: list[tuple]
    function: Callable
    pairs: bool = False
    fast: Callable | None = None


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


def find(ins: Instruction) -> tuple[str, Callable]:
    """Return ("alu" or "effect", function) for the longest registered prefix of the opcode."""
    if ins.parts[0] == "mov" and isinstance(ins.args[1], Special | Symbol):
        return "effect", EFFECT["mov.special"]
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
    """Raise ``UnknownInstructionError`` for the first instruction that nothing implements."""
    for ins in instructions:
        if ins.parts[0] not in ("bra", "ret", "exit", "//fa4"):
            find(ins)


def bind_block(warp, block) -> list[tuple]:
    """Return the block as steps: (functions for a full warp, for a partial one, how many, effect, instruction)."""
    steps, full, masked = [], [], []
    for ins in block.body:
        if ins.found is None:
            ins.found = ("effect", _marker) if ins.op == "//fa4" else find(ins)
        kind, describe = ins.found
        try:
            if kind == "alu":
                if ins.alu is None:
                    ins.alu = describe(ins)
                functions = _bind_alu(warp, ins, ins.alu)
                full.append(functions[0])
                masked.append(functions[1])
                continue
            run = describe(warp, ins)
        except Fa4Error:
            raise
        except (IndexError, KeyError, AttributeError, TypeError, ValueError, StopIteration) as error:
            raise unknown(ins, f"operands or modifiers not understood ({error})") from error
        steps.append((full, masked, len(full) + (ins.op != "//fa4"), _guarded(warp, ins, run), ins))
        full, masked = [], []
    if full:
        steps.append((full, masked, len(full), None, None))
    return steps


def _marker(warp, ins):
    key, _, value = ins.text.partition("=")

    def run():
        if key == "role":
            warp.role = value
        warp.cta.machine.mark(warp, key, value)

    return run


def _guarded(warp, ins, run):
    """Run an effect under its predicate."""
    if ins.guard is None:
        return run
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


def _bind_alu(warp, ins, op: Alu):
    sources = [_rows(warp, operand, dtype, op.pairs) for operand, dtype in op.src]
    targets = [
        (i, warp.destination(operand, dtype))
        for i, (operand, dtype) in enumerate(op.dst)
        if not isinstance(operand, Sink)
    ]
    mask = warp.mask_pairs if op.pairs else warp.mask
    function = op.function
    if ins.guard is None and isinstance(function, np.ufunc) and len(targets) == 1:
        target = targets[0][1]
        return partial(function, *sources, out=target), partial(function, *sources, out=target, where=mask)
    if len(op.dst) == 1:
        targets = [(None, target) for _, target in targets]

    def write(where):
        result = function(*sources)
        for i, target in targets:
            np.copyto(target, result if i is None else result[i], where=where)

    if ins.guard is None:
        full = (
            op.fast([t for _, t in targets], sources)
            if op.fast and len(targets) == len(op.dst)
            else partial(write, True)
        )
        return full, partial(write, mask)
    predicate = warp.row(ins.guard)

    def guarded():
        allowed = ~predicate if ins.negate else predicate
        write(warp.mask_pairs & np.repeat(allowed, 2) if op.pairs else warp.mask & allowed)

    return guarded, guarded


def _rows(warp, operand, dtype, pairs):
    rows = warp.source(operand, np.uint64 if pairs else dtype)
    return rows.view(dtype) if pairs else rows


def vector_items(operand) -> tuple:
    """Return the operands of a vector, or a single operand as a tuple of one."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def pair_items(operand) -> tuple:
    """Return (d, p) of ``d|p``, with a sink for what is missing."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())
