"""Where everything lies: shared memory in bytes, tensor memory in columns, and the mbarriers with their arrivals."""

from ..errors import ConfigError
from .barriers import add_barriers, barrier_bytes
from .derive import BARRIER_BYTES, CORRECTION_BYTES, TMEM_SLOT_BYTES
from .region import Layout, Region

__all__ = ["Region", "barrier_map", "smem_map", "tmem_map"]


def smem_map(cfg) -> tuple[Region, ...]:
    """Return the regions of shared memory in order, without gaps; the last ends at ``smem_used``.

    The barriers are one region here; :func:`barrier_map` lists them. Tile bases are multiples of the swizzle atom (8 rows;
    1024 bytes for 128B).

    Raises
    ------
    ConfigError
        If the sizes of an unsupported config are negative: such a layout does not exist.
    """
    layout = Layout()
    for s in range(cfg.num_q):
        length = cfg.BM * cfg._derived.q_row_bytes // cfg.num_q
        layout.add(f"q[{s}]", length, "q", "Q tile; later the O tile on its way out")
    _add_kv(cfg, layout)
    _add_k_extras(
        cfg, layout, "k_rope", cfg.rope_depth() * cfg.rope_dtype_size, "k", "rotary part of a K tile"
    )
    layout.add(
        "correction", CORRECTION_BYTES, "statistics", "per row: factor of O, at the end the row sum (f32)"
    )
    if cfg.scale_dtype_size:
        layout.add("q_scale", cfg.BM * cfg.scale_dtype_size, "scale", "one scale per query row")
    _add_k_extras(cfg, layout, "k_scale", cfg.scale_dtype_size, "scale", "one scale per key")
    barriers = barrier_bytes(cfg)
    layout.add("barriers", barriers, "barrier", f"{barriers // BARRIER_BYTES} mbarriers")
    layout.add("tmem_slot", TMEM_SLOT_BYTES, "tmem address", "tcgen05.alloc writes the tensor memory address")
    return _checked(cfg, layout.regions, "shared-memory", "smem_used")


def _add_kv(cfg, layout: Layout) -> None:
    """K and V tiles: one ring, or K's ring and then V's."""
    width = cfg.shared_kv_cols()
    if cfg.use_ws:  # packed layouts load sub-tiles of one depth stage
        length = cfg.BN * (width // cfg.num_qk_stages if cfg.num_qk_stages else 0) * cfg.qkv_dtype_size
    else:
        length = cfg.BN * width // cfg.cta_group() * cfg.qkv_dtype_size
    ring = range(cfg.num_kv_stages)
    if cfg.use_shared_kv:
        for i in ring:
            layout.add(f"kv[{i}]", length, "kv", "K or V tile, alternating")
        return
    for i in ring:
        layout.add(f"k[{i}]", length, "k", "K tile")
    for i in ring:
        layout.add(f"v[{i}]", length, "v", "V tile")
    if _has_odd_slot(cfg):
        layout.add("unused_slot", length, "unused", "an odd slot that no ring uses")


def _add_k_extras(cfg, layout: Layout, name: str, row_bytes: int, kind: str, note: str) -> None:
    """What comes with a K tile in a buffer of its own: one for two slots, since every other slot holds V."""
    if cfg.use_ws or not row_bytes:
        return
    charged = (cfg._derived.kv_slots + 1) // 2
    length = cfg.k_rows_per_cta() * row_bytes
    for i in range(charged):
        idle = _has_odd_slot(cfg) and i == charged - 1
        layout.add(
            f"{name}_unused" if idle else f"{name}[{i}]",
            length,
            "unused" if idle else kind,
            "of an odd slot that no ring uses" if idle else note,
        )


def _has_odd_slot(cfg) -> bool:
    """A single O accumulator keeps K and V apart even if the number of slots is odd; one stays idle."""
    return not cfg.use_shared_kv and cfg._derived.kv_slots > 2 * cfg.num_kv_stages


def barrier_map(cfg) -> tuple[Region, ...]:
    """Return every mbarrier at its byte offset in shared memory, with arrivals and ``tx``.

    Raises
    ------
    ConfigError
        As :func:`smem_map`.
    """
    start = next(region.start for region in smem_map(cfg) if region.name == "barriers")
    layout = Layout(start)
    add_barriers(cfg, layout)
    return tuple(layout.regions)


def tmem_map(cfg) -> tuple[Region, ...]:
    """Return the column regions of tensor memory: scores S (P on top of them), outputs O; the last ends at ``tmem_used``.

    Raises
    ------
    ConfigError
        If the sizes of an unsupported config are negative: such a layout does not exist.
    """
    scores, o = cfg.TMEM_S1 - cfg.TMEM_S0, cfg.padded_ov_depth
    p_cols = scores * cfg.qkv_dtype_size // 4
    one, two = _owners(cfg)
    regions = [
        Region("S0", cfg.TMEM_S0, cfg.TMEM_S0 + scores, "scores", f"f32 scores of {one}"),
        Region("S1", cfg.TMEM_S1, cfg.TMEM_S1 + scores, "scores", f"f32 scores of {two}"),
        Region("P0", cfg.TMEM_P0, cfg.TMEM_P0 + p_cols, "probabilities", "overwrites the front of S0"),
        Region("P1", cfg.TMEM_P1, cfg.TMEM_P1 + p_cols, "probabilities", "overwrites the front of S1"),
    ]
    if cfg.single_o:
        regions.append(Region("O0", cfg.TMEM_O0, cfg.TMEM_O0 + o, "output", "f32 output, the only one"))
    else:
        regions.append(Region("O0", cfg.TMEM_O0, cfg.TMEM_O0 + o, "output", f"f32 output of {one}"))
        regions.append(Region("O1", cfg.TMEM_O1, cfg.TMEM_O1 + o, "output", f"f32 output of {two}"))
    return _checked(cfg, regions, "tensor-memory", "tmem_used")


def _owners(cfg) -> tuple[str, str]:
    """Whose scores and outputs the first and second region of a pair hold."""
    return ("Q tile 0", "Q tile 1") if cfg.num_q == 2 else ("even K/V tiles", "odd K/V tiles")


def _checked(cfg, regions: list[Region], memory: str, total: str) -> tuple[Region, ...]:
    """Refuse a map that does not add up: only arguments that describe no kernel at all lead to one."""
    end = max(region.end for region in regions)
    if end != getattr(cfg, total) or any(region.size < 0 for region in regions):
        reasons = [*_negative_sizes(cfg), *cfg.why_unsupported()]
        raise ConfigError(
            f"this config has no {memory} map: {total} = {getattr(cfg, total)} is no sum of regions\n  "
            + "\n  ".join(reasons)
        )
    return tuple(regions)


def _negative_sizes(cfg):
    """Absurd sizes, which the derivation carries through (and ``supported()`` does not always refuse)."""
    for name in ("qk_depth", "ov_depth", "BM", "num_kv_stages"):
        if getattr(cfg, name) < 0:
            yield f"{name} = {getattr(cfg, name)} is negative"
    if cfg._derived.provisional_stages < 1:
        yield f"num_qk_stages = {cfg._derived.provisional_stages} is below 1"
    if cfg.rope_depth() < 0:
        yield f"nope_depth = {cfg.nope_depth} exceeds qk_depth = {cfg.qk_depth}: K would have a rotary part of negative width"
