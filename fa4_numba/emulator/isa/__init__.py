"""What each instruction does, written once. Importing this package fills the registry."""

from . import (
    arithmetic,
    bit_fields,
    bulk,
    carry,
    cluster,
    comparisons,
    control,
    conversion,
    floating,
    integer,
    launch_control,
    memory,
    moves,
    synchronisation,
    tcgen05_alloc,
    tcgen05_copy,
    tcgen05_data,
    tcgen05_mma,
    tensor_maps,
    tma,
    wide,
)
from .registry import ALU, EFFECT, check
from .tcgen05_data import land_stores
from .tensor_core import flush

__all__ = [
    "ALU",
    "EFFECT",
    "arithmetic",
    "bit_fields",
    "bulk",
    "carry",
    "check",
    "cluster",
    "comparisons",
    "control",
    "conversion",
    "end_of_warp",
    "floating",
    "integer",
    "launch_control",
    "memory",
    "moves",
    "synchronisation",
    "tcgen05_alloc",
    "tcgen05_copy",
    "tcgen05_data",
    "tcgen05_mma",
    "tensor_maps",
    "tma",
    "wide",
]


def end_of_warp(warp) -> None:
    """Complete what an ended warp has begun and nobody waits for."""
    land_stores(warp)
    flush(warp.cta)
