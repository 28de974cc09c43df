"""What each instruction does, written once. Importing this package fills the registry."""

from . import bulk, conversion, floating, integer, memory, synchronisation, tensor_core
from .registry import ALU, EFFECT, check

__all__ = [
    "ALU",
    "EFFECT",
    "bulk",
    "check",
    "conversion",
    "floating",
    "integer",
    "memory",
    "synchronisation",
    "tensor_core",
]
