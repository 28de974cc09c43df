"""The references against an independent loop, and against each other."""

import math

import numpy as np
import pytest

from fa4_numba.config import FA4Config
from fa4_numba.reference import exact, online, tiled
from fa4_numba.testing import assert_close_to_float64, assert_lse_close, assert_within_ulp
from fa4_numba.testing.numerics import plain_attention


def loop(q, k, v, causal, scale):
    """Attention one query at a time, with Python floats."""
    batch, seq_q, heads, _ = q.shape
    seq_k, kv_heads = k.shape[1], k.shape[2]
    o = np.zeros((batch, seq_q, heads, v.shape[3]))
    lse = np.full((batch, heads, seq_q), -np.inf)
    for b in range(batch):
        for i in range(seq_q):
            for h in range(heads):
                g = h // (heads // kv_heads)
                keys = [j for j in range(seq_k) if not causal or j <= i + seq_k - seq_q]
                if not keys:
                    continue
                s = [
                    scale * math.fsum(float(x) * float(y) for x, y in zip(q[b, i, h], k[b, j, g]))
                    for j in keys
                ]
                top = max(s)
                weights = [math.exp(x - top) for x in s]
                total = math.fsum(weights)
                lse[b, h, i] = top + math.log(total)
                for d in range(v.shape[3]):
                    o[b, i, h, d] = math.fsum(w * float(v[b, j, g, d]) for w, j in zip(weights, keys)) / total
    return o, lse


@pytest.mark.parametrize("shape", [(2, 4, 2, 5, 7, 8), (1, 3, 1, 9, 4, 6), (1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_exact_against_a_loop(shape, causal, inputs):
    batch, heads, kv_heads, seq_q, seq_k, dim = shape
    q, k, v = inputs(batch, heads, kv_heads, seq_q, seq_k, dim, v_dim=dim + 2)
    o, lse = exact(q, k, v, causal=causal, scale=0.7)
    want, want_lse = loop(q, k, v, causal, 0.7)
    assert np.abs(o - want).max() < 1e-12
    assert (np.isfinite(lse) == np.isfinite(want_lse)).all()
    seen = np.isfinite(lse)
    assert np.abs(lse[seen] - want_lse[seen]).max() < 1e-12


@pytest.mark.parametrize("causal", [False, True])
def test_online_and_tiled_against_exact(causal, inputs):
    q, k, v = inputs(1, 4, 2, 130, 200, 64)
    want, want_lse = exact(q, k, v, causal=causal)
    o, lse = online(q, k, v, causal=causal, block=48)
    assert np.abs(o - want).max() < 1e-5
    assert_lse_close(lse, want_lse)
    o, lse = tiled(
        q, k, v, FA4Config(num_q_heads=4, group=2, qk_depth=64, ov_depth=64, bn_cap=128), causal=causal
    )
    assert_close_to_float64(o, want, plain_attention(q, k, v, causal=causal))
    assert_lse_close(lse, want_lse)


@pytest.mark.parametrize("function", [exact, online])
def test_nan_and_infinity_stay_with_the_rows_that_see_them(function, inputs):
    q, k, v = (x.astype(np.float32) for x in inputs(1, 1, 1, 6, 6, 4))
    v[0, 3, 0, 1], v[0, 5, 0, 2], v[0, 2, 0, 0] = np.nan, np.inf, -np.inf
    o, _ = function(q, k, v, causal=True)
    assert np.isnan(o[0, :, 0, 1]).tolist() == [False] * 3 + [True] * 3
    assert (o[0, :, 0, 2] == np.inf).tolist() == [False] * 5 + [True]
    assert (o[0, :, 0, 0] == -np.inf).tolist() == [False] * 2 + [True] * 4
    k[0, 4] = np.nan
    o, lse = function(q, k, v, causal=True)
    assert np.isnan(lse[0, 0]).tolist() == [False] * 4 + [True] * 2


def test_the_rules_find_what_they_should():
    want = np.linspace(0.5, 1, 12).reshape(1, 3, 1, 4).astype(np.float16)
    got = want.copy()
    got[0, 2, 0, 1] += np.float16(0.004)
    with pytest.raises(AssertionError, match=r"first at \(0, 2, 0, 1\), tile \(0, 1, 0, 0\)"):
        assert_within_ulp(got, want, 2, (1, 2, 1, 4))
    with pytest.raises(AssertionError, match="close to float64"):
        assert_close_to_float64(got, want.astype(np.float64), want)
    with pytest.raises(AssertionError, match="LSE"):
        assert_lse_close(np.array([0.0, 2e-5]), np.array([0.0, 0.0]))
    with pytest.raises(AssertionError, match="LSE"):
        assert_lse_close(np.array([0.0]), np.array([-np.inf]))
    with pytest.raises(AssertionError):
        assert_within_ulp(np.array([np.nan], np.float16), np.array([1.0], np.float16))
