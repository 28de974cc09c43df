"""The compiled sm_100a kernel, executed by the emulator, against ``tiled`` (its own roundings) and float64."""

import numpy as np
import pytest

from fa4_numba.api import Problem, choose_config, emulate
from fa4_numba.config import FA4Config
from fa4_numba.kernels.common.exp2 import POLYNOMIAL, emulated_columns
from fa4_numba.reference import exact, tiled
from fa4_numba.testing import assert_close_to_float64, assert_lse_close, assert_within_ulp
from fa4_numba.testing.numerics import plain_attention
from fa4_numba.toolchain import compile_kernel

SCHEDULES = ("eager", "late", "random:1")
# (batch, q heads, kv heads, Sq, Sk, dim, causal, dtype)
SHAPES = [
    (1, 1, 1, 1, 1, 64, False, "bfloat16"),
    (1, 1, 1, 1, 1, 128, True, "float16"),
    (1, 1, 1, 2, 17, 128, False, "bfloat16"),
    (1, 1, 1, 17, 2, 128, True, "bfloat16"),
    (1, 1, 1, 63, 64, 64, True, "bfloat16"),
    (1, 1, 1, 64, 63, 64, False, "float16"),
    (1, 1, 1, 65, 65, 128, True, "bfloat16"),
    (1, 1, 1, 127, 128, 128, False, "float16"),
    (1, 1, 1, 128, 127, 64, True, "float16"),
    (1, 1, 1, 128, 128, 128, True, "bfloat16"),
    (1, 1, 1, 129, 129, 128, True, "float16"),
    (1, 1, 1, 129, 257, 64, True, "bfloat16"),
    (1, 1, 1, 200, 300, 128, True, "bfloat16"),
    (1, 1, 1, 256, 256, 64, False, "bfloat16"),
    (1, 1, 1, 256, 257, 128, False, "bfloat16"),
    (1, 1, 1, 257, 256, 128, True, "float16"),
    (1, 1, 1, 300, 200, 64, True, "bfloat16"),
    (1, 1, 1, 300, 1, 128, True, "bfloat16"),
    (1, 1, 1, 513, 129, 64, True, "float16"),
    (1, 1, 1, 129, 513, 128, False, "bfloat16"),
    (1, 1, 1, 513, 513, 128, True, "bfloat16"),
    (1, 1, 1, 1, 513, 64, False, "float16"),
    (1, 1, 1, 513, 17, 64, False, "bfloat16"),
    (2, 1, 1, 65, 129, 64, True, "bfloat16"),
    (3, 1, 1, 17, 63, 128, False, "bfloat16"),
    (1, 3, 1, 65, 65, 128, True, "bfloat16"),
    (1, 3, 1, 200, 129, 64, False, "float16"),
    (2, 3, 1, 129, 200, 64, True, "bfloat16"),
    (1, 6, 2, 64, 127, 128, False, "bfloat16"),
    (1, 4, 1, 63, 65, 128, True, "bfloat16"),
    (1, 4, 1, 129, 128, 64, True, "bfloat16"),
    (1, 8, 2, 65, 257, 128, False, "float16"),
    (2, 4, 1, 127, 64, 128, True, "float16"),
    (1, 5, 1, 64, 64, 128, True, "bfloat16"),
    (1, 5, 1, 128, 129, 64, False, "bfloat16"),
    (1, 10, 2, 17, 200, 64, True, "bfloat16"),
    (1, 8, 1, 1, 300, 128, True, "bfloat16"),
    (1, 8, 1, 17, 17, 64, True, "bfloat16"),
    (1, 8, 1, 65, 200, 128, False, "bfloat16"),
    (2, 8, 1, 33, 129, 64, True, "float16"),
    (1, 2, 2, 129, 65, 128, True, "bfloat16"),
    (2, 2, 2, 64, 128, 64, False, "bfloat16"),
]


def check(q, k, v, kernel, *, causal, scale=None, schedule="eager"):
    run = emulate(kernel, q, k, v, scale=scale, schedule=schedule)
    cfg = kernel.config
    o, lse = tiled(
        q,
        k,
        v,
        cfg,
        causal=causal,
        scale=scale,
        polynomial=POLYNOMIAL,
        emulated_columns=emulated_columns(cfg.BN),
    )
    tile = (1, cfg.BM_eff(), 1, q.shape[3])
    assert_within_ulp(run.o, o, 2, tile)
    want, want_lse = exact(q, k, v, causal=causal, scale=scale)
    assert_close_to_float64(run.o, want, plain_attention(q, k, v, causal=causal, scale=scale), tile)
    assert_lse_close(run.lse, want_lse)
    assert_lse_close(run.lse, lse.astype(np.float64))
    return run


