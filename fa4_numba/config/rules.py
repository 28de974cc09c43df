"""The rules that a config must obey, each with the message that says what to change.

A rule is ``(holds, message)``; the message is a function, so that :func:`holds_all` costs a few comparisons only.
"""

from ..hw import SM_100A
from .remedy import nearest, supported_variant
from .types import mod

SPLITK = (1, 2, 4, 6, 8, 10, 16)
TILE_ROWS = (32, 64, 128, 256)
MIN_KEYS = 64
PACKED_DEPTH = 64  # columns of a depth stage that the four key quarters of BM = 32 share


def holds_all(cfg) -> bool:
    """Return whether no rule fails."""
    return all(holds for holds, _ in _rules(cfg))


def failed_rules(cfg) -> tuple[str, ...]:
    """Return the message of every rule that ``cfg`` breaks."""
    return tuple(message() for holds, message in _rules(cfg) if not holds)


def _rules(cfg):
    yield from _paging(cfg)
    yield from _resources(cfg)
    if cfg.use_ws:
        yield from _packed(cfg)
    yield from _variant(cfg)


def _paging(cfg):
    # a negative page counts as small: the original tests only for "not 0"
    small = not cfg.is_mla and cfg.page_size != 0 and cfg.page_size < cfg.BN
    step = cfg.MMA_K
    yield (
        not small or mod(cfg.page_size, step) == 0,
        lambda: (
            f"page_size = {cfg.page_size}: a page smaller than the {cfg.BN}-key tile must be a multiple of MMA_K = {step}; "
            f"nearest: {max(step, round(cfg.page_size / step) * step)}, or 0 for no pages"
        ),
    )
    yield (
        cfg.num_q == 1 or cfg.splitk_partitions == 1,
        lambda: (
            f"splitk_partitions = {cfg.splitk_partitions}: split-K needs one Q tile per CTA, BM = 256 has two; nearest: "
            "splitk_partitions=1, or BM=128"
        ),
    )


def _resources(cfg):
    fits = lambda: supported_variant(cfg)
    cols, smem = SM_100A.tmem_cols, SM_100A.smem_bytes_per_block
    yield (
        cfg.BN >= MIN_KEYS,
        lambda: (
            f"BN = {cfg.BN}: at least {MIN_KEYS} keys per tile are needed, but heads of {cfg.shared_kv_cols()} columns (ov "
            f"{cfg.ov_depth}, nope {cfg.nope_depth}, padded), bn_cap and pages leave {cfg.BN}; {fits()}"
        ),
    )
    yield (
        cfg.num_kv_stages >= 2,
        lambda: f"num_kv_stages = {cfg.num_kv_stages}: at least 2 are needed; {_room(cfg)}; {fits()}",
    )
    yield (
        cfg.tmem_used <= cols,
        lambda: (
            f"tmem_used = {cfg.tmem_used}: tensor memory has {cols} columns, which is {cfg.tmem_used - cols} fewer; {fits()}"
        ),
    )
    yield (
        cfg.smem_used <= smem,
        lambda: (
            f"smem_used = {cfg.smem_used}: a block has {smem} bytes, which is {cfg.smem_used - smem} fewer; {fits()}"
        ),
    )
    yield (
        cfg.BM in TILE_ROWS,
        lambda: (
            f"BM = {cfg.BM}: take 256 (two Q tiles), 128, 64 or 32; nearest: {nearest(cfg.BM, TILE_ROWS)}"
        ),
    )


def _room(cfg) -> str:
    """Why there are so few K/V slots, in bytes."""
    smem, d = SM_100A.smem_bytes_per_block, cfg._derived
    if cfg.BN <= 0:
        return f"with BN = {cfg.BN} there is no K or V tile to place"
    return (
        f"Q, statistics and barriers take {d.fixed_bytes} of {smem} bytes, and a K or V tile takes {d.slot_bytes} of the "
        f"other {smem - d.fixed_bytes}"
    )


def _packed(cfg):
    unpacked = "use BM=128 or 256"
    name = f"packed layouts (BM = {cfg.BM})"
    yield not cfg.is_mla, lambda: f"is_mla = True: {name} have no MLA; {unpacked}"
    yield (
        cfg.rope_depth() == 0,
        lambda: (
            f"rope depth {cfg.rope_depth()} (padded qk {cfg.padded_qk_depth} - padded nope {cfg.padded_nope_depth}): {name} "
            f"take no rotary part; pass nope_depth={cfg.qk_depth}, or {unpacked}"
        ),
    )
    yield (
        cfg.scale_dtype_size == 0,
        lambda: (
            f"scale_dtype = {cfg.scale_dtype!r}: {name} take no scales; pass scale_dtype=None, or {unpacked}"
        ),
    )
    yield (
        cfg.num_kv_stages >= 4,
        lambda: (
            f"num_kv_stages = {cfg.num_kv_stages}: {name} need at least 4; {_room(cfg)}; "
            f"{supported_variant(cfg)}"
        ),
    )
    if cfg.m_pack == 4:
        yield cfg.BK0 == PACKED_DEPTH, lambda: _depth_stage(cfg)
    else:
        half = cfg.BN // 2
        yield (
            mod(half, cfg.num_qk_stages) == 0,
            lambda: (
                f"num_qk_stages = {cfg.num_qk_stages}: must divide BN / 2 = {half}; nearest: "
                f"{nearest(cfg.num_qk_stages, [n for n in range(1, max(half, 1) + 1) if half % n == 0])}"
            ),
        )


def _depth_stage(cfg) -> str:
    stages, rest = divmod(cfg.padded_qk_depth, PACKED_DEPTH)
    fix = f"num_qk_stages={stages}" if stages > 0 and not rest else "a qk_depth that is a multiple of 64"
    return (
        f"BK0 = {cfg.BK0} (padded qk {cfg.padded_qk_depth} / {cfg.num_qk_stages} stages): BM = 32 needs depth stages of "
        f"{PACKED_DEPTH} columns; nearest: {fix}"
    )


def _variant(cfg):
    if cfg.num_q == 1:
        yield _depth_within(cfg, 64, 256, "one Q tile per CTA")
        yield (
            not cfg.pair_cta,
            lambda: (
                f"pair_cta = True: CTA pairs need two Q tiles, BM = {cfg.BM} has one; use BM=256 or pair_cta=False"
            ),
        )
        yield (
            cfg.splitk_partitions in SPLITK,
            lambda: (
                f"splitk_partitions = {cfg.splitk_partitions}: take one of {SPLITK}; nearest: "
                f"{nearest(cfg.splitk_partitions, SPLITK)}"
            ),
        )
    elif cfg.pair_cta:
        yield _depth_within(cfg, 65, 128, "a CTA pair")
    else:
        yield (
            cfg.qk_depth >= 64,
            lambda: (
                f"qk_depth = {cfg.qk_depth}: at least 64; nearest: 64 (pad the heads with zeros, as TMA does)"
            ),
        )


def _depth_within(cfg, low: int, high: int, what: str):
    return (
        low <= cfg.qk_depth <= high,
        lambda: (
            f"qk_depth = {cfg.qk_depth}: {what} takes {low} to {high}; nearest: {min(max(cfg.qk_depth, low), high)}"
        ),
    )
