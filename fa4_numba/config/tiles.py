"""What follows from the fields: element sizes, tile shapes, and the TMA boxes of K and V."""

from .paging import kv_sub_tile_rows, row_major
from .types import div


class TileMethods:
    """Methods of :class:`FA4Config` that compute one number from its fields; sizes in elements unless said otherwise."""

    @property
    def MMA_K(self) -> int:
        """Depth of one matrix instruction, elements."""
        return self._facts.K

    @property
    def qkv_dtype_size(self) -> int:
        """Bytes of an element of Q, K and V."""
        return self._facts.d

    @property
    def rope_dtype(self) -> str:
        """Of the rotary part; ``qkv_dtype`` if none was given."""
        return dict(self.args)["rope_dtype"] or self.qkv_dtype

    @property
    def rope_dtype_size(self) -> int:
        """Bytes; 0 if no rope dtype was given."""
        return self._facts.rs

    @property
    def scale_dtype(self) -> str:
        """Of per-token scales; ``qkv_dtype`` if none was given."""
        return dict(self.args)["scale_dtype"] or self.qkv_dtype

    @property
    def scale_dtype_size(self) -> int:
        """Bytes; 0 if no scale dtype was given."""
        return self._facts.ss

    def BM_eff(self) -> int:
        """Query positions of one work tile: BM, divided by the group if that is fused into the rows."""
        return div(self.BM, self.group) if self.fuse_gqa else self.BM

    def cta_group(self) -> int:
        """CTAs that share one matrix instruction."""
        return 2 if self.pair_cta else 1

    def cluster_size(self) -> int:
        """CTAs of a cluster: a pair, times the split of the keys."""
        return self.cta_group() * self.splitk_partitions

    def PairBM_eff(self) -> int:
        """Query positions of a CTA pair's work tile."""
        return self.BM_eff() * self.cta_group()

    def v_cols_per_cta(self) -> int:
        """Columns of V that one CTA loads; a pair loads half each."""
        return div(self.padded_ov_depth, self.cta_group())

    def k_rows_per_cta(self) -> int:
        """Keys of a tile that one CTA loads; a pair loads half each."""
        return div(self.BN, self.cta_group())

    def nope_cols_per_cta(self) -> int:
        """Columns without the rotary part, per CTA."""
        return div(self.padded_nope_depth, self.cta_group())

    def rope_depth(self) -> int:
        """Rotary columns of Q and K, padded, elements."""
        return self.padded_qk_depth - self.padded_nope_depth

    def q_nope_bytes(self) -> int:
        """Bytes of Q's columns without the rotary part."""
        return self.BM * self.padded_nope_depth * self.qkv_dtype_size

    def q_rope_bytes(self) -> int:
        """Bytes of Q's rotary columns; 0 if no rope dtype was given, though Q is then charged at full width."""
        return self.BM * self.rope_depth() * self.rope_dtype_size

    def num_rope_buffers(self) -> int:
        """Buffers for K's rotary part: one for two slots of a shared ring."""
        return div(self.num_kv_stages + 1, 2) if self.use_shared_kv and self.rope_depth() > 0 else 0

    def num_k_scale_bufs(self) -> int:
        """Buffers for K's scales: one for two slots of a shared ring, else one for each K tile."""
        if not self.scale_dtype_size:
            return 0
        return div(self.num_kv_stages + 1, 2) if self.use_shared_kv else self.num_kv_stages

    def correction_smem_elements(self) -> int:
        """Row statistics (f32) in use; their region has 1024 bytes all the same."""
        return self.BM * self.num_correction_cols

    def num_active_warps_per_group(self) -> int:
        """Warps of a softmax group that have rows."""
        return 4

    def num_active_threads_per_group(self) -> int:
        """Threads of a softmax group that have rows."""
        return 32 * self.num_active_warps_per_group()

    def v_box_cols(self) -> int:
        """Columns of one V sub-tile."""
        return div(self.v_cols_per_cta(), self.num_qk_stages) if self.use_ws else self.v_cols_per_cta()

    def v_e_box_rows(self) -> int:
        """Keys of one reduction chunk of the half-packed layout (E)."""
        return div(div(self.BN, self.m_pack), self.num_qk_stages)

    def v_e_box_cols(self) -> int:
        """Columns of a reduction chunk of the half-packed layout (E)."""
        return self.padded_ov_depth

    def v_tma_box_rows(self, page_size: int | None = None) -> int:
        """Keys of one TMA box of V for a page size (default: the config's own)."""
        if self.m_pack == 2:
            return self.v_e_box_rows()
        return kv_sub_tile_rows(self.BN, self.page_size if page_size is None else page_size)

    def v_tma_box_cols(self) -> int:
        """Columns of one TMA box of V."""
        return self.v_e_box_cols() if self.m_pack == 2 else self.v_box_cols()

    def shared_kv_cols(self) -> int:
        """Columns of a ring slot: wide enough for K without its rotary part and for V."""
        return max(self.padded_nope_depth, self.padded_ov_depth)

    def v_row_major(self) -> bool:
        """True if one box brings all column chunks of a V page, which then lie side by side."""
        return self.row_major_v_atoms and self._dense(self.v_box_cols(), self.ov_depth)

    def k_row_major(self) -> bool:
        """True if one box brings all column chunks of a K page, which then lie side by side."""
        return self.row_major_k_atoms and self._dense(self.BK0, self.qk_depth)

    def _dense(self, block_depth: int, head_depth: int) -> bool:
        """The common part of :meth:`v_row_major` and :meth:`k_row_major`."""
        return row_major(
            block_depth,
            self._derived.granularity,
            head_depth,
            self.BN,
            self.page_size,
            swizzle=self.swizzle_mode,
            pair=self.pair_cta,
        )
