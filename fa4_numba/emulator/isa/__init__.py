"""What each instruction does, written once. Importing this package fills the registry."""

from importlib import import_module
from pkgutil import iter_modules

from .registry import ALU, EFFECT, check
from .tcgen05_data import land_stores
from .tensor_core import flush

__all__ = ["ALU", "EFFECT", "check", "end_of_warp"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def end_of_warp(warp) -> None:
    """Complete what an ended warp has begun and nobody waits for."""
    land_stores(warp)
    flush(warp.cta)
