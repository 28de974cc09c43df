"""What one call of the sm_100a forward kernel needs: tensor maps, scalars, grid. The same for GPU and emulator."""

import math
from dataclasses import dataclass

from ..config import FA4Config
from ..errors import UnsupportedError
from ..kernels.sm100.support import Q_TILE_ROWS, chunk_elems, heads_per_tile
from ..layout import Swizzle, TensorMapSpec

L2_BYTES = (
    50 << 20
)  # of K and V that stay in L2 while a group of heads is worked off (B200: 126 MB L2, two halves)
MAX_GRID_X = 2**31 - 1


@dataclass(frozen=True)
class Operand:
    """A (batch, sequence, heads, dim) array in the memory of the device that runs the kernel.

    ``address`` and ``strides_bytes`` are in bytes, strides in the order of ``shape``. TMA needs a contiguous last
    dimension, and the address and all other strides as multiples of 16 bytes.
    """

    address: int
    shape: tuple[int, int, int, int]
    strides_bytes: tuple[int, int, int, int]
    dtype: str


@dataclass(frozen=True)
class LaunchPlan:
    """Grid and block (x, y, z), dynamic shared memory in bytes, and the kernel's arguments in order."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    args: tuple


def _map(operand: Operand, dims: list[tuple[int, int, int]]) -> TensorMapSpec:
    """Build a tensor map; ``dims`` are (size, stride in bytes, box) from innermost, the first one contiguous."""
    # The stride over a dimension of size 1 is never used, but must still be a legal one.
    strides = [stride if size > 1 else 16 for size, stride, _ in dims[1:]]
    return TensorMapSpec(
        dtype=operand.dtype,
        address=operand.address,
        shape=tuple(size for size, _, _ in dims),
        strides_bytes=tuple(strides),
        box=tuple(box for _, _, box in dims),
        swizzle=Swizzle.B128,
    )


def q_map(cfg: FA4Config, q: Operand) -> TensorMapSpec:
    """Return the map of Q or O: (depth, head in tile, token, tile head, batch).

    A box is 64 columns of one Q tile: its rows run over the heads of a fused group first, then over tokens.
    """
    batch, tokens, heads, depth = q.shape
    in_tile = heads_per_tile(cfg)
    s_batch, s_token, s_head, s_elem = q.strides_bytes
    return _map(
        q,
        [
            (depth, s_elem, chunk_elems(cfg)),
            (in_tile, s_head, in_tile),
            (tokens, s_token, Q_TILE_ROWS // in_tile),
            (heads // in_tile, s_head * in_tile, 1),
            (batch, s_batch, 1),
        ],
    )


def kv_map(cfg: FA4Config, kv: Operand) -> TensorMapSpec:
    """Return the map of K or V: (depth, token, head, batch), boxes of 64 columns of one KV tile."""
    batch, tokens, heads, depth = kv.shape
    s_batch, s_token, s_head, s_elem = kv.strides_bytes
    box = chunk_elems(cfg)
    return _map(
        kv, [(depth, s_elem, box), (tokens, s_token, cfg.BN), (heads, s_head, 1), (batch, s_batch, 1)]
    )


def sequences_per_group(cfg: FA4Config, seq_k: int, depth: int, total: int) -> int:
    """Return how many (batch, tile head) pairs run together: a power of two whose K and V fit in ``L2_BYTES``."""
    sharing = cfg.group // heads_per_tile(cfg)  # tile heads that read the same K and V
    fitting = max(1, L2_BYTES * sharing // max(1, seq_k * depth * cfg.qkv_dtype_size))
    return max(1, min(total, 1 << (fitting.bit_length() - 1)))


def plan_forward(
    cfg: FA4Config, q: Operand, k: Operand, v: Operand, o: Operand, lse_address: int, scale: float
):
    """Return the :class:`LaunchPlan` of one call.

    Parameters
    ----------
    cfg : FA4Config
        The config that the kernel was compiled for.
    q, k, v, o : Operand
        Non-empty arrays; shapes agree with each other and with ``cfg``.
    lse_address : int
        Address of a contiguous f32 array (batch, q heads, queries).
    scale : float
        Softmax scale, > 0.

    Raises
    ------
    UnsupportedError
        If the problem has more tiles than a grid has CTAs.
    """
    batch, seq_q, heads, depth = q.shape
    seq_k = k.shape[1]
    in_tile = heads_per_tile(cfg)
    tile_heads = heads // in_tile
    num_tiles = math.ceil(seq_q * in_tile / cfg.BM)
    sequences = batch * tile_heads
    if num_tiles * sequences > MAX_GRID_X:
        raise UnsupportedError(
            f"{batch} x {heads} heads x {seq_q} queries make {num_tiles * sequences} tiles; one launch takes "
            f"{MAX_GRID_X}. Split the batch."
        )
    group = sequences_per_group(cfg, seq_k, depth + v.shape[3], sequences)
    maps = (q_map(cfg, q), kv_map(cfg, k), kv_map(cfg, v), q_map(cfg, o))
    scalars = (lse_address, seq_q, seq_k, num_tiles, tile_heads, sequences, group, scale * math.log2(math.e))
    return LaunchPlan(
        grid=(num_tiles * sequences, 1, 1),
        block=(cfg.num_threads, 1, 1),
        dynamic_smem_bytes=cfg.smem_used,
        args=(*maps, *scalars),
    )
