"""``FA4Config``: every layout number of the sm_100a attention kernel, from the model's shape."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace

from ..errors import ConfigError
from . import explain as _explain
from . import maps as _maps
from . import rules as _rules
from .derive import BARRIER_BYTES, SMEM_BYTES, TMEM_COLS, derive, dtype_facts
from .fields import FIELDS, FLAGS, GIVEN, INTEGERS
from .tiles import TileMethods
from .types import dtype_name, flag, integer, optional_dtype_name, swizzle_name
from .variants import VariantMethods


@dataclass(frozen=True, init=False, repr=False, eq=False)
class FA4Config(TileMethods, VariantMethods):
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

    mbar_size = BARRIER_BYTES
    num_correction_cols = 1  # f32 per row that softmax hands to correction: the factor of O
    num_threads = 512  # 16 warps: two softmax warpgroups, one of correction, one of load, MMA and store
    sm100_smem_carveout = SMEM_BYTES
    sm100_tmem_cols = TMEM_COLS
    TMEM_S0 = 0  # the scores come first

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
        a = SimpleNamespace(**{name: integer(name, given[name]) for name in INTEGERS})
        for name in FLAGS:
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
            object.__setattr__(self, name, getattr(a if name in GIVEN else self._derived, name))
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
        defaults |= {"splitk_partitions": 1, "num_qk_stages": 0, "bn_cap": 0} | dict.fromkeys(FLAGS, False)
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
