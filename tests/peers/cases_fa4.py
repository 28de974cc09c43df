"""flash-attn-4's cases: its own Python functions, called on torch CPU tensors.

Import order matters: the environment of CuTe DSL must be set before flash_attn is imported.
"""

from contextlib import contextmanager, nullcontext

from fa4_numba.emulator.driver.cute import prepare_environment

prepare_environment()

import flash_attn.cute.utils as flags  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from cases import Case, Comparison, attention_reference  # noqa: E402
from flash_attn.cute import flash_attn_func, flash_attn_varlen_func  # noqa: E402

CASES: list[Case] = []
BF16, FP16, FP8 = torch.bfloat16, torch.float16, torch.float8_e4m3fn
TOLERANCE = {BF16: 2**-7, FP16: 2**-9, FP8: 2**-4}  # of P's and the output's rounding
LSE_TOLERANCE = 1e-3


def case(name, function, *args, **kwargs):
    CASES.append(Case("flash-attn-4", name, lambda: function(*args, **kwargs)))


@contextmanager
def flag(name):
    """Set one of flash-attn-4's switches for a while."""
    before = getattr(flags, name)
    setattr(flags, name, True)
    try:
        yield
    finally:
        setattr(flags, name, before)


def tensor(*shape, dtype=BF16, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return torch.from_numpy(values).to(dtype)


def wide(*tensors):
    return [t.detach().float().numpy().astype(np.float64) for t in tensors]


def compare(out, lse, q, k, v, scale, *, sink=None, dtype=BF16, **masks):
    """Compare (heads …) outputs: q (S, H, D), k and v (S, Hk, D), out (S, H, Dv), lse (H, S)."""
    group = q.shape[1] // k.shape[1]
    want = [
        attention_reference(
            q[:, h],
            k[:, h // group],
            v[:, h // group],
            scale,
            sink=None if sink is None else sink[h],
            **masks,
        )
        for h in range(q.shape[1])
    ]
    found = [Comparison(out, np.stack([w[0] for w in want], 1), TOLERANCE[dtype])]
    if lse is not None:
        found.append(Comparison(lse, np.stack([w[1] for w in want]), LSE_TOLERANCE))
    return found


def forward(
    d, dv=None, *, sq=256, sk=None, heads=2, kv_heads=None, batch=1, dtype=BF16, switch=None, **options
):
    """``flash_attn_func`` on a batch of equal lengths."""
    dv, sk, kv_heads = dv or d, sk or sq, kv_heads or heads
    q = tensor(batch, sq, heads, d).to(dtype)
    k, v = tensor(batch, sk, kv_heads, d, seed=1).to(dtype), tensor(batch, sk, kv_heads, dv, seed=2).to(dtype)
    sink = tensor(heads, seed=3) if options.pop("sink", False) else None
    with flag(switch) if switch else nullcontext():
        out, lse = flash_attn_func(q, k, v, learnable_sink=sink, return_lse=True, **options)
    causal, window = options.get("causal", False), options.get("window_size")
    masks = {"causal": causal, "softcap": options.get("softcap")}
    if window:
        masks["window"] = tuple(np.inf if w is None else w for w in window)
    arrays = [wide(q[b], k[b], v[b], out[b], lse[b]) for b in range(batch)]
    sinks = None if sink is None else wide(sink)[0]
    return [
        c
        for q_, k_, v_, o, s in arrays
        for c in compare(o, s, q_, k_, v_, d**-0.5, sink=sinks, dtype=dtype, **masks)
    ]


for d in (64, 96, 128, 256):
    case(f"forward d{d} full", forward, d)
for d in (64, 128, 256):
    case(f"forward d{d} causal", forward, d, causal=True)
case("forward d192/128 full", forward, 192, 128)
case("forward d192/128 causal", forward, 192, 128, causal=True)
case("forward d128 full, one CTA per tile", forward, 128, sq=512, heads=1, switch="_fa_disable_2cta_enabled")
case("forward d192/128 full, one CTA per tile", forward, 192, 128, switch="_fa_disable_2cta_enabled")
case("forward d128 full, CTA pair", forward, 128, sq=1024, heads=1)
case("forward d128 full, ragged", forward, 128, sq=200, sk=333)
case("forward d128 local window", forward, 128, sq=512, heads=1, window_size=(100, 0))
case("forward d128 causal softcap", forward, 128, causal=True, softcap=15.0)
case("forward d128 causal sink", forward, 128, causal=True, sink=True)
case("forward d128 float16 causal", forward, 128, causal=True, dtype=FP16)
case("forward d128 fp8 full", forward, 128, dtype=FP8)
case(
    "forward d128 causal, GQA packed",
    forward,
    128,
    sq=128,
    sk=256,
    heads=8,
    kv_heads=2,
    causal=True,
    pack_gqa=True,
)
case("forward d128 decode, GQA packed", forward, 128, sq=1, sk=1024, heads=8, kv_heads=1, pack_gqa=True)
case("forward d128 split-KV and combine", forward, 128, sq=64, sk=1024, heads=2, num_splits=4)
case("forward d128 causal, CLC scheduler", forward, 128, sq=512, causal=True, switch="_fa_clc_enabled")
case("forward d64 causal, batch 2", forward, 64, batch=2, causal=True)


def varlen(d=128, lengths=(100, 156), heads=2):
    """``flash_attn_varlen_func``: sequences end to end, by cumulative lengths."""
    cumulative = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32)
    total = int(cumulative[-1])
    q, k, v = (tensor(total, heads, d, seed=i) for i in range(3))
    out, lse = flash_attn_varlen_func(
        q, k, v, cu_seqlens_q=cumulative, cu_seqlens_k=cumulative,
        max_seqlen_q=max(lengths), max_seqlen_k=max(lengths), causal=True, return_lse=True,
    )[:2]  # fmt: skip
    found = []
    for start, end in zip(cumulative[:-1].tolist(), cumulative[1:].tolist()):
        part = slice(start, end)
        found += compare(*wide(out[part], lse[:, part], q[part], k[part], v[part]), d**-0.5, causal=True)
    return found


def paged(page, d=128, used=(200, 256), sq=64, heads=2):
    """Keys and values in pages, in an order that a table gives."""
    batch, per_sequence = len(used), -(-max(used) // page)
    pages = batch * per_sequence + 3
    q = tensor(batch, sq, heads, d)
    k, v = tensor(pages, page, heads, d, seed=1), tensor(pages, page, heads, d, seed=2)
    order = np.random.default_rng(3).permutation(pages)[: batch * per_sequence].reshape(batch, per_sequence)
    out, lse = flash_attn_varlen_func(
        q, k, v, page_table=torch.from_numpy(order.astype(np.int32)),
        seqused_k=torch.tensor(used, dtype=torch.int32), causal=True, return_lse=True,
    )[:2]  # fmt: skip
    found = []
    for b, length in enumerate(used):
        keys, values = (x[order[b]].reshape(-1, heads, d)[:length] for x in wide(k, v))
        found += compare(*wide(out[b], lse[b], q[b]), keys, values, d**-0.5, causal=True)
    return found


def mla(sq=8, sk=256, heads=128, d=64, latent=512):
    """Absorbed MLA: O = softmax(scale (q kᵀ + qv vᵀ)) v with one head of keys."""
    q, qv = tensor(1, sq, heads, d), tensor(1, sq, heads, latent, seed=1)
    k, v = tensor(1, sk, 1, d, seed=2), tensor(1, sk, 1, latent, seed=3)
    out, lse = flash_attn_func(q, k, v, qv=qv, causal=True, return_lse=True)
    q_, qv_, k_, v_, o, s = (x[0] for x in wide(q, qv, k, v, out, lse))
    keys = np.concatenate([k_, v_], 2)
    return compare(o, s.T, np.concatenate([q_, qv_], 2), keys, v_, (d + latent) ** -0.5, causal=True)


case("forward d128 varlen causal", varlen)
case("forward d128 pages of 128", paged, 128)
case("forward d128 pages of 16", paged, 16)
case("forward MLA absorbed 64/512", mla)


def backward(d, causal=False, seq=256, heads=1):
    """Gradients by autograd: forward, preprocess, backward and postprocess kernels."""
    q, k, v = (tensor(1, seq, heads, d, seed=i).requires_grad_() for i in range(3))
    grad = tensor(1, seq, heads, d, seed=3)
    flash_attn_func(q, k, v, causal=causal)[0].backward(grad)
    found = []
    for h in range(heads):
        q_, k_, v_, g = (x[0, :, h] for x in wide(q, k, v, grad))
        want = _gradients(q_, k_, v_, g, d**-0.5, causal)
        found += [Comparison(wide(x.grad)[0][0, :, h], w, 2**-6) for x, w in zip((q, k, v), want)]
    return found


def _gradients(q, k, v, grad, scale, causal):
    out, lse = attention_reference(q, k, v, scale, causal=causal)
    p = np.exp(q @ k.T * scale - lse[:, None])
    if causal:
        p = np.tril(p)
    ds = p * (grad @ v.T - (grad * out).sum(1, keepdims=True)) * scale
    return ds @ k, ds.T @ q, p.T @ grad


for d in (64, 128):
    case(f"backward d{d} full", backward, d)
case("backward d128 causal", backward, 128, causal=True)
