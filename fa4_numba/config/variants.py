"""Other configs for the same shape: one or two Q tiles, split keys, other tile heights."""

from typing import Self

_KEPT = frozenset(
    (
        "qkv_dtype",
        "rope_dtype",
        "scale_dtype",
        "num_q_heads",
        "group",
        "qk_depth",
        "ov_depth",
        "page_size",
        "is_mla",
    )
)


class VariantMethods:
    """Methods of :class:`FA4Config` that rebuild it with other choices."""

    def _rebuild(self, **changes) -> Self:
        """Return the same shape and dtypes with other choices; ``bn_cap`` is not kept."""
        arguments = {name: value for name, value in self.args if name in _KEPT}
        return type(self)(**arguments, swizzle_mode=self.swizzle_mode, **changes)

    def with_num_q(self, num_q: int, num_qk_stages: int = 0) -> Self:
        """Return the variant with one or two Q tiles per CTA; drops split-K, pairs and ``bn_cap``."""
        return self._rebuild(
            BM=256 if num_q == 2 else 128,
            num_qk_stages=num_qk_stages,
            dynamic_cluster_dim=self.dynamic_cluster_dim,
            nope_depth=self.nope_depth,
            single_o=self.single_o and num_q == 1,
        )

    def with_splitk(self, n: int) -> Self:
        """Return the variant whose cluster of ``n`` CTAs shares the keys; pins the stages, drops pairs."""
        return self._rebuild(
            BM=self.BM,
            num_qk_stages=self.num_qk_stages,
            splitk_partitions=n,
            dynamic_cluster_dim=self.dynamic_cluster_dim,
            nope_depth=self.nope_depth,
            single_o=self.single_o,
        )

    def with_bm(self, bm: int) -> Self:
        """Return the variant with another tile height; drops everything else but ``nope_depth``."""
        return self._rebuild(BM=bm, nope_depth=self.nope_depth)

    def switch_1q_config(self) -> Self:
        """Return the one-Q-tile body that a two-Q-tile kernel can switch to: the same depth stages."""
        return self.with_num_q(1, self.num_qk_stages)

    def can_switch_to_1q(self) -> bool:
        """Return whether a kernel for two Q tiles can run short prompts with the body for one: same depth stages, supported."""
        if self.num_q != 2 or self.pair_cta:
            return False
        other = self.switch_1q_config()
        return other.supported() and other.num_qk_stages == self.num_qk_stages

    def launch_smem_used(self) -> int:
        """Return the bytes of shared memory to launch with: enough for both bodies of a switching kernel."""
        if self.can_switch_to_1q():
            return max(self.smem_used, self.switch_1q_config().smem_used)
        return self.smem_used
