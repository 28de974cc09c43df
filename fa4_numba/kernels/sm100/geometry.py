"""Every constant of the sm_100a kernel, read from ``FA4Config`` and its maps, in the form that the roles use."""

from dataclasses import dataclass

from ...config import FA4Config, register_budget
from ...layout import InstrDesc, Major, SmemDesc, Swizzle
from ...reference.tiled import p_split
from .support import CHUNK_BYTES, Q_TILE_ROWS, check_supported, chunk_elems, heads_per_tile

# Warps 0-3 and 4-7: softmax of Q tile 0 and 1; 8-11: correction; then one warp each; 15 is idle.
FIRST_CORRECTION_WARP, MMA_WARP, LOAD_WARP, STORE_WARP = 8, 12, 13, 14
NUM_THREADS = 512


@dataclass(frozen=True)
class Geometry:
    """Constants of one kernel variant. Bytes, elements and columns as the suffixes say."""

    cfg: FA4Config
    causal: bool

    def __post_init__(self):
        check_supported(self.cfg)

    # -- tiles ----------------------------------------------------------------
    @property
    def heads_per_tile(self) -> int:
        """Query heads interleaved in a tile's rows: the group if fused, else 1."""
        return heads_per_tile(self.cfg)

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
        return chunk_elems(self.cfg)

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
        return p_split(self.cfg.BN)

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
        return SmemDesc(0, leading_bytes=0, stride_bytes=8 * CHUNK_BYTES, swizzle=Swizzle.B128).pack()

    @property
    def v_desc(self) -> int:
        """Constant bits of the SMEM descriptor of V (head dim contiguous: MN-major), one chunk pitch apart."""
        return SmemDesc(
            0, leading_bytes=self.kv_chunk_bytes, stride_bytes=8 * CHUNK_BYTES, swizzle=Swizzle.B128
        ).pack()

    @property
    def qk_instr_desc(self) -> int:
        return self._instr_desc(self.cfg.BN, Major.K)

    @property
    def pv_instr_desc(self) -> int:
        return self._instr_desc(self.cfg.padded_ov_depth, Major.MN)

    def _instr_desc(self, n: int, b_major: Major) -> int:
        kind = {"bfloat16": "bf16", "float16": "f16"}[self.cfg.qkv_dtype]
        return InstrDesc("f16", m=self.cfg.MMA_M, n=n, a_type=kind, b_type=kind, b_major=b_major).pack()

    # -- registers --------------------------------------------------------------
    @property
    def registers(self):
        return register_budget(self.cfg)
