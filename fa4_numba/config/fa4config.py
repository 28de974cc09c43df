"""``FA4Config``: every layout number of the sm_100a attention kernel, from the model's shape."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace

from ..errors import ConfigError
from . import explain as _explain
from . import maps as _maps
from . import rules as _rules
from .derive import SMEM_BYTES, TMEM_COLS, derive, dtype_facts
from .paging import kv_sub_tile_rows, row_major
from .types import div, dtype_name, flag, integer, optional_dtype_name, swizzle_name

FIELDS = [
    "MMA_M",
    "BM",
    "BN",
    "BK0",
    "BK1",
    "qk_depth",
    "padded_qk_depth",
    "ov_depth",
    "padded_ov_depth",
    "nope_depth",
    "padded_nope_depth",
    "group",
    "num_q_heads",
    "num_kv_heads",
    "TMEM_S1",
    "TMEM_O0",
    "TMEM_O1",
    "TMEM_P0",
    "TMEM_P1",
    "tmem_used",
    "num_kv_stages",
    "num_qk_stages",
    "num_pv_stages",
    "smem_used",
    "fuse_gqa",
    "swizzle_mode",
    "use_shared_kv",
    "pair_cta",
    "num_q",
    "single_o",
    "page_size",
    "is_mla",
    "splitk_partitions",
    "dynamic_cluster_dim",
    "row_major_v_atoms",
    "row_major_k_atoms",
    "use_ws",
    "m_pack",
]
# Fields that are arguments as given; all others are derived.
_GIVEN = {
    "BM",
    "qk_depth",
    "ov_depth",
    "group",
    "num_q_heads",
    "pair_cta",
    "page_size",
    "is_mla",
    "splitk_partitions",
    "dynamic_cluster_dim",
}
_INTEGERS = [
    "num_q_heads",
    "group",
    "qk_depth",
    "ov_depth",
    "page_size",
    "BM",
    "num_qk_stages",
    "splitk_partitions",
    "nope_depth",
    "bn_cap",
]
_FLAGS = ["is_mla", "pair_cta", "dynamic_cluster_dim", "single_o"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class FA4Config:
    """Layout of the FlashAttention-4 forward kernel for one attention shape.

    Parameters
    ----------
    qkv_dtype, rope_dtype, scale_dtype : str or dtype
        Of Q, K, V; of the rotary part of Q and K (MLA); of per-token scales. None: there is none.
    num_q_heads, group : int
        Query heads; query heads per key/value head.
    qk_depth, ov_depth : int
        Head dimension of Q and K, of V and O, in elements.
    swizzle_mode : str
        "128B", "64B", "32B" or "NONE"; 8-bit types always use "64B".
    page_size : int
        Keys per page of a paged cache; 0 if K and V are contiguous.
    is_mla, pair_cta : bool
        Multi-head latent attention (Q and K = nope + rope parts); CTA pairs.
    BM : int
        Rows of a work tile: 256 (two Q tiles), 128, or 64 and 32 (packed).
    num_qk_stages : int
        Pinned number of depth stages of a K tile; 0 lets the config choose.
    splitk_partitions : int
        CTAs of a cluster that share the keys of one tile.
    nope_depth : int
        Columns of Q and K that are not rotary; negative means ``ov_depth``.
    single_o : bool
        One O accumulator instead of two (wide heads).
    bn_cap : int
        Upper limit of the keys per tile; 0 for none.

    Raises
    ------
    ConfigError
        For an unknown dtype or swizzle name, or a value that is no integer. Meaningful but unsupported shapes give a
        config whose :meth:`supported` is False and whose :meth:`why_unsupported` says why.

    Notes
    -----
    Source: the FA4Config struct of Modular's sm100 attention; equal to it on 3,299 recorded argument sets.
    """

    args: tuple
    _derived: SimpleNamespace = field(repr=False)

    mbar_size = 8
    num_correction_cols = 1
    num_threads = 512
    sm100_smem_carveout = SMEM_BYTES
    sm100_tmem_cols = TMEM_COLS
    TMEM_S0 = 0

    def __init__(
        self,
        *,
        num_q_heads,
        group,
        qk_depth,
        ov_depth,
        qkv_dtype="bfloat16",
        rope_dtype=None,
        scale_dtype=None,
        swizzle_mode="128B",
        page_size=0,
        is_mla=False,
        pair_cta=False,
        BM=256,
        num_qk_stages=0,
        splitk_partitions=1,
        dynamic_cluster_dim=False,
        nope_depth=-1,
        single_o=False,
        bn_cap=0,
    ):
        given = dict(locals())
        given.pop("self")
        a = SimpleNamespace(**{name: integer(name, given[name]) for name in _INTEGERS})
        for name in _FLAGS:
            setattr(a, name, flag(name, given[name]))
        a.qkv_dtype = dtype_name("qkv_dtype", qkv_dtype)
        a.rope_dtype = optional_dtype_name("rope_dtype", rope_dtype)
        a.scale_dtype = optional_dtype_name("scale_dtype", scale_dtype)
        a.swizzle_mode = swizzle_name(swizzle_mode)
        a.t = dtype_facts(a.qkv_dtype, a.rope_dtype, a.scale_dtype)
        items = tuple((name, getattr(a, name)) for name in given)
        object.__setattr__(self, "args", items)
        object.__setattr__(self, "_derived", derive(a))
        object.__setattr__(self, "qkv_dtype", a.qkv_dtype)
        for name in FIELDS:
            object.__setattr__(self, name, getattr(a if name in _GIVEN else self._derived, name))
        object.__setattr__(self, "_facts", a.t)

    # -- identity ---------------------------------------------------------------
    def __eq__(self, other):
        return self.args == other.args if isinstance(other, FA4Config) else NotImplemented

    def __hash__(self):
        return hash(self.args)

    def __repr__(self):
        defaults = {
            "rope_dtype": None,
            "scale_dtype": None,
            "swizzle_mode": "128B",
            "page_size": 0,
            "BM": 256,
            "nope_depth": -1,
        }
        defaults |= {"splitk_partitions": 1, "num_qk_stages": 0, "bn_cap": 0} | dict.fromkeys(_FLAGS, False)
        shown = [f"{k}={v!r}" for k, v in self.args if k not in defaults or defaults[k] != v]
        return f"FA4Config({', '.join(shown)})"

    def to_json(self) -> str:
        """Return the arguments as JSON."""
        return json.dumps(dict(self.args), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "FA4Config":
        """Rebuild a config from :meth:`to_json`.

        Raises
        ------
        ConfigError
            If ``text`` is not JSON, not an object, or lacks, misspells or mistypes an argument.
        """
        try:
            arguments = json.loads(text)
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"not the JSON of an FA4Config: {error}; pass the text that to_json() gave"
            ) from error
        if not isinstance(arguments, dict):
            raise ConfigError(
                f"not the JSON of an FA4Config: {arguments!r} is no object; pass what to_json() gave"
            )
        try:
            return cls(**arguments)
        except TypeError as error:
            raise ConfigError(f"not the JSON of an FA4Config: {error}") from error

    def to_dict(self) -> dict:
        """Return every field by name."""
        return {name: getattr(self, name) for name in FIELDS}

    # -- dtypes -----------------------------------------------------------------
    @property
    def MMA_K(self) -> int:
        """Depth of one matrix instruction, elements."""
        return self._facts.K

    @property
    def qkv_dtype_size(self) -> int:
        return self._facts.d

    @property
    def rope_dtype(self) -> str:
        return dict(self.args)["rope_dtype"] or self.qkv_dtype

    @property
    def rope_dtype_size(self) -> int:
        """Bytes; 0 if no rope dtype was given."""
        return self._facts.rs

    @property
    def scale_dtype(self) -> str:
        return dict(self.args)["scale_dtype"] or self.qkv_dtype

    @property
    def scale_dtype_size(self) -> int:
        return self._facts.ss

    # -- tiles ------------------------------------------------------------------
    def BM_eff(self) -> int:
        """Query positions of one work tile: BM, divided by the group if that is fused into the rows."""
        return div(self.BM, self.group) if self.fuse_gqa else self.BM

    def cta_group(self) -> int:
        return 2 if self.pair_cta else 1

    def cluster_size(self) -> int:
        return self.cta_group() * self.splitk_partitions

    def PairBM_eff(self) -> int:
        return self.BM_eff() * self.cta_group()

    def v_cols_per_cta(self) -> int:
        return div(self.padded_ov_depth, self.cta_group())

    def k_rows_per_cta(self) -> int:
        return div(self.BN, self.cta_group())

    def nope_cols_per_cta(self) -> int:
        return div(self.padded_nope_depth, self.cta_group())

    def rope_depth(self) -> int:
        """Rotary columns of Q and K, padded, elements."""
        return self.padded_qk_depth - self.padded_nope_depth

    def q_nope_bytes(self) -> int:
        return self.BM * self.padded_nope_depth * self.qkv_dtype_size

    def q_rope_bytes(self) -> int:
        return self.BM * self.rope_depth() * self.rope_dtype_size

    def num_rope_buffers(self) -> int:
        """Buffers for K's rotary part: one for two slots of a shared ring."""
        return div(self.num_kv_stages + 1, 2) if self.use_shared_kv and self.rope_depth() > 0 else 0

    def num_k_scale_bufs(self) -> int:
        if not self.scale_dtype_size:
            return 0
        return div(self.num_kv_stages + 1, 2) if self.use_shared_kv else self.num_kv_stages

    def correction_smem_elements(self) -> int:
        return self.BM * self.num_correction_cols

    def num_active_warps_per_group(self) -> int:
        return 4

    def num_active_threads_per_group(self) -> int:
        return 32 * self.num_active_warps_per_group()

    # -- boxes of K and V ---------------------------------------------------------
    def v_box_cols(self) -> int:
        """Columns of one V sub-tile."""
        return div(self.v_cols_per_cta(), self.num_qk_stages) if self.use_ws else self.v_cols_per_cta()

    def v_e_box_rows(self) -> int:
        """Keys of one reduction chunk of the half-packed layout (E)."""
        return div(div(self.BN, self.m_pack), self.num_qk_stages)

    def v_e_box_cols(self) -> int:
        return self.padded_ov_depth

    def v_tma_box_rows(self, page_size: int | None = None) -> int:
        """Keys of one TMA box of V for a page size (default: the config's own)."""
        if self.m_pack == 2:
            return self.v_e_box_rows()
        return kv_sub_tile_rows(self.BN, self.page_size if page_size is None else page_size)

    def v_tma_box_cols(self) -> int:
        return self.v_e_box_cols() if self.m_pack == 2 else self.v_box_cols()

    def shared_kv_cols(self) -> int:
        """Columns of a ring slot: wide enough for K without its rotary part and for V."""
        return max(self.padded_nope_depth, self.padded_ov_depth)

    def v_row_major(self) -> bool:
        return self.row_major_v_atoms and self._dense(self.v_box_cols(), self.ov_depth)

    def k_row_major(self) -> bool:
        return self.row_major_k_atoms and self._dense(self.BK0, self.qk_depth)

    def _dense(self, block_depth: int, head_depth: int) -> bool:
        return row_major(
            block_depth,
            self._derived.granularity,
            head_depth,
            self.BN,
            self.page_size,
            swizzle=self.swizzle_mode,
            pair=self.pair_cta,
        )

    # -- variants -----------------------------------------------------------------
    def _rebuild(self, **changes) -> "FA4Config":
        kept = [
            "qkv_dtype",
            "rope_dtype",
            "scale_dtype",
            "num_q_heads",
            "group",
            "qk_depth",
            "ov_depth",
            "page_size",
            "is_mla",
        ]
        arguments = {name: value for name, value in self.args if name in kept}
        return FA4Config(**arguments, swizzle_mode=self.swizzle_mode, **changes)

    def with_num_q(self, num_q: int, num_qk_stages: int = 0) -> "FA4Config":
        """Return the variant with one or two Q tiles per CTA; drops split-K, pairs and ``bn_cap``."""
        return self._rebuild(
            BM=256 if num_q == 2 else 128,
            num_qk_stages=num_qk_stages,
            dynamic_cluster_dim=self.dynamic_cluster_dim,
            nope_depth=self.nope_depth,
            single_o=self.single_o and num_q == 1,
        )

    def with_splitk(self, n: int) -> "FA4Config":
        """Return the variant whose cluster of ``n`` CTAs shares the keys; pins the stages, drops pairs."""
        return self._rebuild(
            BM=self.BM,
            num_qk_stages=self.num_qk_stages,
            splitk_partitions=n,
            dynamic_cluster_dim=self.dynamic_cluster_dim,
            nope_depth=self.nope_depth,
            single_o=self.single_o,
        )

    def with_bm(self, bm: int) -> "FA4Config":
        """Return the variant with another tile height; drops everything else but ``nope_depth``."""
        return self._rebuild(BM=bm, nope_depth=self.nope_depth)

    def switch_1q_config(self) -> "FA4Config":
        """Return the one-Q-tile body that a two-Q-tile kernel can switch to: the same depth stages."""
        return self.with_num_q(1, self.num_qk_stages)

    def can_switch_to_1q(self) -> bool:
        if self.num_q != 2 or self.pair_cta:
            return False
        other = self.switch_1q_config()
        return other.supported() and other.num_qk_stages == self.num_qk_stages

    def launch_smem_used(self) -> int:
        """Bytes of shared memory to launch with: enough for both bodies of a switching kernel."""
        if self.can_switch_to_1q():
            return max(self.smem_used, self.switch_1q_config().smem_used)
        return self.smem_used

    # -- verdicts -----------------------------------------------------------------
    def supported(self) -> bool:
        """Return whether a kernel with this layout exists."""
        return _rules.holds_all(self)

    def why_unsupported(self) -> tuple[str, ...]:
        """Return every rule that fails, with the numbers and the nearest legal value."""
        return _rules.failed_rules(self)

    def description(self) -> str:
        """Return the main numbers, one a line."""
        rows = {
            "pair_cta": self.pair_cta,
            "num_q": self.num_q,
            "BM": self.BM,
            "MMA_M": self.MMA_M,
            "qk_depth": self.qk_depth,
            "BN": self.BN,
            "num_kv_stages": self.num_kv_stages,
            "tmem_used": self.tmem_used,
            "smem_used": self.smem_used,
            "sm100_smem_carveout": self.sm100_smem_carveout,
            "nope_dtype_size": self.qkv_dtype_size,
            "rope_dtype_size": self.rope_dtype_size,
            "scale_dtype_size": self.scale_dtype_size,
            "use_shared_kv": self.use_shared_kv,
        }
        return "\n".join(f"{name} = {value}" for name, value in rows.items())

    def explain(self) -> str:
        """Return how each field came about, step by step."""
        return _explain.explain(self)

    # -- maps ---------------------------------------------------------------------
    def smem_map(self) -> tuple[_maps.Region, ...]:
        """Return the named byte regions of shared memory; the last ends at ``smem_used``."""
        return _maps.smem_map(self)

    def tmem_map(self) -> tuple[_maps.Region, ...]:
        """Return the named column regions of tensor memory; the last ends at ``tmem_used``."""
        return _maps.tmem_map(self)

    def barrier_map(self) -> tuple[_maps.Region, ...]:
        """Return every mbarrier: byte offset, name and number of arrivals."""
        return _maps.barrier_map(self)
