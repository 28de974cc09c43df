"""What each instruction does, written once. Importing this package fills the registry."""

from . import bulk, cluster, conversion, floating, integer, memory, synchronisation, tensor_core
from .registry import ALU, EFFECT, check

__all__ = [
    "ALU",
    "EFFECT",
    "bulk",
    "check",
    "cluster",
    "conversion",
    "floating",
    "integer",
    "memory",
    "synchronisation",
    "tensor_core",
]
