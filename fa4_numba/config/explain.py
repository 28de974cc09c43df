"""``explain()``: the derivation of a config in words, with its numbers."""


def explain(cfg) -> str:
    """Return one line per step of the derivation."""
    width = cfg.shared_kv_cols()
    granularity = cfg._derived.granularity
    slots = cfg._derived.kv_slots
    lines = [
        f"BM = {cfg.BM}: {cfg.num_q} Q tile(s) of {cfg.BM // cfg.num_q} rows per CTA",
        f"MMA_M = {cfg.MMA_M}, MMA_K = {cfg.MMA_K} ({cfg.qkv_dtype}: 32 bytes of depth per matrix instruction)",
        f"swizzle {cfg.swizzle_mode}: {granularity} elements per row of an atom, so depths are padded to multiples of it: "
        f"qk {cfg.qk_depth} -> {cfg.padded_qk_depth}, ov {cfg.ov_depth} -> {cfg.padded_ov_depth}",
        f"fuse_gqa = {cfg.fuse_gqa}: group = {cfg.group}"
        + (
            f" divides MMA_M, so a tile holds {cfg.BM_eff()} positions x {cfg.group} heads"
            if cfg.fuse_gqa
            else ""
        ),
        f"BN = {cfg.BN}: tensor memory has {cfg.sm100_tmem_cols} columns; the widest of V and nope takes {width}; "
        "the scores share the rest"
        + (f"; capped or rounded for pages of {cfg.page_size}" if cfg.page_size else ""),
        f"TMEM columns: S0 {cfg.TMEM_S0}, S1 {cfg.TMEM_S1}, O0 {cfg.TMEM_O0}, O1 {cfg.TMEM_O1}; {cfg.tmem_used} used; "
        f"P overwrites S (P0 {cfg.TMEM_P0}, P1 {cfg.TMEM_P1})",
        f"K/V ring: {slots} slots fit beside Q; "
        + (
            f"an odd number, so K and V share one ring of {cfg.num_kv_stages}"
            if cfg.use_shared_kv
            else f"split into {cfg.num_kv_stages} for K and {cfg.num_kv_stages} for V"
        ),
        f"num_qk_stages = {cfg.num_qk_stages}: a K tile arrives in pieces of BK0 = {cfg.BK0} columns",
        f"smem_used = {cfg.smem_used} of {cfg.sm100_smem_carveout} bytes",
        "supported" if cfg.supported() else "not supported:\n  " + "\n  ".join(cfg.why_unsupported()),
    ]
    return "\n".join(lines)
