# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 First light
#
# From `np.random` to a checked answer of the Blackwell attention kernel, on a machine without a GPU.
#
# **You need**: numpy, and an idea of what attention computes. **You get**: a feeling for the whole chain
# (config, PTX, machine code, emulator) before the later notebooks take it apart.
#
# Sources: the PTX ISA (tcgen05, mbarrier, cp.async.bulk.tensor); the FlashAttention papers.

# %%
import ml_dtypes
import numpy as np

import fa4_numba as fa4

print("fa4_numba", fa4.__version__, "| numpy", np.__version__)

# %% [markdown]
# ## 1. Three small arrays
#
# Layout is `(batch, sequence, heads, dim)`. Four query heads share two key/value heads (GQA).

# %%
rng = np.random.default_rng(0)
B, S, HQ, HKV, D = 1, 200, 4, 2, 64
q = rng.standard_normal((B, S, HQ, D), np.float32).astype(ml_dtypes.bfloat16)  # (1, 200, 4, 64)
k = rng.standard_normal((B, S, HKV, D), np.float32).astype(ml_dtypes.bfloat16)  # (1, 200, 2, 64)
v = rng.standard_normal((B, S, HKV, D), np.float32).astype(ml_dtypes.bfloat16)  # (1, 200, 2, 64)

# %% [markdown]
# ## 2. A config: every size of the kernel, derived
#
# Predict: tensor memory has 512 columns. Two score tiles of 128 columns and two outputs of 64 columns: how many are used?

# %%
problem = fa4.Problem(B, HQ, HKV, S, S, D, D, "bfloat16", causal=True)
choice = fa4.choose_config(problem)
cfg = choice.config
print("\n".join(choice.why))
print("TMEM columns used:", cfg.tmem_used, "| SMEM bytes used:", cfg.smem_used)

# %%
from fa4_numba.viz import draw_smem_map, draw_timeline, draw_tmem_map

draw_smem_map(cfg)

# %%
draw_tmem_map(cfg)

# %% [markdown]
# ## 3. The kernel: Numba-CUDA to PTX to machine code
#
# `spill` counts bytes that did not fit registers. `USETMAXREG` is the machine's word for handing registers from one warp
# role to another.

# %%
kernel = fa4.compile_kernel(cfg, causal=True)
print(kernel.resources)
print("lines of PTX:", len(kernel.ptx.splitlines()), "| USETMAXREG in SASS:", kernel.sass.count("USETMAXREG"))

# %% [markdown]
# ## 4. Run it, instruction by instruction, on this CPU

# %%
run = fa4.emulate(kernel, q, k, v, trace=True)
print(f"{run.stats.warp_instructions:,} warp-instructions in {run.stats.ctas} CTAs")
draw_timeline(run.timeline)

# %% [markdown]
# ## 5. Is it right? Against float64, by definition

# %%
from fa4_numba.reference import exact

want, want_lse = exact(q, k, v, causal=True)
print("largest error of O:  ", np.abs(run.o.astype(np.float64) - want).max())
print("largest error of LSE:", np.abs(run.lse - want_lse).max())

# %% [markdown]
# ## 6. The same answer, whatever the timing
#
# TMA copies and matrix products are asynchronous. Let them land as late as the program allows, or at random: a kernel with
# a missing wait would now fail. This one must give the same bits.

# %%
for schedule in ("late", "random:7"):
    again = fa4.emulate(kernel, q, k, v, schedule=schedule)
    print(schedule, "same bits:", bool((again.o.view(np.uint16) == run.o.view(np.uint16)).all()))
