"""Softmax over one row of scores held in registers (one thread per row), as straight-line code.

Tiles are ``columns`` f32 registers. Each maker returns device functions for one tile width.
"""

from ...ptx.numba_adapter import unrolled
from .device import F32, I32, U32, types
from .exp2 import FLOOR_MAGIC, LOWEST, POLYNOMIAL

NEG_INF = float("-inf")
ROUND_PAIR = {"bfloat16": "to_bf16x2", "float16": "to_f16x2"}  # instruction that packs two f32


def make_mask(columns: int):
    """Return ``mask(x, visible)``: columns ≥ ``visible`` (any integer) become −inf, by selection."""
    tile = types.UniTuple(F32, columns)

    @unrolled(tile, tile, I32)
    def mask(e, x, visible):
        minus_inf, masked = e.f32(NEG_INF), []
        for first in range(0, columns, 32):
            count = e.builder.sub(visible, e.u32(first))
            negative = e.builder.icmp_signed("<", count, e.u32(0))
            count = e.builder.select(negative, e.u32(0), count)
            bits = e.builder.sub(e.shl_clamp(e.u32(1), count), e.u32(1))  # one bit per visible column
            masked += [
                e.select_bit(bits, value, minus_inf, bit=1 << j)
                for j, value in enumerate(x[first : first + 32])
            ]
        return masked

    return mask


def make_row_max(columns: int):
    """Return ``row_max(x, m)``: max of ``m`` and the tile, NaN if any of them is NaN. Four chains of max3."""
    tile = types.UniTuple(F32, columns)

    @unrolled(F32, tile, F32)
    def row_max(e, x, m):
        chains = [e.max3_nan(m, x[0], x[1])] + [e.max3_nan(*x[2 + 3 * i : 5 + 3 * i]) for i in range(3)]
        rest = x[11:]
        for i in range(0, len(rest) - 1, 2):
            chains[(i // 2) % 4] = e.max3_nan(chains[(i // 2) % 4], rest[i], rest[i + 1])
        if len(rest) % 2:
            chains[3] = e.max_nan(chains[3], rest[-1])
        return e.max_nan(e.max3_nan(*chains[:3]), chains[3])

    return row_max


def make_subtract(columns: int):
    """Return ``subtract(x, m)``: x − m for the whole tile."""
    tile = types.UniTuple(F32, columns)

    @unrolled(tile, tile, F32)
    def subtract(e, x, m):
        m_pair = e.pack(m, m)
        out = []
        for i in range(0, columns, 2):
            out += e.unpack(e.sub_x2(e.pack(x[i], x[i + 1]), m_pair))
        return out

    return subtract


def emulated_exp2_pair(e, y):
    """Emit 2**y for a packed pair on the FMA units (``exp2.py``); y ≤ 127. NaN gives an arbitrary value."""
    constant = lambda value: e.pack(e.f32(value), e.f32(value))
    lo, hi = e.unpack(y)
    y = e.pack(e.max(lo, e.f32(LOWEST)), e.max(hi, e.f32(LOWEST)))
    shifted = e.add_round_down_x2(y, constant(FLOOR_MAGIC))  # low mantissa bits: floor(y)
    fraction = e.sub_x2(y, e.add_x2(shifted, constant(-FLOOR_MAGIC)))
    p = constant(POLYNOMIAL[-1])
    for coefficient in reversed(POLYNOMIAL[:-1]):
        p = e.fma_x2(p, fraction, constant(coefficient))
    return tuple(e.add_to_exponent(*pr) for pr in zip(e.unpack(p), e.unpack(shifted), strict=True))


def make_exp2_store(columns: int, emulated: frozenset[int], dtype: str, split: int):
    """Return ``exp2_store(x, scale, offset, l, p_tmem, p_ready, p_last) -> new row sum``.

    P = 2**(x·scale + offset), rounded to ``dtype``, goes to tensor memory column by column (two to a cell); when the
    first ``split`` columns are in place ``p_ready`` is signalled, at the end ``p_last``. The sum is that of the
    unrounded P, on top of ``l``. Pairs in ``emulated`` are computed on the FMA units.
    """
    tile = types.UniTuple(F32, columns)
    store_columns = 32  # 16 cells a store

    def publish(e, barrier):
        e.tmem_wait_store()
        e.tmem_fence_before()
        e.mbarrier_arrive(barrier)

    @unrolled(F32, tile, F32, F32, F32, U32, U32, U32)
    def exp2_store(e, x, scale, offset, row_sum, p_tmem, p_ready, p_last):
        scale2, offset2 = e.pack(scale, scale), e.pack(offset, offset)
        round_pair = getattr(e, ROUND_PAIR[dtype])
        pairs, cells = [], []
        for k in range(columns // 2):
            y = e.fma_x2(e.pack(x[2 * k], x[2 * k + 1]), scale2, offset2)
            pair = emulated_exp2_pair(e, y) if k in emulated else tuple(map(e.exp2_approx, e.unpack(y)))
            pairs.append(pair)
            cells.append(round_pair(*pair))
            done = 2 * (k + 1)
            if done % store_columns == 0:
                address = e.offset(p_tmem, (done - store_columns) // 2)
                e.tmem_store_32x32b_x16(address, cells[-store_columns // 2 :])
            if done == split:
                publish(e, p_ready)
        publish(e, p_last)
        sums = [e.pack(row_sum, e.f32(0.0))] + [e.pack(e.f32(0.0), e.f32(0.0))] * 3
        for k, pair in enumerate(pairs):
            sums[k % 4] = e.add_x2(sums[k % 4], e.pack(*pair))
        return e.add(*e.unpack(e.add_x2(e.add_x2(sums[0], sums[1]), e.add_x2(sums[2], sums[3]))))

    return exp2_store
