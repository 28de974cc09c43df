"""Operands of PTX: registers, numbers, vectors, addresses, pairs of destinations."""

import re

from ...errors import PtxSyntaxError
from .module import Imm, Memory, Not, Pair, Sink, Special, Symbol, Vector
from .numbers import parse_number
from .scope import Scope

_OFFSET = re.compile(r"(.+?)\s*([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+))")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|laneid|warpid|nwarpid|smid|nsmid|clock|clock64"
    r"|clock_hi|globaltimer|cluster_ctarank|cluster_nctarank|is_explicit_cluster|dynamic_smem_size|total_smem_size"
    r"|lanemask_\w+|gridid)(\.[xyz])?"
)
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def parse_operand(text: str, scope: Scope, variables):
    """Return the operand that ``text`` means in a scope; ``variables`` are the module's names.

    Raises
    ------
    PtxSyntaxError
        Saying what it is not; the caller adds the line.
    """
    if text == "_":
        return Sink()
    if text[:1] in ("{", "["):
        if len(text) < 3 or text[-1] != _CLOSING[text[0]]:
            raise PtxSyntaxError(f"{text!r} is not closed, or empty")
        parse = _vector if text[0] == "{" else _memory
        return parse(text[1:-1].strip(), scope, variables)
    if "|" in text:
        names = [name.strip() for name in text.split("|")]
        if len(names) != 2:
            raise PtxSyntaxError(f"{text!r} names more than two destinations")
        return Pair(*(parse_operand(name, scope, variables) for name in names))
    if text.startswith("!"):
        register = scope.register(text[1:].strip())
        if register is None or register.width != 1:
            raise PtxSyntaxError(f"{text!r} is no predicate")
        return Not(register)
    return _plain(text, scope, variables)


def _plain(text: str, scope: Scope, variables):
    register = scope.register(text)
    if register is not None:
        return register
    if _SPECIAL.fullmatch(text):
        return Special(text)
    number = parse_number(text)
    if number is not None:
        return Imm(number)
    if (variable := scope.find("variables", text)) is not None:
        return variable
    if text in variables:
        return Symbol(text)
    raise PtxSyntaxError(f"{text!r} is neither a register, a number nor a variable")


def _vector(text: str, scope: Scope, variables) -> Vector:
    return Vector(tuple(parse_operand(part, scope, variables) for part in split(text)))


def _memory(text: str, scope: Scope, variables) -> Memory:
    """``base + offset``; in tensor copies with coordinates: ``base, {…}``."""
    parts = split(text)
    if not 1 <= len(parts) <= 2:
        raise PtxSyntaxError(f"[{text}] is no address: a base and coordinates are the most it can have")
    coordinates = parse_operand(parts[1], scope, variables) if len(parts) == 2 else None
    if coordinates is not None and not isinstance(coordinates, Vector):
        raise PtxSyntaxError(f"[{text}]: the coordinates must be a vector in braces")
    base, offset = parts[0], 0
    match = _OFFSET.fullmatch(base)
    if match:
        base, offset = match[1], int(match[3], 0) * (-1 if match[2] == "-" else 1)
    return Memory(_plain(base, scope, variables), offset, coordinates)


def split(text: str) -> list[str]:
    """Split at commas outside of braces, brackets and parentheses."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")] if text.strip() else []
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
    return [*out, last] if last or out else out
