"""Issue slots of the softmax loop, per 128-key tile and warp, unmasked, from SASS; beside public kernels' counts.

The peers' figures were counted from their SASS in the same way (shortest way around the loop).
Run: ``python bench/softmax_slots.py``.
"""

from fa4_numba.api import Problem, choose_config
from fa4_numba.toolchain import compile_kernel
from fa4_numba.toolchain.sass import shortest_iteration

PEERS = [  # kernel, slots, MUFU.EX2, spills
    ("flash-attn-4, one CTA, d128", 514, 113, "0"),
    ("flash-attn-4, CTA pair, d128", 542, 105, "0"),
    ("CuTe DSL fmha, no emulated exp", 438, 129, "yes"),
    ("trtllm-gen", 471, 129, "?"),
    ("Gluon (Triton 3.9)", 455, 129, "yes"),
]


def main():
    print(f"{'kernel':<36} {'slots':>6} {'EX2':>5}  spills")
    for dim in (128, 64):
        for causal in (False, True):
            problem = Problem(1, 1, 1, 256, 256, dim, dim, "bfloat16", causal)
            kernel = compile_kernel(choose_config(problem).config, causal=causal)
            cost = shortest_iteration(kernel.sass, "MUFU.EX2")
            name = f"fa4_numba d{dim} {'causal' if causal else 'full'}"
            print(
                f"{name:<36} {cost.slots:>6} {cost.opcodes['MUFU.EX2']:>5}  {kernel.resources.spill_store_bytes}"
            )
    for name, slots, exponentials, spills in PEERS:
        print(f"{name:<36} {slots:>6} {exponentials:>5}  {spills}")


if __name__ == "__main__":
    main()
