"""The MMA role: one thread that issues every matrix multiply, in an order that keeps both softmaxes busy.

For each KV tile and Q tile s: O_s += P_s V of the tile before, then S_s = Q_s Kᵀ of this one. MMAs of one thread
execute in the order of issue; so S may overwrite the P that it aliases, and once S of a tile is complete, so is the
P V issued before it.
"""

from ...ptx.numba_adapter import intrinsic_for
from ..common.device import I32, U32, U64, device_inline
from .geometry import Geometry
from .ring import make_ring


def make_mma(g: Geometry):
    """Return ``mma(smem, tmem, num_tiles)``."""
    ring = make_ring(g)
    k_data, k_full, k_empty, k_parity = ring.k.data, ring.k.full, ring.k.empty, ring.k.parity
    v_data, v_full, v_empty, v_parity = ring.v.data, ring.v.full, ring.v.empty, ring.v.parity
    next_index = intrinsic_for("next_index")
    wait, commit = intrinsic_for("mbarrier_wait"), intrinsic_for("mma_commit")
    mma_ss, mma_ts = intrinsic_for("mma_f16_ss"), intrinsic_for("mma_f16_ts")
    fence_after = intrinsic_for("tmem_fence_after")
    cfg = g.cfg
    q0, q_pitch = U32(g.smem("q[0]")), U32(g.smem("q[1]") - g.smem("q[0]"))
    q1_full, s_full, o_full = (
        U32(g.barrier("q1_full[0]")),
        U32(g.barrier("s_full[0]")),
        U32(g.barrier("o_full[0]")),
    )
    p_ready, p_last = U32(g.barrier("p_ready[0]")), U32(g.barrier("p_last[0]"))
    s_column, s_pitch = U32(cfg.TMEM_S0), U32(cfg.TMEM_S1 - cfg.TMEM_S0)
    p_column, p_pitch = U32(cfg.TMEM_P0), U32(cfg.TMEM_P1 - cfg.TMEM_P0)
    o_column, o_pitch = U32(cfg.TMEM_O0), U32(cfg.TMEM_O1 - cfg.TMEM_O0)
    k_desc, v_desc = U64(g.k_major_desc), U64(g.v_desc)
    qk_instr, pv_instr = U32(g.qk_instr_desc), U32(g.pv_instr_desc)
    q_chunk, kv_chunk = U32(g.q_chunk_bytes), U32(g.kv_chunk_bytes)
    stages, steps, per_chunk = cfg.num_qk_stages, g.chunks_per_qk_stage * g.mma_per_chunk, g.mma_per_chunk
    depth_step = U32(cfg.MMA_K * cfg.qkv_dtype_size)  # bytes along a K-major row
    key_step, p_step = U32(cfg.MMA_K * 128), U32(cfg.MMA_K * cfg.qkv_dtype_size // 4)  # V rows; P cells
    first_steps, all_steps = g.p_split // cfg.MMA_K, cfg.BN // cfg.MMA_K

    @device_inline
    def descriptor(constant, address):
        return U64(constant | U64(U32(address >> U32(4))))

    @device_inline
    def scores(smem, tmem, i, s):
        """S_s = Q_s Kᵀ of tile i; waits for K (Q tile 0) and for Q tile 1 when they are first used."""
        q = U32(smem + q0 + U32(s) * q_pitch)
        k = U32(smem + k_data(i))
        d = U32(tmem + s_column + U32(s) * s_pitch)
        for j in range(stages):
            if s == 0:
                wait(U32(smem + k_full(i) + U32(8 * j)), k_parity(i))
            elif i == 0:
                wait(U32(smem + q1_full + U32(8 * j)), U32(0))
            for step in range(steps):
                chunk, inside = (
                    U32(j * steps + step) // U32(per_chunk),
                    U32(j * steps + step) % U32(per_chunk),
                )
                a = descriptor(k_desc, U32(q + chunk * q_chunk + inside * depth_step))
                b = descriptor(k_desc, U32(k + chunk * kv_chunk + inside * depth_step))
                mma_ss(d, a, b, qk_instr, U32(j + step != 0))
        commit(U32(smem + s_full + U32(8 * s)))

    @device_inline
    def outputs(smem, tmem, i, s):
        """O_s (+)= P_s V of tile i, in two parts as P arrives."""
        parity = U32(i & 1)
        p = U32(tmem + p_column + U32(s) * p_pitch)
        v = U32(smem + v_data(i))
        d = U32(tmem + o_column + U32(s) * o_pitch)
        wait(U32(smem + p_ready + U32(8 * s)), parity)
        fence_after()
        for step in range(first_steps):
            b = descriptor(v_desc, U32(v + U32(step) * key_step))
            mma_ts(d, U32(p + U32(step) * p_step), b, pv_instr, U32(i + step != 0))
        wait(U32(smem + p_last + U32(8 * s)), parity)
        fence_after()
        for step in range(first_steps, all_steps):
            b = descriptor(v_desc, U32(v + U32(step) * key_step))
            mma_ts(d, U32(p + U32(step) * p_step), b, pv_instr, U32(1))

    @device_inline
    def release_k(smem, i):
        for j in range(stages):
            commit(U32(smem + k_empty(i) + U32(8 * j)))

    @device_inline
    def mma(smem, tmem, num_tiles):
        scores(smem, tmem, 0, 0)
        scores(smem, tmem, 0, 1)
        release_k(smem, 0)
        i = I32(1)
        while i < num_tiles:
            wait(U32(smem + v_full(i - 1)), v_parity(i - 1))
            outputs(smem, tmem, i - 1, 0)
            scores(smem, tmem, i, 0)
            outputs(smem, tmem, i - 1, 1)
            commit(U32(smem + v_empty(i - 1)))
            scores(smem, tmem, i, 1)
            release_k(smem, i)
            i = next_index(i)
        last = num_tiles - 1
        wait(U32(smem + v_full(last)), v_parity(last))
        for s in range(2):
            outputs(smem, tmem, last, s)
            commit(U32(smem + o_full + U32(8 * s)))

    return mma