def kernel_for(q, k, v, causal):
    problem = Problem(
        q.shape[0],
        q.shape[2],
        k.shape[2],
        q.shape[1],
        k.shape[1],
        q.shape[3],
        v.shape[3],
        str(q.dtype),
        causal,
    )
    return compile_kernel(choose_config(problem).config, causal=causal)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "-".join(map(str, s)))
def test_equals_tiled_and_float64_under_every_schedule(shape, inputs):
    batch, heads, kv_heads, seq_q, seq_k, dim, causal, dtype = shape
    q, k, v = inputs(batch, heads, kv_heads, seq_q, seq_k, dim, dtype)
    kernel = kernel_for(q, k, v, causal)
    runs = [check(q, k, v, kernel, causal=causal, schedule=schedule) for schedule in SCHEDULES]
    for run in runs[1:]:  # the schedule must not change a bit
        assert (run.o.view(np.uint16) == runs[0].o.view(np.uint16)).all()
        assert (run.lse.view(np.uint32) == runs[0].lse.view(np.uint32)).all()


@pytest.mark.parametrize("dim, v_dim", [(80, 80), (96, 64), (17, 33), (40, 128), (128, 64)])
def test_other_head_dims_are_padded_exactly(dim, v_dim, inputs):
    q, k, v = inputs(1, 2, 1, 65, 129, dim, v_dim=v_dim)
    check(q, k, v, kernel_for(q, k, v, True), causal=True, schedule="late")


def test_staged_k_in_a_split_ring(inputs):
    cfg = FA4Config(num_q_heads=1, group=1, qk_depth=128, ov_depth=128, num_qk_stages=2)
    assert not cfg.use_shared_kv and cfg.num_qk_stages == 2
    q, k, v = inputs(1, 1, 1, 200, 700, 128)
    check(q, k, v, compile_kernel(cfg, causal=True), causal=True, schedule="late")


def test_huge_scores_do_not_lose_the_difference(inputs):
    q, k, v = inputs(1, 1, 1, 130, 300, 64)
    q = (q.astype(np.float32) * 3e3).astype(q.dtype)
    k = (k.astype(np.float32) * 3e3).astype(k.dtype)
    check(q, k, v, kernel_for(q, k, v, True), causal=True)


def test_rows_whose_first_tile_is_very_negative(inputs):
    """A tile that a row does not see must not leave a finite maximum behind."""
    q, k, v = inputs(1, 1, 1, 256, 256, 64)
    k[...] = -np.abs(k)
    q[...] = np.abs(q) * q.dtype.type(40)
    check(q, k, v, kernel_for(q, k, v, True), causal=True)


@pytest.mark.parametrize("scale", [-0.3, 0.0, 7.5])
def test_any_real_scale(scale, inputs):
    q, k, v = inputs(1, 1, 1, 70, 140, 64)
    check(q, k, v, kernel_for(q, k, v, False), causal=False, scale=scale)


def test_nan_reaches_exactly_the_rows_that_see_it(inputs):
    q, k, v = inputs(1, 2, 1, 130, 150, 64)
    k[0, 60, 0, 3] = np.nan
    v[0, 100, 0, 5] = np.nan
    v[0, 120, 0, 6] = np.inf
    run = emulate(kernel_for(q, k, v, True), q, k, v)
    want, want_lse = exact(q, k, v, causal=True)
    assert (np.isnan(run.o.astype(np.float64)) == np.isnan(want)).all()
    assert (np.isinf(run.o.astype(np.float64)) == np.isinf(want)).all()
    assert (np.isnan(run.lse) == np.isnan(want_lse)).all()
    assert np.isnan(want).any() and not np.isnan(want).all()


def test_garbage_behind_the_last_key_is_never_read(inputs):
    """K and V are views into larger arrays that are NaN beyond Sk."""
    q, k, v = inputs(1, 1, 1, 40, 100, 64)
    big_k, big_v = (np.full((1, 300, 1, 64), np.nan, x.dtype) for x in (k, v))
    big_k[:, :100], big_v[:, :100] = k, v
    kernel = kernel_for(q, k, v, False)
    run = emulate(kernel, q, big_k[:, :100], big_v[:, :100])
    same = emulate(kernel, q, k, v)
    assert (run.o == same.o).all() and (run.lse == same.lse).all()
