"""What each instruction does, written once. Importing this package fills the registry."""

from importlib import import_module

from .registry import ALU, EFFECT, check
from .tcgen05_data import land_stores
from .tensor_core import flush

__all__ = ["ALU", "EFFECT", "check", "end_of_warp"]

_LANE_WISE = ("arithmetic", "bit_fields", "carry", "comparisons", "conversion", "floating", "integer", "moves")
_EFFECTS = ("bulk", "cluster", "memory", "synchronisation", "tcgen05_alloc", "tcgen05_data", "tcgen05_mma")
for _name in (*_LANE_WISE, *_EFFECTS):
    import_module(f"{__name__}.{_name}")


def end_of_warp(warp) -> None:
    """Complete what an ended warp has begun and nobody waits for."""
    land_stores(warp)
    flush(warp.cta)
