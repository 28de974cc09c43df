"""What each instruction does, written once. Importing this package fills the registry."""

from . import (
    arithmetic,
    bit_fields,
    bulk,
    carry,
    comparisons,
    conversion,
    floating,
    integer,
    memory,
    moves,
    synchronisation,
    tensor_core,
)
from .registry import ALU, EFFECT, check

__all__ = [
    "ALU",
    "EFFECT",
    "arithmetic",
    "bit_fields",
    "bulk",
    "carry",
    "check",
    "comparisons",
    "conversion",
    "floating",
    "integer",
    "memory",
    "moves",
    "synchronisation",
    "tensor_core",
]
