"""The store role: one warp that sends finished O tiles from SMEM to global memory with TMA."""

from ...ptx.numba_adapter import intrinsic_for
from ..common.device import I32, U32, device_inline
from .correction import O_STAGED_BARRIER, O_STAGED_THREADS
from .geometry import Geometry


def make_store(g: Geometry):
    """Return ``store(smem, map_o, first_token, tile_head, batch)``. Rows beyond the sequence are clipped by TMA."""
    staged, elect = intrinsic_for("named_barrier_sync"), intrinsic_for("elect_one")
    copy, commit = intrinsic_for("tma_store_5d"), intrinsic_for("bulk_commit_group")
    wait_read = intrinsic_for("bulk_wait_group_read", pending=0)
    staging, pitch = U32(g.smem("q[0]")), U32(g.smem("q[1]") - g.smem("q[0]"))
    chunk_bytes, chunks, columns = U32(g.q_chunk_bytes), g.ov_chunks, I32(g.chunk_elems)
    tokens = I32(g.tokens_per_q_tile)

    @device_inline
    def store(smem, map_o, first_token, tile_head, batch):
        for s in range(2):
            staged(U32(O_STAGED_BARRIER + s), U32(O_STAGED_THREADS))
            if elect() != U32(0):
                for c in range(chunks):
                    source = U32(smem + staging + U32(s) * pitch + U32(c) * chunk_bytes)
                    token = I32(first_token + I32(s) * tokens)
                    copy(map_o, I32(c * columns), I32(0), token, tile_head, batch, source)
                commit()
        wait_read()  # SMEM must outlive the copies that read it

    return store
