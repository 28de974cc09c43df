"""The derivation: from a model's attention shape to tile shape, TMEM columns, stages and bytes.

Each step takes what the steps before it found. Floor division throughout, and 0 for a zero divisor.
"""

import math
from types import SimpleNamespace

from ..hw import SM_100A
from .types import DTYPE_BYTES, SWIZZLE_BYTES, align_down, align_up, div, mod

SMEM_BYTES = SM_100A.smem_bytes_per_block
TMEM_COLS = SM_100A.tmem_cols
BARRIER_BYTES = 8  # an mbarrier; source: PTX ISA, "mbarrier"
TMEM_SLOT_BYTES = 4  # tcgen05.alloc writes a 32-bit address
CORRECTION_BYTES = 1024  # one f32 per row of a 256-row tile, whatever BM is
FIXED_BARRIERS = 12  # six events of softmax, correction and MMA, for each of two softmax groups
STAGE_BARRIER_BYTES = 2 * BARRIER_BYTES  # full and empty


def derive(a: SimpleNamespace) -> SimpleNamespace:
    """Return every derived field for the checked arguments ``a`` (dtype sizes included)."""
    f = SimpleNamespace()
    _shape(a, f)
    _padding(a, f)
    _keys_per_tile(a, f)
    _tensor_memory(a, f)
    _shared_memory(a, f)
    return f


def dtype_facts(qkv_dtype: str, rope_dtype: str | None, scale_dtype: str | None) -> SimpleNamespace:
    """Return byte sizes and the MMA's K for a dtype triple."""
    size = DTYPE_BYTES[qkv_dtype]
    return SimpleNamespace(
        d=size,
        rs=DTYPE_BYTES[rope_dtype] if rope_dtype else 0,
        ss=DTYPE_BYTES[scale_dtype] if scale_dtype else 0,
        K=16 if qkv_dtype in ("bfloat16", "float16") else 32,
        fp8=qkv_dtype.startswith("float8"),
    )


def _shape(a, f):
    f.num_q = 2 if a.BM == 256 else 1
    f.single_o = a.single_o and f.num_q == 1
    f.MMA_M = 256 if a.pair_cta else a.BM if a.BM in (32, 64) else 128
    f.use_ws = not a.pair_cta and f.MMA_M <= 64
    f.m_pack = div(128, f.MMA_M) if f.use_ws else 1
    f.fuse_gqa = a.group > 1 and mod(f.MMA_M, a.group) == 0 and not a.is_mla
    f.num_kv_heads = div(a.num_q_heads, a.group)


def _padding(a, f):
    f.swizzle_mode = "64B" if a.t.fp8 else a.swizzle_mode
    f.granularity = div(SWIZZLE_BYTES[f.swizzle_mode], a.t.d)
    f.nope_depth = a.ov_depth if a.nope_depth < 0 else a.nope_depth
    f.padded_qk_depth = align_up(a.qk_depth, f.granularity)
    f.padded_ov_depth = align_up(a.ov_depth, f.granularity)
    f.padded_nope_depth = align_up(f.nope_depth, f.granularity)


def _keys_per_tile(a, f):
    width = max(f.padded_nope_depth, f.padded_ov_depth)
    budget = div(TMEM_COLS - width, 2) if f.single_o else TMEM_COLS // 2 - width
    f.BN = min(256, align_down(budget * f.m_pack, a.t.K))
    f.bn_of_columns = f.BN
    if a.bn_cap > 0:
        f.BN = min(f.BN, align_down(a.bn_cap, a.t.K))
    f.bn_capped = f.BN
    if a.page_size != 0 and mod(a.page_size, f.BN) != 0 and mod(f.BN, a.page_size) != 0:
        f.BN = 1 << (f.BN.bit_length() - 1) if f.BN > 0 else 0
    dense = not a.is_mla and 0 < a.page_size < f.BN
    f.row_major_v_atoms = f.row_major_k_atoms = dense
    f.BK1 = f.BN


def _tensor_memory(a, f):
    scores = div(f.BN, f.m_pack)
    f.TMEM_S1, f.TMEM_P0, f.TMEM_P1, f.TMEM_O0 = scores, 0, scores, 2 * scores
    f.TMEM_O1 = f.TMEM_O0 if f.single_o else f.TMEM_O0 + f.padded_ov_depth
    f.tmem_used = f.TMEM_O1 + f.padded_ov_depth


def _shared_memory(a, f):
    wanted = a.num_qk_stages or math.gcd(div(f.padded_qk_depth, f.granularity), div(f.padded_qk_depth, a.t.K))
    f.wanted_stages = wanted
    f.provisional_stages = 1 if a.is_mla else wanted
    f.num_pv_stages = 2
    rope = f.padded_qk_depth - f.padded_nope_depth
    q_row = f.padded_nope_depth * a.t.d + rope * a.t.rs if a.t.rs > 0 else f.padded_qk_depth * a.t.d
    f.misc_barriers = FIXED_BARRIERS
    f.misc_barriers += f.provisional_stages if f.num_q == 2 else int(a.splitk_partitions > 1)
    fixed = (
        TMEM_SLOT_BYTES + BARRIER_BYTES * f.misc_barriers + a.BM * q_row + a.BM * a.t.ss + CORRECTION_BYTES
    )
    f.q_row_bytes = q_row
    f.fixed_bytes = fixed
    width = max(f.padded_nope_depth, f.padded_ov_depth)
    (_packed_ring if f.use_ws else _ring)(a, f, fixed, width, rope, wanted)
    f.BK0 = div(f.padded_qk_depth, f.num_qk_stages)


def _packed_ring(a, f, fixed, width, rope, wanted):
    slot = f.BN * div(width, f.provisional_stages) * a.t.d + STAGE_BARRIER_BYTES
    f.num_kv_stages = div(SMEM_BYTES - fixed, slot)
    f.use_shared_kv, f.num_qk_stages = True, f.provisional_stages
    f.smem_used = fixed + f.num_kv_stages * slot
    f.kv_slots, f.slot_bytes, f.k_extra_bytes = f.num_kv_stages, slot, 0


def _ring(a, f, fixed, width, rope, wanted):
    remaining = SMEM_BYTES - fixed
    tile = f.BN * width
    kv = (div(tile, 2) if a.pair_cta else tile) * a.t.d + STAGE_BARRIER_BYTES
    k_extra = (div(f.BN, 2) if a.pair_cta else f.BN) * (rope * a.t.rs + a.t.ss)
    used = lambda n: n * kv + div(n + 1, 2) * k_extra
    slots = div(remaining, kv + div(k_extra, 2))
    if a.num_qk_stages > 1 and mod(slots, 2):
        slots -= 1
    if used(slots) > remaining:
        slots -= 1
    f.kv_slots, f.slot_bytes, f.k_extra_bytes = slots, kv, k_extra
    f.smem_used = fixed + used(slots)
    if mod(slots, 2) and not f.single_o:
        f.use_shared_kv, f.num_kv_stages, f.num_qk_stages = True, slots, 1
        return
    f.use_shared_kv, f.num_kv_stages, f.num_qk_stages = False, div(slots, 2), 1
    if not a.is_mla:
        staged = f.smem_used + (wanted - 1) * f.num_kv_stages * STAGE_BARRIER_BYTES
        if staged < SMEM_BYTES:
            f.num_qk_stages, f.smem_used = wanted, staged
