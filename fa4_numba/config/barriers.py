"""The mbarriers of every variant: names, arrivals, and whether bytes of a TMA copy count as well.

A barrier is named by the event that became true. Their number is what the derivation charges; a barrier that is charged
but has no use is ``reserved`` or ``unused`` and has no arrivals.
"""

from .derive import BARRIER_BYTES
from .region import Layout
from .registers import WARPGROUP


def add_barriers(cfg, layout: Layout) -> None:
    """Append every barrier of ``cfg`` in the order of shared memory."""
    if cfg.num_qk_stages < 1:
        _reserve_all(cfg, layout)
        return
    _tile_barriers(cfg, layout)
    _variant_barriers(cfg, layout)
    _ring_barriers(cfg, layout)


def barrier_bytes(cfg) -> int:
    """Bytes of all barriers."""
    layout = Layout()
    add_barriers(cfg, layout)
    return layout.at


def _add(layout: Layout, name: str, count: int, arrivals: int, note: str, *, tx: bool = False) -> None:
    for i in range(count):
        layout.add(f"{name}[{i}]", BARRIER_BYTES, "barrier", note, arrivals, tx)


def _reserve_all(cfg, layout):
    """Depth stages pinned below 1 mean nothing to a kernel, but the derivation charges barriers for them."""
    d = cfg._derived
    charged = d.misc_barriers + 2 * d.kv_slots + 2 * (cfg.num_qk_stages - 1) * cfg.num_kv_stages
    if cfg.use_ws:
        charged = d.misc_barriers + 2 * d.kv_slots
    _add(layout, "reserved", charged, 0, "charged by the config, unused")


def _tile_barriers(cfg, layout):
    """Twelve barriers between matrix multiply, softmax and correction: one pair of each, index = softmax group."""
    ctas = cfg.cta_group()  # a pair's softmax and correction threads all arrive at the leader's barriers
    _add(layout, "s_full", 2, 1, "S = QKᵀ is in tensor memory")
    _add(layout, "p_ready", 2, 2 * WARPGROUP * ctas, "first part of P is written and O is rescaled")
    _add(layout, "p_last", 2, WARPGROUP * ctas, "rest of P is written")
    _add(layout, "stat_full", 2, WARPGROUP, "softmax wrote the rows' statistics")
    _add(layout, "stat_empty", 2, WARPGROUP, "correction read the rows' statistics")
    _add(layout, "o_full", 2, 1, "the last P V is complete")


def _variant_barriers(cfg, layout):
    charged = cfg._derived.provisional_stages
    if cfg.num_q == 2:
        used = min(cfg.num_qk_stages, charged)
        _add(layout, "q1_full", used, 1, "Q tile 1 has landed (Q tile 0 shares K's barrier)", tx=True)
        _add(layout, "reserved", charged - used, 0, "charged by the config, unused")
    elif cfg.splitk_partitions > 1:
        arrivals = cfg.BM * cfg.splitk_partitions
        _add(layout, "publish", 1, arrivals, "all partial outputs of the cluster have arrived")


def _ring_barriers(cfg, layout):
    ring, stages = cfg.num_kv_stages, cfg.num_qk_stages
    if cfg.use_shared_kv:
        _add(layout, "kv_full", ring, 1, "K or V tile has landed", tx=True)
        _add(layout, "kv_empty", ring, 1, "the matrix multiplies that read the slot are complete")
        return
    _add(layout, "k_full", ring * stages, 1, "depth stage i % num_qk_stages of a K tile has landed", tx=True)
    _add(layout, "k_empty", ring * stages, 1, "Q Kᵀ that read it is complete")
    _add(layout, "v_full", ring, 1, "V tile has landed", tx=True)
    _add(layout, "v_empty", ring, 1, "P V that read it is complete")
    _add(layout, "unused", 2 * (cfg._derived.kv_slots - 2 * ring), 0, "of an odd slot that no ring uses")
