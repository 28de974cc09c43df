"""The rules that a config must obey, each with the message that says what to change."""

from ..hw import SM_100A
from .types import mod

SPLITK = (1, 2, 4, 6, 8, 10, 16)


def failed_rules(cfg) -> tuple[str, ...]:
    """Return the message of every rule that ``cfg`` breaks."""
    rules = [*_paging(cfg), *_base(cfg), *(_packed(cfg) if cfg.use_ws else ()), *_variant(cfg)]
    return tuple(message for holds, message in rules if not holds)


def _paging(cfg):
    small_pages = not cfg.is_mla and cfg.page_size != 0 and cfg.page_size < cfg.BN
    yield (
        not small_pages or mod(cfg.page_size, cfg.MMA_K) == 0,
        f"page_size = {cfg.page_size}: a page smaller than the {cfg.BN}-key tile must be a multiple of MMA_K = "
        f"{cfg.MMA_K}; nearest: {max(cfg.MMA_K, cfg.page_size // cfg.MMA_K * cfg.MMA_K)}",
    )
    yield (
        cfg.num_q == 1 or cfg.splitk_partitions == 1,
        f"splitk_partitions = {cfg.splitk_partitions}: split-K needs one Q tile; use BM=128",
    )


def _base(cfg):
    yield (
        cfg.BN >= 64,
        f"BN = {cfg.BN}: at least 64 keys per tile are needed; the heads (ov {cfg.ov_depth}, nope {cfg.nope_depth}) leave "
        f"{cfg.BN} score columns of tensor memory. Use BM=128 with single_o=True, or smaller heads",
    )
    yield (
        cfg.num_kv_stages >= 2,
        f"num_kv_stages = {cfg.num_kv_stages}: at least 2 K/V slots are needed; a smaller bn_cap makes slots smaller",
    )
    yield (
        cfg.tmem_used <= SM_100A.tmem_cols,
        f"tmem_used = {cfg.tmem_used}: tensor memory has {SM_100A.tmem_cols} columns; use single_o=True or smaller heads",
    )
    yield (
        cfg.smem_used <= SM_100A.smem_bytes_per_block,
        f"smem_used = {cfg.smem_used}: a block has {SM_100A.smem_bytes_per_block} bytes; use a smaller BM or bn_cap",
    )
    yield cfg.BM in (32, 64, 128, 256), f"BM = {cfg.BM}: take 256 (two Q tiles), 128, 64 or 32"


def _packed(cfg):
    yield not cfg.is_mla, f"BM = {cfg.BM}: packed layouts have no MLA; use BM=128 or 256"
    yield (
        cfg.rope_depth() == 0,
        f"rope depth {cfg.rope_depth()}: packed layouts take no rotary part; use BM=128 or 256",
    )
    yield (
        cfg.scale_dtype_size == 0,
        f"scale_dtype = {cfg.scale_dtype}: packed layouts take no scales; use BM=128 or 256",
    )
    yield cfg.num_kv_stages >= 4, f"num_kv_stages = {cfg.num_kv_stages}: packed layouts need at least 4 slots"
    if cfg.m_pack == 4:
        yield (
            cfg.BK0 == 64,
            f"BK0 = {cfg.BK0}: BM = 32 needs depth stages of 64 columns; pin num_qk_stages accordingly",
        )
    else:
        yield (
            mod(cfg.BN // 2, cfg.num_qk_stages) == 0,
            f"num_qk_stages = {cfg.num_qk_stages}: must divide BN / 2 = {cfg.BN // 2}",
        )


def _variant(cfg):
    qk = cfg.qk_depth
    if cfg.num_q == 1:
        yield (
            64 <= qk <= 256,
            f"qk_depth = {qk}: one Q tile takes 64 to 256; nearest: {min(max(qk, 64), 256)}",
        )
        yield not cfg.pair_cta, "pair_cta: CTA pairs need two Q tiles; use BM=256"
        yield (
            cfg.splitk_partitions in SPLITK,
            f"splitk_partitions = {cfg.splitk_partitions}: take one of {SPLITK}; nearest: "
            f"{min(SPLITK, key=lambda n: abs(n - cfg.splitk_partitions))}",
        )
    elif cfg.pair_cta:
        yield 64 < qk <= 128, f"qk_depth = {qk}: CTA pairs take 65 to 128; nearest: {min(max(qk, 65), 128)}"
    else:
        yield qk >= 64, f"qk_depth = {qk}: at least 64; pass 64, and let TMA pad the heads with zeros"
