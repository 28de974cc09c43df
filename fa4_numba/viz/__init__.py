"""Pictures: the shared-memory map, the tensor-memory map, and the timeline of the warp roles (matplotlib)."""

from .maps import draw_smem_map, draw_tmem_map, save_maps
from .timeline import draw_model_timeline, draw_timeline, save_timeline

__all__ = [
    "draw_model_timeline",
    "draw_smem_map",
    "draw_timeline",
    "draw_tmem_map",
    "save_maps",
    "save_timeline",
]
