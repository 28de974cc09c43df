"""Where everything lies: shared memory in bytes, tensor memory in columns, and the mbarriers with their arrivals."""

from dataclasses import dataclass

from .derive import BARRIER_BYTES, CORRECTION_BYTES

TMEM_SLOT_BYTES = 4
WARPGROUP = 128


@dataclass(frozen=True)
class Region:
    """A named interval: bytes of shared memory or columns of tensor memory.

    ``arrivals`` is set for mbarriers: how many arrivals complete a phase (0: reserved, never initialised).
    """

    name: str
    start: int
    end: int
    kind: str
    note: str = ""
    arrivals: int = 0

    @property
    def size(self) -> int:
        return self.end - self.start


class _Layout:
    """Collects regions one after another."""

    def __init__(self, start: int = 0):
        self.at = start
        self.regions: list[Region] = []

    def add(self, name: str, size: int, kind: str, note: str = "", arrivals: int = 0) -> None:
        self.regions.append(Region(name, self.at, self.at + size, kind, note, arrivals))
        self.at += size

    def barriers(self, name: str, count: int, arrivals: int, note: str) -> None:
        for i in range(count):
            self.add(f"{name}[{i}]", BARRIER_BYTES, "barrier", note, arrivals)


def smem_map(cfg) -> tuple[Region, ...]:
    """Regions in order, disjoint; barriers are one region here (``barrier_map`` lists them)."""
    layout = _Layout()
    tiles = cfg.num_q
    for s in range(tiles):
        layout.add(
            f"q[{s}]",
            cfg.BM * cfg._derived.q_row_bytes // tiles,
            "q",
            "Q tile; later the O tile on its way out",
        )
    _kv_regions(cfg, layout)
    layout.add(
        "correction", CORRECTION_BYTES, "statistics", "per row: factor of O, at the end the row sum (f32)"
    )
    if cfg.scale_dtype_size:
        layout.add("q_scale", cfg.BM * cfg.scale_dtype_size, "scale", "one scale per query row")
    barriers = barrier_bytes(cfg)
    layout.add("barriers", barriers, "barrier", f"{barriers // BARRIER_BYTES} mbarriers")
    layout.add(
        "tmem_slot", TMEM_SLOT_BYTES, "tmem address", "where tcgen05.alloc writes the tensor memory address"
    )
    return tuple(layout.regions)


