"""Counting what a loop costs, from SASS: issue slots of the shortest way around, and of which instructions."""

import re
from collections import Counter
from dataclasses import dataclass

_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)")
_LABEL = re.compile(r"(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclass(frozen=True)
class LoopCost:
    """Issue slots per iteration of a loop along its shortest path, and how often each opcode is among them."""

    slots: int
    opcodes: Counter


def _parse(sass: str):
    """Return (instructions as (opcode, conditional, target label), label → index)."""
    code, labels = [], {}
    for line in sass.splitlines():
        label = _LABEL.match(line.strip())
        if label:
            labels[label[1]] = len(code)
            continue
        found = _INSTRUCTION.search(line)
        if found:
            opcode, rest = found[3], found[4]
            target = _TARGET.search(rest) if opcode.startswith("BRA") else None
            conditional = found[2] is not None or bool(re.match(r"\s*!?U?P\d", rest))
            code.append((opcode, conditional, target[1] if target else None))
    return code, labels


def _successors(code, labels, i: int):
    opcode, conditional, target = code[i]
    if opcode.startswith("BRA"):
        out = [labels[target]] if target in labels else []
        return [*out, i + 1] if conditional else out
    if opcode.split(".")[0] in ("EXIT", "RET", "BRX", "JMP") and not conditional:
        return []
    return [i + 1]


def shortest_iteration(sass: str, containing: str, at_least: int = 32) -> LoopCost:
    """Return the cost of the shortest iteration of the loop with the most ``containing`` instructions.

    Parameters
    ----------
    sass : str
        Output of nvdisasm.
    containing : str
        Opcode that marks the loop, such as "MUFU.EX2".
    at_least : int
        How many of them the path must hold: tells the loop from spin waits inside of it.
    """
    code, labels = _parse(sass)
    best = None
    for i in range(len(code)):
        target = labels.get(code[i][2]) if code[i][2] else None
        if target is None or target > i:
            continue  # not a backward branch
        if sum(op.startswith(containing) for op, _, _ in code[target : i + 1]) < at_least:
            continue
        path = _shortest_path(code, labels, target, i)
        if path is None:
            continue
        opcodes = Counter(code[k][0] for k in path if not code[k][0].startswith("NOP"))
        if sum(n for op, n in opcodes.items() if op.startswith(containing)) < at_least:
            continue
        cost = LoopCost(sum(opcodes.values()), opcodes)
        best = cost if best is None or cost.slots < best.slots else best
    if best is None:
        raise ValueError(f"no loop with {at_least} or more {containing} in this SASS")
    return best


def _shortest_path(code, labels, start: int, end: int):
    """Return the instruction indices of the shortest forward path, or None (spin loops inside run once)."""
    previous, cost = {start: None}, {start: 1}
    for i in range(start, end):
        if i not in cost:
            continue
        for j in _successors(code, labels, i):
            if i < j <= end and cost[i] + 1 < cost.get(j, 1 << 30):
                cost[j], previous[j] = cost[i] + 1, i
    if end not in cost:
        return None
    path, i = [], end
    while i is not None:
        path.append(i)
        i = previous[i]
    return path[::-1]
