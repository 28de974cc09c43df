"""``explain()``: the derivation of a config in words, with its numbers. Every field is named where it is decided."""

from .types import SWIZZLE_BYTES


def explain(cfg) -> str:
    """Return the derivation step by step, one line for each decision."""
    steps = {
        "Tile": _tile(cfg),
        "Depth": _depth(cfg),
        "Keys per tile": _keys(cfg),
        "TMEM columns": _tensor_memory(cfg),
        "Shared memory": _shared_memory(cfg),
        "Stages": _stages(cfg),
        "Cluster and pages": _cluster(cfg),
        "Verdict": _verdict(cfg),
    }
    return "\n".join(f"{title}\n  " + "\n  ".join(lines) for title, lines in steps.items())


def _tile(cfg):
    if cfg.num_q == 2:
        yield f"BM = {cfg.BM}, so num_q = 2: a CTA works on two Q tiles of 128 rows"
    else:
        yield f"BM = {cfg.BM}, so num_q = 1: a CTA works on one Q tile (two only for BM = 256)"
    why = (
        "CTA pairs share one matrix instruction of 256 rows"
        if cfg.pair_cta
        else "rows of one matrix instruction"
    )
    yield f"MMA_M = {cfg.MMA_M}: {why}; pair_cta = {cfg.pair_cta}"
    yield f"MMA_K = {cfg.MMA_K}: depth of one matrix instruction for {cfg.qkv_dtype} ({cfg.qkv_dtype_size} bytes)"
    packed = (
        f"{cfg.m_pack} key ranges side by side fill the 128 lanes"
        if cfg.use_ws
        else "MMA_M fills the 128 lanes of each CTA"
    )
    yield f"use_ws = {cfg.use_ws}, m_pack = {cfg.m_pack}: {packed}"
    yield f"num_q_heads = {cfg.num_q_heads}, group = {cfg.group}: num_kv_heads = {cfg.num_kv_heads}"
    yield f"fuse_gqa = {cfg.fuse_gqa}: {_fusion(cfg)}"


def _fusion(cfg) -> str:
    if cfg.fuse_gqa:
        return (
            f"group = {cfg.group} divides MMA_M, so a tile holds {cfg.BM_eff()} positions x {cfg.group} heads"
        )
    if cfg.is_mla:
        return "MLA tiles hold one head"
    if cfg.group <= 1:
        return f"group = {cfg.group}, there is nothing to fuse"
    return f"group = {cfg.group} does not divide MMA_M = {cfg.MMA_M}"


def _depth(cfg):
    asked = dict(cfg.args)["swizzle_mode"]
    forced = f" (8-bit types always; {asked} was asked for)" if asked != cfg.swizzle_mode else ""
    width = SWIZZLE_BYTES[cfg.swizzle_mode]
    yield (
        f"swizzle_mode = {cfg.swizzle_mode}{forced}: rows of {width} bytes = {cfg._derived.granularity} elements, so depths "
        "are padded to multiples of that"
    )
    yield f"qk_depth = {cfg.qk_depth} -> padded_qk_depth = {cfg.padded_qk_depth}"
    yield f"ov_depth = {cfg.ov_depth} -> padded_ov_depth = {cfg.padded_ov_depth}"
    origin = " (not given: ov_depth)" if dict(cfg.args)["nope_depth"] < 0 else ""
    yield f"nope_depth = {cfg.nope_depth}{origin} -> padded_nope_depth = {cfg.padded_nope_depth}; is_mla = {cfg.is_mla}"
    if cfg.rope_depth():
        size = (
            f"{cfg.rope_dtype_size} bytes each"
            if cfg.rope_dtype_size
            else "no rope dtype: K's are not charged"
        )
        yield f"rope depth = {cfg.padded_qk_depth} - {cfg.padded_nope_depth} = {cfg.rope_depth()} columns, {size}"


def _keys(cfg):
    d, width = cfg._derived, cfg.shared_kv_cols()
    share = (
        f"({cfg.sm100_tmem_cols} - {width}) // 2" if cfg.single_o else f"{cfg.sm100_tmem_cols // 2} - {width}"
    )
    if cfg.m_pack > 1:
        share = f"({share}) x m_pack {cfg.m_pack}"
    steps = [f"columns beside O (max of nope and ov, {width}): {share}"]
    steps += [f"multiple of {cfg.MMA_K}, at most 256: {d.bn_of_columns}"]
    if d.bn_capped != d.bn_of_columns:
        steps.append(f"bn_cap = {dict(cfg.args)['bn_cap']}: {d.bn_capped}")
    if d.bn_capped != cfg.BN:
        steps.append(
            f"page_size = {cfg.page_size} does not fit {d.bn_capped}, previous power of two: {cfg.BN}"
        )
    yield f"BN = {cfg.BN} (= BK1 = {cfg.BK1}): " + "; ".join(steps)


