"""The launch plan: tensor maps of strided arrays, the grid, and numpy arrays made fit for TMA."""

import numpy as np
import pytest

from fa4_numba.config import FA4Config
from fa4_numba.errors import UnsupportedError
from fa4_numba.launch.host_arrays import covering_bytes, tma_ready, zeros_tma_ready
from fa4_numba.launch.plan import Operand, plan_forward, sequences_per_group

CFG = FA4Config(num_q_heads=8, group=4, qk_depth=128, ov_depth=128)


def operand(shape, address=4096):
    strides = (
        tuple(int(s) for s in np.zeros(shape, np.uint16).strides)
        if np.prod(shape) < 1e8
        else (1 << 30, 2048, 256, 2)
    )
    return Operand(address, shape, strides, "bfloat16")


def test_fused_heads_become_tile_rows():
    q, kv = operand((2, 100, 8, 128)), operand((2, 300, 2, 128))
    plan = plan_forward(CFG, q, kv, kv, q, 0, 0.5)
    q_map, k_map, v_map, o_map, _, seq_q, seq_k, tiles, heads, sequences, group, scale_log2 = plan.args
    assert q_map.shape == (128, 4, 100, 2, 2) and q_map.box == (64, 4, 32, 1, 1)
    assert q_map.strides_bytes == (256, 2048, 1024, 204800) and o_map == q_map
    assert k_map.shape == (128, 300, 2, 2) and k_map.box == (64, 128, 1, 1) and v_map == k_map
    assert (seq_q, seq_k, tiles, heads, sequences) == (100, 300, 2, 2, 4)
    assert plan.grid == (8, 1, 1) and plan.block == (512, 1, 1) and plan.dynamic_smem_bytes == CFG.smem_used
    assert scale_log2 == pytest.approx(0.5 * 1.4426950408889634)


def test_groups_of_heads_fit_in_l2():
    assert sequences_per_group(CFG, 1024, 256, 1000) == 64
    assert sequences_per_group(CFG, 10**7, 256, 1000) == 1
    assert sequences_per_group(CFG, 16, 256, 5) == 5


def test_too_many_tiles_are_refused():
    q, kv = operand((1 << 22, 1 << 17, 8, 128)), operand((1 << 22, 128, 2, 128))
    with pytest.raises(UnsupportedError, match="Split the batch"):
        plan_forward(CFG, q, kv, kv, q, 0, 1.0)


def test_only_what_tma_cannot_read_is_copied():
    good = np.zeros((2, 5, 3, 64), np.float16)
    assert tma_ready(good) is good
    view = good[:, 1:, ::2, 8:]
    assert tma_ready(view) is view
    for bad in (good[..., 1:], good[..., ::2], good[:, ::-1], np.zeros((1, 4, 2, 17), np.float16)):
        bad[...] = np.random.default_rng(0).standard_normal(bad.shape)
        copy = tma_ready(bad)
        assert copy is not bad and (copy == bad).all()
        assert all(s % 16 == 0 for s in copy.strides[:-1]) and copy.ctypes.data % 16 == 0
    flat = covering_bytes(view)
    assert (
        flat.ctypes.data == view.ctypes.data
        and flat.size == view[-1, -1, -1, -1:].ctypes.data + 2 - flat.ctypes.data
    )
    assert zeros_tma_ready((1, 2, 3, 5), np.float16).shape == (1, 2, 3, 5)
