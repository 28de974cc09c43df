"""What ptxas makes of the kernel: no spills, register budgets kept, no calls, and a short softmax loop."""

import re

import pytest

from fa4_numba.api import Problem, choose_config
from fa4_numba.toolchain import compile_kernel
from fa4_numba.toolchain.sass import shortest_iteration

VARIANTS = [
    (dtype, dim, causal, group)
    for dtype in ("bfloat16", "float16")
    for dim in (64, 128)
    for causal in (False, True)
    for group in (1, 4)
]


@pytest.mark.parametrize("dtype, dim, causal, group", VARIANTS)
def test_no_spills_no_calls_and_register_budgets(dtype, dim, causal, group):
    problem = Problem(1, group, 1, 256, 256, dim, dim, dtype, causal)
    kernel = compile_kernel(choose_config(problem).config, causal=causal)
    resources = kernel.resources
    assert (resources.spill_store_bytes, resources.spill_load_bytes, resources.stack_bytes) == (0, 0, 0), (
        resources
    )
    assert "USETMAXREG" in kernel.sass
    # ptxas adds two cold traps to every tcgen05.dealloc; no other call may be there
    calls = [line for line in kernel.sass.splitlines() if re.search(r"\bCALL\b", line)]
    assert all("tcgen05_guardrail_trap" in line for line in calls), calls
    assert not re.search(r"\b(LDL|STL)\b", kernel.sass)


def test_softmax_loop_is_as_short_as_the_peers():
    """A plain tile at d128: at most 514 issue slots with at least 16 of 128 exponentials on the FMA units."""
    problem = Problem(1, 1, 1, 256, 256, 128, 128, "bfloat16")
    cost = shortest_iteration(compile_kernel(choose_config(problem).config).sass, "MUFU.EX2")
    assert cost.opcodes["MUFU.EX2"] <= 112
    assert cost.slots <= 514, cost


def test_markers_cost_no_machine_code():
    from fa4_numba.toolchain import assemble, disassemble

    kernel = compile_kernel(choose_config(Problem(1, 1, 1, 256, 256, 128, 128, "bfloat16")).config)
    without = re.sub(r"^\s*// fa4:.*$", "", kernel.ptx, flags=re.M)
    assert without != kernel.ptx
    code = lambda sass: re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", sass)
    assert code(disassemble(assemble(without, "sm_100a")[0])) == code(kernel.sass)