def _tensor_memory(cfg):
    scores = cfg.TMEM_S1 - cfg.TMEM_S0
    yield f"TMEM_S0 = {cfg.TMEM_S0}, TMEM_S1 = {cfg.TMEM_S1}: scores take BN // m_pack = {scores} columns each"
    yield f"TMEM_P0 = {cfg.TMEM_P0}, TMEM_P1 = {cfg.TMEM_P1}: P overwrites the scores it was made from"
    outputs = (
        "one accumulator, TMEM_O1 is the same" if cfg.single_o else f"{cfg.padded_ov_depth} columns each"
    )
    yield (
        f"TMEM_O0 = {cfg.TMEM_O0}, TMEM_O1 = {cfg.TMEM_O1}: outputs after the scores, {outputs}; single_o = {cfg.single_o}"
        + (" (needs one Q tile)" if dict(cfg.args)["single_o"] and not cfg.single_o else "")
    )
    yield f"tmem_used = {cfg.tmem_used} of {cfg.sm100_tmem_cols} columns"


def _shared_memory(cfg):
    d, total = cfg._derived, cfg.sm100_smem_carveout
    yield (
        f"fixed: {cfg.BM} rows of Q x {d.q_row_bytes} bytes + {cfg.BM} x {cfg.scale_dtype_size} of scales + 1024 of row "
        f"statistics + {d.misc_barriers} barriers x {cfg.mbar_size} + 4 = {d.fixed_bytes} bytes; {total - d.fixed_bytes} remain"
    )
    extra = f", and {d.k_extra_bytes} more for each K tile" if d.k_extra_bytes else ""
    yield f"a slot takes {d.slot_bytes} bytes with its two barriers{extra}: {d.kv_slots} slots"
    if cfg.use_ws:
        ring = f"packed layouts share one ring: num_kv_stages = {cfg.num_kv_stages}"
    elif cfg.use_shared_kv:
        ring = f"an odd number, so K and V share one ring: num_kv_stages = {cfg.num_kv_stages}"
    else:
        ring = f"a ring for K and one for V: num_kv_stages = {d.kv_slots} // 2 = {cfg.num_kv_stages}"
        if d.kv_slots > 2 * cfg.num_kv_stages:
            ring += " (single_o keeps them apart; one slot stays idle)"
    yield f"use_shared_kv = {cfg.use_shared_kv}: {ring}"
    yield f"smem_used = {cfg.smem_used} of {total} bytes"


def _stages(cfg):
    pinned = dict(cfg.args)["num_qk_stages"]
    wanted = cfg._derived.wanted_stages
    if cfg.is_mla:
        origin = "MLA takes its K tiles whole"
    else:
        origin = (
            "pinned by num_qk_stages"
            if pinned
            else "common divisor of the depth in swizzle rows and in MMA_K steps"
        )
        origin = f"{wanted} wanted ({origin})"
    if not cfg.is_mla and cfg.num_qk_stages != wanted:
        origin += ", but a shared ring has one" if cfg.use_shared_kv else ", but their barriers do not fit"
    yield f"num_qk_stages = {cfg.num_qk_stages}: {origin}; a K tile arrives in pieces of BK0 = {cfg.BK0} columns"
    yield f"num_pv_stages = {cfg.num_pv_stages}: P is published in two parts, so that P V starts early"


def _cluster(cfg):
    yield (
        f"splitk_partitions = {cfg.splitk_partitions}, dynamic_cluster_dim = {cfg.dynamic_cluster_dim}: "
        f"clusters of {cfg.cluster_size()} CTA(s)"
    )
    atoms = f"row_major_v_atoms = {cfg.row_major_v_atoms}, row_major_k_atoms = {cfg.row_major_k_atoms}"
    if cfg.page_size > 0:
        size = "smaller than a tile" if cfg.page_size < cfg.BN else "at least a tile"
        yield f"page_size = {cfg.page_size}, {size}: TMA boxes of {cfg.v_tma_box_rows()} keys; {atoms}"
    else:
        yield f"page_size = {cfg.page_size}, keys are contiguous: {atoms}"


def _verdict(cfg):
    yield "supported" if cfg.supported() else "not supported:"
    yield from (f"- {reason}" for reason in cfg.why_unsupported())
    if cfg.can_switch_to_1q():
        yield (
            f"a launch may switch to the body for one Q tile, so it reserves {cfg.launch_smem_used()} bytes"
        )
