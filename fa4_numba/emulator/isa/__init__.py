"""What each instruction does, written once. Importing this package fills the registry."""

from . import bulk, cluster, conversion, floating, integer, memory, synchronisation, tensor_core
from .registry import ALU, EFFECT, bind_block, check

__all__ = [
    "ALU",
    "EFFECT",
    "bind_block",
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
