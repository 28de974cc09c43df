"""The load role: one thread that fetches Q once and the K and V tiles in the order in which they are needed."""

from ...ptx.numba_adapter import intrinsic_for
from ..common.device import I32, U32, device_inline
from .geometry import Geometry
from .ring import make_ring


def make_load(g: Geometry):
    """Return ``load(smem, map_q, map_k, map_v, first_token, tile_head, kv_head, batch, last_tile, num_tiles)``.

    Order: K of the first tile together with Q tile 0, then Q tile 1, then V, then K and V of the next tiles. Tensor
    map coordinates: (depth, head in group, token, tile head, batch) for Q, (depth, token, head, batch) for K and V.
    """
    ring = make_ring(g)
    k_data, k_full, k_empty, k_parity = ring.k.data, ring.k.full, ring.k.empty, ring.k.parity
    v_data, v_full, v_empty, v_parity = ring.v.data, ring.v.full, ring.v.empty, ring.v.parity
    next_index = intrinsic_for("next_index")
    wait, expect = intrinsic_for("mbarrier_wait"), intrinsic_for("mbarrier_arrive_expect_tx")
    copy_q, copy_kv = intrinsic_for("tma_load_5d"), intrinsic_for("tma_load_4d")
    stages, chunks, ov_chunks = g.cfg.num_qk_stages, g.chunks_per_qk_stage, g.ov_chunks
    q0, q1, q1_full = U32(g.smem("q[0]")), U32(g.smem("q[1]")), U32(g.barrier("q1_full[0]"))
    q_chunk, kv_chunk, columns = U32(g.q_chunk_bytes), U32(g.kv_chunk_bytes), I32(g.chunk_elems)
    q_stage_bytes, k_stage_bytes = U32(g.q_chunk_bytes * chunks), U32(g.kv_chunk_bytes * chunks)
    v_bytes, keys, tokens = U32(g.kv_chunk_bytes * ov_chunks), I32(g.cfg.BN), I32(g.tokens_per_q_tile)

    @device_inline
    def load_q_stage(smem, q_offset, barrier, stage, map_q, token, tile_head, batch):
        for c in range(chunks):
            chunk = I32(stage * chunks + c)
            destination = U32(smem + q_offset + U32(chunk) * q_chunk)
            copy_q(destination, map_q, I32(chunk * columns), I32(0), token, tile_head, batch, barrier)

    @device_inline
    def load(smem, map_q, map_k, map_v, first_token, tile_head, kv_head, batch, last_tile, num_tiles):
        i = I32(0)
        while i < num_tiles:
            key = I32(I32(last_tile - i) * keys)
            for j in range(stages):
                full = U32(smem + k_full(i) + U32(8 * j))
                wait(U32(smem + k_empty(i) + U32(8 * j)), U32(k_parity(i) ^ U32(1)))
                if i == 0:
                    expect(full, U32(k_stage_bytes + q_stage_bytes))
                else:
                    expect(full, k_stage_bytes)
                for c in range(chunks):
                    chunk = I32(j * chunks + c)
                    destination = U32(smem + k_data(i) + U32(chunk) * kv_chunk)
                    copy_kv(destination, map_k, I32(chunk * columns), key, kv_head, batch, full)
                if i == 0:
                    load_q_stage(smem, q0, full, j, map_q, first_token, tile_head, batch)
            if i == 0:
                for j in range(stages):
                    full = U32(smem + q1_full + U32(8 * j))
                    expect(full, q_stage_bytes)
                    load_q_stage(smem, q1, full, j, map_q, I32(first_token + tokens), tile_head, batch)
            full = U32(smem + v_full(i))
            wait(U32(smem + v_empty(i)), U32(v_parity(i) ^ U32(1)))
            expect(full, v_bytes)
            for c in range(ov_chunks):
                destination = U32(smem + v_data(i) + U32(c) * kv_chunk)
                copy_kv(destination, map_v, I32(c * columns), key, kv_head, batch, full)
            i = next_index(i)

    return load
