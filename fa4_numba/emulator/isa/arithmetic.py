"""Opcodes that all types of numbers share: the type decides who describes them."""

from . import floating, halves, integer
from .registry import Alu, alu

_INTEGER = {
    "add": integer.sum_or_extremum,
    "sub": integer.sum_or_extremum,
    "min": integer.sum_or_extremum,
    "max": integer.sum_or_extremum,
    "mul": integer.multiply,
    "div": integer.quotient,
    "rem": integer.quotient,
    "neg": integer.sign,
    "abs": integer.sign,
}
_FLOAT = {
    "add": floating.float_add,
    "sub": floating.float_sub,
    "mul": floating.float_mul,
    "div": floating.float_div,
    "min": floating.float_extremum,
    "max": floating.float_extremum,
    "neg": floating.float_sign,
    "abs": floating.float_sign,
}
_HALF = {
    "add": halves.half_add,
    "sub": halves.half_sub,
    "mul": halves.half_mul,
    "min": lambda ins: halves.half_pick(ins, *floating.extremum_of(ins)),
    "max": lambda ins: halves.half_pick(ins, *floating.extremum_of(ins)),
    "neg": halves.half_sign,
    "abs": halves.half_sign,
}


@alu(*_INTEGER)
def arithmetic(ins) -> Alu:
    """d = a op b."""
    if not floating.is_float(ins):
        table = _INTEGER
    elif ins.parts[-1] in ("f32", "f64", "f32x2") or ins.parts[-2] == "f32":
        table = _FLOAT
    else:
        table = _HALF
    return table[ins.parts[0]](ins)
