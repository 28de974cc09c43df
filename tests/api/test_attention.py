"""``attention``: kinds of arrays, layouts, empty sizes, and one clear error for each bad input."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import fa4_numba as fa4
from fa4_numba.errors import ArrayError, BackendError, ConfigError, UnsupportedError
from fa4_numba.reference import exact

CALL = {"backend": "reference"}


def arrays(q=(1, 5, 4, 16), k=(1, 7, 2, 16), v=(1, 7, 2, 16), dtype=np.float32):
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in (q, k, v))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
@pytest.mark.parametrize("causal", [False, True])
def test_reference_backend(dtype, layout, causal):
    q, k, v = arrays(dtype=dtype)
    want, want_lse = exact(q, k, v, causal=causal)
    swap = lambda x: x.transpose(0, 2, 1, 3) if layout == "bhsd" else x
    o, lse = fa4.attention(swap(q), swap(k), swap(v), causal=causal, layout=layout, return_lse=True, **CALL)
    assert o.dtype == q.dtype and o.shape == swap(want).shape
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[np.dtype(dtype).itemsize]
    assert np.abs(o.astype(np.float64) - swap(want)).max() < tolerance
    assert np.abs(lse - want_lse).max() < 1e-5


def test_inputs_may_have_any_strides_and_are_not_written():
    q, k, v = arrays((1, 9, 2, 16), (1, 9, 2, 16), (1, 9, 2, 16), ml_dtypes.bfloat16)
    want = fa4.attention(q, k, v, backend="emulator")
    odd = np.zeros((1, 9, 2, 40), q.dtype)[..., 3:19]
    odd[...] = q
    reverse_k = np.ascontiguousarray(k[:, ::-1])[:, ::-1]
    transposed_v = np.ascontiguousarray(v.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    kept = [x.copy() for x in (odd, reverse_k, transposed_v)]
    for x in (odd, reverse_k, transposed_v):
        x.flags.writeable = False
    got = fa4.attention(odd, reverse_k, transposed_v, backend="emulator")
    assert (got == want).all()
    assert all((a == b).all() for a, b in zip(kept, (odd, reverse_k, transposed_v)))
    broadcast = np.broadcast_to(k[:, :1], k.shape)
    assert np.isfinite(fa4.attention(q, broadcast, v, backend="emulator").astype(np.float32)).all()


@pytest.mark.parametrize("backend", ["reference", "emulator"])
@pytest.mark.parametrize(
    "batch, seq_q, seq_k, heads", [(0, 3, 3, 2), (1, 0, 3, 2), (1, 3, 0, 2), (1, 3, 3, 0)]
)
def test_empty_sizes(backend, batch, seq_q, seq_k, heads):
    shapes = (batch, seq_q, heads, 64), (batch, seq_k, heads, 64), (batch, seq_k, heads, 64)
    q, k, v = (np.ones(shape, np.float16) for shape in shapes)
    o, lse = fa4.attention(q, k, v, backend=backend, return_lse=True)
    assert o.shape == q.shape and lse.shape == (batch, heads, seq_q)
    assert (o == 0).all() and (lse == -np.inf).all()


def test_out_and_dlpack():
    q, k, v = arrays()
    out = np.zeros(q.shape, q.dtype)
    assert fa4.attention(q, k, v, out=out, **CALL) is out
    assert (out == fa4.attention(q, k, v, **CALL)).all()

    class OnlyDLPack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert (fa4.attention(OnlyDLPack(q), OnlyDLPack(k), OnlyDLPack(v), **CALL) == out).all()


Q, K, V = arrays()
BAD = [
    ("rank", (Q[0], K, V), {}, ArrayError, r"q has shape \(5, 4, 16\).*4 dimensions"),
    ("dims", (Q, K[..., :8], V), {}, ArrayError, "head dimension 16 and k 8"),
    ("keys", (Q, K, V[:, :3]), {}, ArrayError, "k has 7 keys and v 3"),
    ("kv heads", (Q, K, V[:, :, :1]), {}, ArrayError, "k has 2 heads and v 1"),
    ("group", (Q[:, :, :3], K, V), {}, ArrayError, "3 heads.*multiple"),
    ("batch", (np.repeat(Q, 2, 0), K, V), {}, ArrayError, "batch sizes"),
    ("mixed dtypes", (Q, K.astype(np.float16), V), {}, ArrayError, "must agree"),
    ("integers", (Q.astype(int), K, V), {}, ArrayError, "dtype int64"),
    ("strings", (np.full(Q.shape, "a"), K, V), {}, ArrayError, "dtype"),
    ("no array", ([[1.0]], K, V), {}, ArrayError, "q is a list"),
    ("none", (None, K, V), {}, ArrayError, "q is a NoneType"),
    ("layout", (Q, K, V), {"layout": "sbhd"}, ArrayError, "layout = 'sbhd'"),
    ("backend", (Q, K, V), {"backend": "cuda"}, ArrayError, "backend = 'cuda'"),
    ("scale", (Q, K, V), {"scale": "big"}, ArrayError, "scale = 'big'"),
    ("scale nan", (Q, K, V), {"scale": float("nan")}, ArrayError, "must be finite"),
    ("causal", (Q, K, V), {"causal": 2}, ArrayError, "causal = 2"),
    ("out", (Q, K, V), {"out": np.zeros(3)}, ArrayError, "out is ndarray"),
    ("window", (Q, K, V), {"window": (1 << 80, 0)}, UnsupportedError, "window"),
    ("softcap", (Q, K, V), {"softcap": 3.0}, UnsupportedError, "softcap"),
    ("sink", (Q, K, V), {"sink": Q}, UnsupportedError, "sink"),
    ("align", (Q, K, V), {"causal_align": "top-left"}, UnsupportedError, "bottom-right"),
    ("unknown", (Q, K, V), {"windoww": 1}, TypeError, "windoww"),
    ("float32 kernel", (Q, K, V), {"backend": "emulator"}, UnsupportedError, "float32.*bfloat16"),
    ("sm90", (Q, K, V), {"backend": "sm90"}, UnsupportedError, "not built yet"),
]


@pytest.mark.parametrize("name, args, options, error, message", BAD, ids=[b[0] for b in BAD])
def test_bad_inputs(name, args, options, error, message):
    with pytest.raises(error, match=message):
        fa4.attention(*args, **options)


def test_wide_heads_are_refused_by_the_kernel_only():
    q, k, v = arrays((1, 3, 1, 160), (1, 3, 1, 160), (1, 3, 1, 160), np.float16)
    with pytest.raises(UnsupportedError, match="160.*at most 128"):
        fa4.attention(q, k, v, backend="emulator")
    assert fa4.attention(q, k, v).shape == q.shape


def test_no_gpu(monkeypatch):
    from fa4_numba.api import dispatch

    monkeypatch.setattr(dispatch, "gpu_architecture", lambda: None)
    q, k, v = arrays(dtype=np.float16)
    with pytest.raises(BackendError, match="no GPU.*emulator"):
        fa4.attention(q, k, v, backend="sm100")
    choice = fa4.explain_backend(q, k, v)
    assert choice.backend == "reference" and "no GPU" in choice.rejected["sm100"]
    assert "emulator" in choice.rejected and "reference" in str(choice)


def test_config_errors():
    base = {"num_q_heads": 1, "group": 1, "qk_depth": 64, "ov_depth": 64}
    for change, message in [
        ({"qkv_dtype": "int8"}, "qkv_dtype"),
        ({"group": 1.5}, "group"),
        ({"swizzle_mode": "256B"}, "swizzle"),
        ({"is_mla": 3}, "is_mla"),
    ]:
        with pytest.raises(ConfigError, match=message):
            fa4.FA4Config(**(base | change))
    cfg = fa4.FA4Config(**base)
    assert fa4.FA4Config.from_json(cfg.to_json()) == cfg and hash(fa4.FA4Config(**base)) == hash(cfg)
    assert json.loads(cfg.to_json())["group"] == 1
    assert "BN = 192" in cfg.explain()
    with pytest.raises(ConfigError):
        fa4.FA4Config.from_json("{")


def test_import_is_light():
    code = "import fa4_numba, sys; print(any(m.split('.')[0] in ('numba', 'cuda', 'matplotlib') for m in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    )
