"""The shape of one attention call, and the config that the kernel would use for it."""

from dataclasses import dataclass

from ..config import FA4Config
from ..errors import UnsupportedError

KERNEL_DTYPES = ("bfloat16", "float16")
MAX_HEAD_DIM = 128
MIN_DEPTH = 64
KEYS_PER_TILE_CAP = 128  # 192 keys, which d64 would allow, do not fit a softmax thread's registers


@dataclass(frozen=True)
class Problem:
    """Shapes and options of one call; sizes in elements, ``scale`` as given (None: 1 / sqrt(qk_dim))."""

    batch: int
    num_q_heads: int
    num_kv_heads: int
    seq_q: int
    seq_k: int
    qk_dim: int
    v_dim: int
    dtype: str
    causal: bool = False
    scale: float | None = None

    @property
    def effective_scale(self) -> float:
        return self.scale if self.scale is not None else max(1, self.qk_dim) ** -0.5

    @property
    def empty(self) -> bool:
        """True if there is nothing to compute: no kernel is launched."""
        return not all((self.batch, self.num_q_heads, self.seq_q, self.seq_k, self.qk_dim, self.v_dim))


@dataclass(frozen=True)
class ConfigChoice:
    """A config and the reasons for it, one sentence each."""

    config: FA4Config
    why: tuple[str, ...]


def choose_config(problem: Problem) -> ConfigChoice:
    """Return the ``FA4Config`` with which the sm_100a kernel computes ``problem``.

    Raises
    ------
    UnsupportedError
        For a dtype or head dimension that the kernel does not serve; names what does.
    """
    if problem.dtype not in KERNEL_DTYPES:
        raise UnsupportedError(
            f"dtype {problem.dtype}: the sm_100a kernel takes {' and '.join(KERNEL_DTYPES)}; "
            "convert the inputs, or use backend='reference'"
        )
    for name, dim in (("head dimension of q and k", problem.qk_dim), ("head dimension of v", problem.v_dim)):
        if dim > MAX_HEAD_DIM:
            raise UnsupportedError(
                f"{name} is {dim}: the sm_100a kernel takes at most {MAX_HEAD_DIM}; use backend='reference'"
            )
    # O leaves through Q's shared memory, so Q's depth must not be the smaller one
    depth = max(MIN_DEPTH, problem.qk_dim, problem.v_dim)
    ov_depth = max(MIN_DEPTH, problem.v_dim)
    config = FA4Config(
        qkv_dtype=problem.dtype,
        num_q_heads=problem.num_q_heads,
        group=problem.num_q_heads // max(1, problem.num_kv_heads) or 1,
        qk_depth=depth,
        ov_depth=ov_depth,
        nope_depth=depth,
        bn_cap=KEYS_PER_TILE_CAP,
    )
    why = [
        f"two Q tiles of 128 rows per CTA, {config.BN} keys per tile (capped at {KEYS_PER_TILE_CAP}: wider tiles spill)",
        f"depth {problem.qk_dim} of q and k and {problem.v_dim} of v, padded to {config.padded_qk_depth} and "
        f"{config.padded_ov_depth} with zeros by TMA",
        f"{'one shared ring' if config.use_shared_kv else 'separate rings'} of {config.num_kv_stages} slots for K and V",
    ]
    if config.fuse_gqa:
        why.append(f"the {config.group} query heads of a group share a tile ({config.BM_eff()} queries each)")
    elif config.group > 1:
        why.append(f"group {config.group} does not divide {config.MMA_M} rows: one query head per tile")
    return ConfigChoice(config, tuple(why))
