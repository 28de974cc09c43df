"""Where the K and V of each KV tile live in the ring of SMEM slots, and which barriers guard them.

Tile ``i`` counts from 0 in the order of processing. In a *shared* ring K and V alternate: K of tile i is item 2i, V
item 2i + 1. In a *split* layout K and V have a ring each, and K may arrive in stages along the depth. Item ``n`` of a
ring of ``size`` slots uses slot ``n % size`` in lap ``n // size``; the lap's lowest bit is the barriers' parity.
"""

from types import SimpleNamespace

from ..common.device import U32, device_inline
from .geometry import Geometry


def _address(first: int, pitch: int, size: int, step: int, start: int):
    """Return a device function: tile → byte offset of its slot (or barrier) in shared memory."""
    base, pitch_u, size_u, step_u, start_u = U32(first), U32(pitch), U32(size), U32(step), U32(start)

    @device_inline
    def address(tile):
        item = U32(U32(tile) * step_u + start_u)
        return U32(base + U32(item % size_u) * pitch_u)

    return address


def _parity(size: int, step: int, start: int):
    size_u, step_u, start_u = U32(size), U32(step), U32(start)

    @device_inline
    def parity(tile):
        item = U32(U32(tile) * step_u + start_u)
        return U32(U32(item // size_u) & U32(1))

    return parity


def _operand(data: int, data_pitch: int, full: int, empty: int, barriers_per_slot: int, size, step, start):
    pitch = 8 * barriers_per_slot
    return SimpleNamespace(
        data=_address(data, data_pitch, size, step, start),
        full=_address(full, pitch, size, step, start),
        empty=_address(empty, pitch, size, step, start),
        parity=_parity(size, step, start),
    )


def make_ring(g: Geometry) -> SimpleNamespace:
    """Return ``k`` and ``v``, each with device functions ``data full empty parity`` of the tile index.

    For K in stages, ``full`` and ``empty`` are the first stage's barriers; stage j's follow at ``+ 8 j`` bytes.
    """
    size = g.cfg.num_kv_stages
    if g.cfg.use_shared_kv:
        pitch = g.smem("kv[1]") - g.smem("kv[0]")
        names = g.smem("kv[0]"), pitch, g.barrier("kv_full[0]"), g.barrier("kv_empty[0]"), 1, size
        return SimpleNamespace(k=_operand(*names, 2, 0), v=_operand(*names, 2, 1))

    def own(name: str, barriers_per_slot: int):
        pitch = g.smem(f"{name}[1]") - g.smem(f"{name}[0]")
        full, empty = g.barrier(f"{name}_full[0]"), g.barrier(f"{name}_empty[0]")
        return _operand(g.smem(f"{name}[0]"), pitch, full, empty, barriers_per_slot, size, 1, 0)

    return SimpleNamespace(k=own("k", g.cfg.num_qk_stages), v=own("v", 1))
