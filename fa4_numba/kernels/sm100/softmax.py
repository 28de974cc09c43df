"""The softmax role: 128 threads per Q tile, one row each. Scores in, probabilities out, both in tensor memory."""

from ...ptx.numba_adapter import intrinsic_for, marker, unrolled
from ...reference.tiled import EXACT_SUBTRACTION_ABOVE, RESCALE_THRESHOLD
from ..common import softmax_math
from ..common.device import F32, I32, U32, U64, device_inline, types
from ..common.exp2 import emulated_pairs
from ..common.scheduler import visible_keys
from .geometry import Geometry

LN_2 = 0.6931471805599453
NEG_INF = float("-inf")


def make_load_scores(columns: int):
    """Return ``load_scores(taddr)``: this thread's row of S, ``columns`` f32, complete when it returns."""
    tile = types.UniTuple(F32, columns)

    @unrolled(tile, U32)
    def load_scores(e, taddr):
        x = []
        for first in range(0, columns, 32):
            x += e.tmem_load_32x32b_x32(e.offset(taddr, first))
        return e.tied("tmem_wait_load", x)

    return load_scores


def make_softmax(g: Geometry):
    """Return ``softmax(smem, tmem, stage, warp, row, token, lse_address, …)`` for one Q tile.

    Per KV tile: wait for S, find the new row max, tell the correction role by how much O must shrink, write P, add
    up the row sum. ``token`` is this row's query, ``warp_token`` the first one of its warp.
    """
    cfg, columns, causal = g.cfg, g.cfg.BN, g.causal
    load_scores, mask = make_load_scores(columns), softmax_math.make_mask(columns)
    row_max, subtract = softmax_math.make_row_max(columns), softmax_math.make_subtract(columns)
    exp2_store = softmax_math.make_exp2_store(
        columns, frozenset(emulated_pairs(columns)), str(cfg.qkv_dtype), g.p_split
    )
    next_index = intrinsic_for("next_index")
    wait, arrive = intrinsic_for("mbarrier_wait"), intrinsic_for("mbarrier_arrive")
    fence_after, vote_any = intrinsic_for("tmem_fence_after"), intrinsic_for("vote_any")
    exp2, log2 = intrinsic_for("exp2_approx"), intrinsic_for("log2_approx")
    mul, sub, fma = intrinsic_for("mul"), intrinsic_for("sub"), intrinsic_for("fma")
    store_shared, store_global = intrinsic_for("shared_store_f32"), intrinsic_for("global_store_f32")
    wait_marker, math_marker = marker("stage=wait S"), marker("stage=softmax")
    end_marker = marker("stage=done")
    keys = I32(columns)
    s_column, s_pitch = U32(cfg.TMEM_S0), U32(cfg.TMEM_S1 - cfg.TMEM_S0)
    p_column, p_pitch = U32(cfg.TMEM_P0), U32(cfg.TMEM_P1 - cfg.TMEM_P0)
    s_full, p_ready, p_last = (U32(g.barrier(f"{n}[0]")) for n in ("s_full", "p_ready", "p_last"))
    stat_full, stat_empty = U32(g.barrier("stat_full[0]")), U32(g.barrier("stat_empty[0]"))
    statistics = U32(g.smem("correction"))
    threshold, exact_above = F32(-float(RESCALE_THRESHOLD)), F32(float(EXACT_SUBTRACTION_ABOVE))
    neg_inf, zero, one, ln_2 = F32(NEG_INF), F32(0.0), F32(1.0), F32(LN_2)

    @device_inline
    def softmax(
        smem,
        tmem,
        stage,
        warp,
        row,
        token,
        warp_token,
        seq_q,
        seq_k,
        last_tile,
        num_tiles,
        scale_log2,
        lse,
        lse_index,
    ):
        barrier = U32(smem + U32(8 * stage))
        lanes = U32(U32(warp & 3) << U32(21))  # TMEM lanes 32·(warp % 4)…
        scores = U32(tmem + lanes + s_column + U32(stage) * s_pitch)
        probabilities = U32(tmem + lanes + p_column + U32(stage) * p_pitch)
        statistic = U32(smem + statistics + U32(4 * I32(128 * stage + row)))
        visible = visible_keys(token, seq_q, seq_k, causal)
        warp_visible = visible_keys(warp_token, seq_q, seq_k, causal)  # the least of the warp's rows
        m, row_sum = neg_inf, zero
        i = I32(0)
        while i < num_tiles:
            parity = U32(i & 1)
            first_key = I32(I32(last_tile - i) * keys)
            wait_marker()
            wait(U32(barrier + s_full), parity)
            fence_after()
            math_marker()
            x = load_scores(scores)
            if I32(first_key + keys) > warp_visible:
                x = mask(x, I32(visible - first_key))
            new_m = row_max(x, m)
            # a row that has seen nothing keeps m = −inf; 0 stands in for it in this tile's exponents only
            m_safe = zero if new_m == neg_inf else new_m
            shrink = one
            if i > 0:
                growth = mul(sub(m, m_safe), scale_log2)
                if growth >= threshold:
                    new_m = m
                    m_safe = m
                else:
                    shrink = exp2(growth)
            m = new_m
            wait(U32(barrier + stat_empty), U32(parity ^ U32(1)))
            store_shared(statistic, shrink)
            arrive(U32(barrier + stat_full))
            offset = mul(-m_safe, scale_log2)
            if vote_any(U32(abs(offset) > exact_above)) != U32(0):
                x = subtract(x, m_safe)  # huge scores: one product would round away the difference
                offset = zero
            row_sum = exp2_store(
                x,
                scale_log2,
                offset,
                mul(row_sum, shrink),
                probabilities,
                U32(barrier + p_ready),
                U32(barrier + p_last),
            )
            i = next_index(i)
        parity = U32(num_tiles & 1)
        wait(U32(barrier + stat_empty), U32(parity ^ U32(1)))
        store_shared(statistic, row_sum)
        arrive(U32(barrier + stat_full))
        if token < seq_q:
            value = mul(fma(m, scale_log2, log2(row_sum)), ln_2)
            if row_sum == zero:
                value = neg_inf
            store_global(U64(lse + U64(4) * U64(lse_index)), value)
        end_marker()

    return softmax
