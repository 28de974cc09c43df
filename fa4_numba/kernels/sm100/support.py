"""Which configs the sm_100a kernel serves. Imports no Numba: a cached kernel is loaded without it."""

from ...config import FA4Config
from ...errors import UnsupportedError

Q_TILE_ROWS = 128  # rows of one MMA; a CTA owns two such tiles
CHUNK_BYTES = 128  # one swizzle-128B row: the width of a TMA box and of an operand chunk


def heads_per_tile(cfg: FA4Config) -> int:
    """Return how many query heads are interleaved in a tile's rows: the group if fused, else 1."""
    return cfg.group if cfg.fuse_gqa else 1


def chunk_elems(cfg: FA4Config) -> int:
    """Return the elements of one chunk row."""
    return CHUNK_BYTES // cfg.qkv_dtype_size


def unsupported_reasons(cfg: FA4Config) -> list[str]:
    """Return why this kernel cannot serve ``cfg`` (empty if it can), each with the remedy."""
    reasons = list(cfg.why_unsupported())
    rules = [
        (cfg.num_q == 2, f"BM = {cfg.BM}: this kernel has two Q tiles per CTA; use BM=256"),
        (not cfg.pair_cta, "pair_cta: CTA pairs are not built yet; use pair_cta=False"),
        (not cfg.is_mla, "is_mla: MLA is not built yet; use is_mla=False"),
        (cfg.page_size == 0, f"page_size = {cfg.page_size}: paged K/V is not built yet; use page_size=0"),
        (cfg.qkv_dtype_size == 2, f"qkv_dtype = {cfg.qkv_dtype}: use bfloat16 or float16"),
        (
            cfg.scale_dtype_size == 0,
            f"scale_dtype = {cfg.scale_dtype}: scales are not built yet; use scale_dtype=None",
        ),
        (cfg.rope_depth() == 0, f"rope depth {cfg.rope_depth()}: pass nope_depth=qk_depth"),
        (cfg.swizzle_mode == "128B", f"swizzle_mode = {cfg.swizzle_mode}: use '128B'"),
        (cfg.splitk_partitions == 1, "splitk_partitions: split-K is not built yet; use 1"),
        (
            cfg.padded_qk_depth >= cfg.padded_ov_depth,
            f"qk_depth {cfg.qk_depth} < ov_depth {cfg.ov_depth}: O is staged where Q was; pass "
            "qk_depth=ov_depth (Q and K are padded with exact zeros)",
        ),
        (
            cfg.BN % 32 == 0 and cfg.BN <= 128,
            f"BN = {cfg.BN}: use a multiple of 32, at most 128 (bn_cap=128)",
        ),
        (cfg.padded_qk_depth <= 128, f"qk_depth = {cfg.qk_depth}: at most 128"),
    ]
    return reasons + [why for holds, why in rules if not holds]


def check_supported(cfg: FA4Config) -> None:
    """Raise ``UnsupportedError`` with every reason and its remedy if the kernel cannot serve ``cfg``."""
    reasons = unsupported_reasons(cfg)
    if reasons:
        raise UnsupportedError("the sm_100a kernel cannot serve this config:\n  " + "\n  ".join(reasons))
