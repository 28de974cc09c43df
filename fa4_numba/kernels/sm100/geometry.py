"""Every constant of the sm_100a kernel, read from ``FA4Config`` and its maps, in the form that the roles use."""

from dataclasses import dataclass

from ...config import FA4Config, register_budget
from ...errors import UnsupportedError
from ...layout import InstrDesc, Major, SmemDesc, Swizzle

CHUNK_BYTES = 128  # one swizzle-128B row: the width of a TMA box and of an operand chunk
Q_TILE_ROWS = 128  # rows of one MMA; a CTA owns two such tiles
MMA_WARP, LOAD_WARP, STORE_WARP = 12, 13, 14
SOFTMAX_WARPS, CORRECTION_WARPS = range(0, 8), range(8, 12)
NUM_THREADS = 512


def unsupported_reasons(cfg: FA4Config) -> list[str]:
    """Return why this kernel cannot serve ``cfg`` (empty if it can), each with the remedy."""
    reasons = list(cfg.why_unsupported())
    rules = [
        (cfg.num_q == 2, f"BM = {cfg.BM}: this kernel has two Q tiles per CTA; use BM=256"),
        (not cfg.pair_cta, "pair_cta: CTA pairs are not built yet; use pair_cta=False"),
        (not cfg.is_mla, "is_mla: MLA is not built yet; use is_mla=False"),
        (cfg.page_size == 0, f"page_size = {cfg.page_size}: paged K/V is not built yet; use page_size=0"),
        (cfg.qkv_dtype_size == 2, f"qkv_dtype = {cfg.qkv_dtype}: use bfloat16 or float16"),
        (cfg.scale_dtype is None, f"scale_dtype = {cfg.scale_dtype}: scales are not built yet; use scale_dtype=None"),
        (cfg.rope_depth() == 0, f"rope depth {cfg.rope_depth()}: pass nope_depth=qk_depth"),
        (cfg.swizzle_mode == "128B", f"swizzle_mode = {cfg.swizzle_mode}: use '128B'"),
        (cfg.splitk_partitions == 1, "splitk_partitions: split-K is not built yet; use 1"),
        (
            cfg.padded_qk_depth >= cfg.padded_ov_depth,
            f"qk_depth {cfg.qk_depth} < ov_depth {cfg.ov_depth}: O is staged where Q was; pass "
            "qk_depth=ov_depth (Q and K are padded with exact zeros)",
        ),
        (cfg.BN % 32 == 0 and cfg.BN <= 128, f"BN = {cfg.BN}: use a multiple of 32, at most 128 (bn_cap=128)"),
        (cfg.padded_qk_depth <= 128, f"qk_depth = {cfg.qk_depth}: at most 128"),
    ]
    return reasons + [why for holds, why in rules if not holds]


@dataclass(frozen=True)
class Geometry:
    """Constants of one kernel variant. Bytes, elements and columns as the suffixes say."""

    cfg: FA4Config
    causal: bool

    def __post_init__(self):
        reasons = unsupported_reasons(self.cfg)
        if reasons:
            raise UnsupportedError("the sm_100a kernel cannot serve this config:\n  " + "\n  ".join(reasons))

    # -- tiles ----------------------------------------------------------------
    @property
    def heads_per_tile(self) -> int:
        """Query heads interleaved in a tile's rows: the group if fused, else 1."""
        return self.cfg.group if self.cfg.fuse_gqa else 1

    @property
    def tokens_per_q_tile(self) -> int:
        return Q_TILE_ROWS // self.heads_per_tile

    @property
    def qk_chunks(self) -> int:
        """Operand chunks (64 columns) of a Q or K row."""
        return self.cfg.padded_qk_depth * self.cfg.qkv_dtype_size // CHUNK_BYTES

    @property
    def ov_chunks(self) -> int:
        return self.cfg.padded_ov_depth * self.cfg.qkv_dtype_size // CHUNK_BYTES

    @property
    def chunk_elems(self) -> int:
        return CHUNK_BYTES // self.cfg.qkv_dtype_size

    @property
    def chunks_per_qk_stage(self) -> int:
        return self.qk_chunks // self.cfg.num_qk_stages

    @property
    def mma_per_chunk(self) -> int:
        """MMA instructions that cover one chunk of the depth."""
        return self.chunk_elems // self.cfg.MMA_K

    @property
    def q_chunk_bytes(self) -> int:
        return Q_TILE_ROWS * CHUNK_BYTES

    @property
    def kv_chunk_bytes(self) -> int:
        return self.cfg.BN * CHUNK_BYTES

    @property
    def p_split(self) -> int:
        """Keys after which P is published for the first time."""
        return self.cfg.BN * 3 // 4 // 32 * 32

    # -- shared memory and barriers -------------------------------------------
    def smem(self, name: str) -> int:
        """Return the byte offset of a region of the SMEM map."""
        return {region.name: region.start for region in self.cfg.smem_map()}[name]

    def barrier(self, name: str) -> int:
        """Return the byte offset of a barrier of the barrier map."""
        return {region.name: region.start for region in self.cfg.barrier_map()}[name]

    # -- descriptors ------------------------------------------------------------
    @property
    def k_major_desc(self) -> int:
        """Constant bits of the SMEM descriptor of Q and K (depth contiguous)."""
        return SmemDesc(0, leading_bytes=16, stride_bytes=8 * CHUNK_BYTES, swizzle=Swizzle.B128).pack()

    @property
    def v_desc(self) -> int:
        """Constant bits of the SMEM descriptor of V (head dim contiguous: MN-major), one chunk pitch apart."""
        return SmemDesc(
            0, leading_bytes=self.kv_chunk_bytes, stride_bytes=8 * CHUNK_BYTES, swizzle=Swizzle.B128
        ).pack()

    @property
    def qk_instr_desc(self) -> int:
        dtype = self.cfg.qkv_dtype
        short = {"bfloat16": "bf16", "float16": "f16"}[str(dtype)]
        return InstrDesc("f16", m=self.cfg.MMA_M, n=self.cfg.BN, a_type=short, b_type=short).pack()

    @property
    def pv_instr_desc(self) -> int:
        short = {"bfloat16": "bf16", "float16": "f16"}[str(self.cfg.qkv_dtype)]
        return InstrDesc(
            "f16", m=self.cfg.MMA_M, n=self.cfg.padded_ov_depth, a_type=short, b_type=short, b_major=Major.MN
        ).pack()

    # -- registers --------------------------------------------------------------
    @property
    def registers(self):
        return register_budget(self.cfg)
