"""Which tile of the problem a CTA works on, and which KV tiles it walks.

One CTA per tile. CTAs start in launch order, so with a causal mask the longest tiles come first. Tiles of a few
(batch, head) pairs run together, so that their K and V stay in the L2 cache.
"""

from ...ptx.numba_adapter import intrinsic_for
from .device import I32, U32, device_inline

_divide = intrinsic_for("div_u32")


@device_inline
def decode_tile(linear, num_tiles, num_sequences, sequences_per_group, longest_first):
    """Return (tile, sequence) of CTA number ``linear``.

    A *sequence* is one (batch, tile head) pair, ``num_tiles`` tiles each. Groups of ``sequences_per_group`` are
    worked off one after another; inside a group the tile index varies slowest.
    """
    group = I32(_divide(U32(linear), U32(sequences_per_group * num_tiles)))
    first = I32(group * sequences_per_group)
    members = I32(min(sequences_per_group, I32(num_sequences - first)))
    inside = I32(linear - I32(first * num_tiles))
    step = I32(_divide(U32(inside), U32(members)))
    tile = I32(num_tiles - 1 - step) if longest_first else step
    return tile, I32(first + I32(inside - I32(step * members)))


@device_inline
def visible_keys(token, seq_q, seq_k, causal):
    """Return how many keys (counted from key 0) the query ``token`` sees; ≤ 0 means none. Bottom-right causal."""
    if causal:
        return I32(min(seq_k, I32(token + 1 + seq_k - seq_q)))
    return I32(seq_k)


@device_inline
def kv_tile_range(last_token, seq_q, seq_k, causal, keys_per_tile):
    """Return (last KV tile, number of KV tiles) of a CTA whose last query is ``last_token``.

    A CTA whose queries see no key walks one tile beyond all keys: TMA fills it with zeros and the mask hides it, so
    that every role runs its usual program and the rows come out empty.
    """
    visible = visible_keys(last_token, seq_q, seq_k, causal)
    if visible <= 0:
        return I32(_divide(U32(seq_k + keys_per_tile - 1), U32(keys_per_tile))), I32(1)
    count = I32(_divide(U32(visible + keys_per_tile - 1), U32(keys_per_tile)))
    return I32(count - 1), count
