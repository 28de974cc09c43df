"""The correction role: 128 threads that keep O in tensor memory in step with the growing row max, and finish it."""

from ...ptx.numba_adapter import intrinsic_for, marker, unrolled
from ..common.device import F32, I32, U32, device_inline, types
from ..common.softmax_math import ROUND_PAIR
from .geometry import Geometry
from .support import CHUNK_BYTES

STEP = 16  # O columns per step: the role has few registers
O_STAGED_BARRIER = 1  # named barriers 1 and 2: O tile s is in SMEM (128 correction + 32 store threads)
O_STAGED_THREADS = 160


def make_rescale(g: Geometry):
    """Return ``rescale(o, factor)``: this thread's row of O, in place, times ``factor``."""

    @unrolled(types.void, U32, F32)
    def rescale(e, o, factor):
        factor2 = e.pack(factor, factor)
        for first in range(0, g.cfg.padded_ov_depth, STEP):
            address = e.offset(o, first)
            x = e.tied("tmem_wait_load", e.tmem_load_32x32b_x16(address))
            scaled = []
            for i in range(0, STEP, 2):
                scaled += e.unpack(e.mul_x2(e.pack(x[i], x[i + 1]), factor2))
            e.tmem_store_f32_x16(address, scaled)
        e.tmem_wait_store()

    return rescale


def make_stage_output(g: Geometry):
    """Return ``stage_output(o, factor, destination, row)``: O·factor, rounded, to swizzled SMEM rows.

    A row of a chunk is 128 bytes; its 16-byte pieces are permuted by the row's low three bits (swizzle 128B).
    """
    round_name = ROUND_PAIR[g.cfg.qkv_dtype]

    @unrolled(types.void, U32, F32, U32, U32)
    def stage_output(e, o, factor, destination, row):
        b = e.builder
        factor2 = e.pack(factor, factor)
        row_address = b.add(destination, b.mul(row, e.u32(CHUNK_BYTES)))
        flip = b.shl(b.and_(row, e.u32(7)), e.u32(4))
        for first in range(0, g.cfg.padded_ov_depth, STEP):
            x = e.tied("tmem_wait_load", e.tmem_load_32x32b_x16(e.offset(o, first)))
            cells = []
            for i in range(0, STEP, 2):
                pair = e.unpack(e.mul_x2(e.pack(x[i], x[i + 1]), factor2))
                cells.append(getattr(e, round_name)(*pair))
            chunk, inside = divmod(first, g.chunk_elems)
            for half in range(2):
                piece = e.u32(inside * g.cfg.qkv_dtype_size + 16 * half)
                address = b.add(row_address, b.xor(flip, piece))
                e.shared_store_v4(e.offset(address, chunk * g.q_chunk_bytes), cells[4 * half : 4 * half + 4])

    return stage_output


def make_correction(g: Geometry):
    """Return ``correction(smem, tmem, warp, row, num_tiles)``."""
    rescale, stage_output = make_rescale(g), make_stage_output(g)
    next_index = intrinsic_for("next_index")
    wait, arrive = intrinsic_for("mbarrier_wait"), intrinsic_for("mbarrier_arrive")
    fence_before, fence_after = intrinsic_for("tmem_fence_before"), intrinsic_for("tmem_fence_after")
    fence_proxy, staged = intrinsic_for("fence_proxy_async"), intrinsic_for("named_barrier_arrive")
    vote_any, reciprocal, load_shared = (
        intrinsic_for("vote_any"),
        intrinsic_for("rcp_approx"),
        intrinsic_for("shared_load_f32"),
    )
    p_ready, o_full = U32(g.barrier("p_ready[0]")), U32(g.barrier("o_full[0]"))
    stat_full, stat_empty = U32(g.barrier("stat_full[0]")), U32(g.barrier("stat_empty[0]"))
    statistics = U32(g.smem("correction"))
    o_column, o_pitch = U32(g.cfg.TMEM_O0), U32(g.cfg.TMEM_O1 - g.cfg.TMEM_O0)
    staging, staging_pitch = U32(g.smem("q[0]")), U32(g.smem("q[1]") - g.smem("q[0]"))
    one, zero = F32(1.0), F32(0.0)
    wait_marker, rescale_marker, output_marker = (
        marker(f"stage={name}") for name in ("wait", "rescale O", "write O")
    )

    @device_inline
    def receive(smem, s, row, i):
        """Take tile i's statistic of Q tile s: the factor of O, or the final row sum."""
        wait(U32(smem + stat_full + U32(8 * s)), U32(i & 1))
        value = load_shared(U32(smem + statistics + U32(4) * U32(128 * s + row)))
        arrive(U32(smem + stat_empty + U32(8 * s)))
        return value

    @device_inline
    def correction(smem, tmem, warp, row, num_tiles):
        o = U32(tmem + U32(U32(warp & 3) << U32(21)) + o_column)
        for s in range(2):  # nothing to rescale before the first P V
            receive(smem, s, row, 0)
            arrive(U32(smem + p_ready + U32(8 * s)))
        i = I32(1)
        while i < num_tiles:
            for s in range(2):
                wait_marker()
                factor = receive(smem, s, row, i)
                rescale_marker()
                # S of tile i is complete (softmax saw it), so P V of tile i − 1, issued before it, is too
                fence_after()
                if vote_any(U32(factor < one)) != U32(0):
                    rescale(U32(o + U32(s) * o_pitch), factor)
                    fence_before()
                arrive(U32(smem + p_ready + U32(8 * s)))
            i = next_index(i)
        for s in range(2):
            wait_marker()
            row_sum = receive(smem, s, row, num_tiles)
            factor = one
            if row_sum > zero:  # not for an empty row (O is 0) nor for NaN (O is NaN)
                factor = reciprocal(row_sum)
            wait(U32(smem + o_full + U32(8 * s)), U32(0))
            output_marker()
            fence_after()
            stage_output(
                U32(o + U32(s) * o_pitch), factor, U32(smem + staging + U32(s) * staging_pitch), U32(row)
            )
            fence_proxy()
            staged(U32(O_STAGED_BARRIER + s), U32(O_STAGED_THREADS))
        wait_marker()

    return correction
