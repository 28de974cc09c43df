"""Attention in numpy: ``exact`` in float64, ``online`` in float32, and ``tiled`` with the kernel's own roundings."""

from .exact import exact
from .online import online
from .tiled import tiled

__all__ = ["exact", "online", "tiled"]