def _kv_regions(cfg, layout: _Layout) -> None:
    slot = cfg.k_rows_per_cta() * cfg.shared_kv_cols() * cfg.qkv_dtype_size
    if cfg.use_ws:
        slot = cfg.BN * (cfg.shared_kv_cols() // cfg.num_qk_stages) * cfg.qkv_dtype_size
    if cfg.use_shared_kv:
        for i in range(cfg.num_kv_stages):
            layout.add(f"kv[{i}]", slot, "kv", "K or V tile, alternating")
    else:
        for i in range(cfg.num_kv_stages):
            layout.add(f"k[{i}]", slot, "k", "K tile")
        for i in range(cfg.num_kv_stages):
            layout.add(f"v[{i}]", slot, "v", "V tile")
        if cfg._derived.kv_slots > 2 * cfg.num_kv_stages:  # single_o with an odd number of slots
            layout.add("unused_slot", slot, "unused", "an odd slot that no ring uses")
    if cfg.use_ws:
        return
    extras = (cfg._derived.kv_slots + 1) // 2
    rope = cfg.k_rows_per_cta() * cfg.rope_depth() * cfg.rope_dtype_size
    scale = cfg.k_rows_per_cta() * cfg.scale_dtype_size
    for i in range(extras if rope else 0):
        layout.add(f"k_rope[{i}]", rope, "k", "rotary part of a K tile")
    for i in range(extras if scale else 0):
        layout.add(f"k_scale[{i}]", scale, "scale", "one scale per key")


def _barriers(cfg, layout: _Layout) -> None:
    if cfg.num_qk_stages < 1:  # a pin below 1 means nothing to a kernel, but is charged
        charged = (
            cfg._derived.misc_barriers
            + 2 * cfg._derived.kv_slots
            + 2 * (cfg.num_qk_stages - 1) * cfg.num_kv_stages
        )
        layout.barriers("reserved", charged, 0, "charged by the config, unused")
        return
    both = 2 * WARPGROUP * cfg.cta_group()
    layout.barriers("s_full", 2, 1, "S = QKᵀ is in tensor memory")
    layout.barriers("p_ready", 2, both, "first part of P is written and O is rescaled")
    layout.barriers("p_last", 2, WARPGROUP * cfg.cta_group(), "rest of P is written")
    layout.barriers("stat_full", 2, WARPGROUP, "softmax wrote the rows' statistics")
    layout.barriers("stat_empty", 2, WARPGROUP, "correction read the rows' statistics")
    layout.barriers("o_full", 2, 1, "the last P V is complete")
    provisional, stages = cfg._derived.provisional_stages, cfg.num_qk_stages
    if cfg.num_q == 2:
        layout.barriers(
            "q1_full", min(stages, provisional), 1, "Q tile 1 has landed (Q tile 0 shares K's barrier)"
        )
        layout.barriers(
            "reserved", provisional - min(stages, provisional), 0, "charged by the config, unused"
        )
    elif cfg.splitk_partitions > 1:
        layout.barriers("publish", 1, cfg.BM * cfg.splitk_partitions, "all partial outputs have arrived")
    ring = cfg.num_kv_stages
    if cfg.use_shared_kv:
        layout.barriers("kv_full", ring, 1, "K or V tile has landed")
        layout.barriers("kv_empty", ring, 1, "the matrix multiplies that read the slot are complete")
        return
    layout.barriers("k_full", ring * stages, 1, "K tile (or depth stage) has landed")
    layout.barriers("k_empty", ring * stages, 1, "Q Kᵀ that read it is complete")
    layout.barriers("v_full", ring, 1, "V tile has landed")
    layout.barriers("v_empty", ring, 1, "P V that read it is complete")
    layout.barriers("unused", 2 * (cfg._derived.kv_slots - 2 * ring), 0, "of an odd slot that no ring uses")


def barrier_bytes(cfg) -> int:
    """Bytes of all barriers."""
    layout = _Layout()
    _barriers(cfg, layout)
    return layout.at


def barrier_map(cfg) -> tuple[Region, ...]:
    """Every mbarrier at its byte offset in shared memory."""
    start = next(region.start for region in smem_map(cfg) if region.name == "barriers")
    layout = _Layout(start)
    _barriers(cfg, layout)
    return tuple(layout.regions)


def tmem_map(cfg) -> tuple[Region, ...]:
    """Column regions: scores S (with P on top of them) and outputs O."""
    scores, o = cfg.TMEM_S1 - cfg.TMEM_S0, cfg.padded_ov_depth
    p_cols = scores * cfg.qkv_dtype_size // 4
    regions = [
        Region("S0", cfg.TMEM_S0, cfg.TMEM_S0 + scores, "scores", "f32 scores of Q tile 0"),
        Region("S1", cfg.TMEM_S1, cfg.TMEM_S1 + scores, "scores", "f32 scores of Q tile 1"),
        Region("P0", cfg.TMEM_P0, cfg.TMEM_P0 + p_cols, "probabilities", "overwrites the front of S0"),
        Region("P1", cfg.TMEM_P1, cfg.TMEM_P1 + p_cols, "probabilities", "overwrites the front of S1"),
        Region("O0", cfg.TMEM_O0, cfg.TMEM_O0 + o, "output", "f32 output of Q tile 0"),
    ]
    if not cfg.single_o:
        regions.append(Region("O1", cfg.TMEM_O1, cfg.TMEM_O1 + o, "output", "f32 output of Q tile 1"))
    return tuple(regions)
