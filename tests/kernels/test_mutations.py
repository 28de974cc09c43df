"""Bugs planted in the kernel's PTX are caught: by a deadlock, or by a wrong answer under some schedule."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fa4_numba.api import Problem, choose_config
from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.errors import Deadlock, EmulatorError, Hazard
from fa4_numba.launch.emulate import barrier_names, bind_operand, run
from fa4_numba.launch.host_arrays import zeros_tma_ready
from fa4_numba.launch.plan import plan_forward
from fa4_numba.reference import exact
from fa4_numba.toolchain import compile_kernel

SCHEDULES = ["eager", "late", *(f"random:{seed}" for seed in range(8))]


@pytest.fixture(scope="module")
def kernel():
    return compile_kernel(choose_config(Problem(1, 1, 1, 256, 768, 64, 64, "bfloat16")).config)


def run_ptx(ptx, kernel, q, k, v, schedule):
    memory = GlobalMemory()
    o = zeros_tma_ready(q.shape, q.dtype)
    lse = np.zeros((1, 1, q.shape[1]), np.float32)
    operands = [
        bind_operand(memory, a, n, writable=n == "o") for a, n in ((q, "q"), (k, "k"), (v, "v"), (o, "o"))
    ]
    plan = plan_forward(kernel.config, *operands, memory.bind(lse, "lse", writable=True), 0.125)
    Machine(
        ptx,
        plan.grid,
        plan.block,
        plan.args,
        memory,
        plan.dynamic_smem_bytes,
        schedule=schedule,
        shared_names=barrier_names(kernel.config),
        max_steps=3 * 10**6,
    ).run()
    return o


def verdict(ptx, kernel, arrays):
    """Return what catches the program, or None if every schedule gives the right answer."""
    want, _ = exact(*arrays, scale=0.125)
    for schedule in SCHEDULES:
        try:
            o = run_ptx(ptx, kernel, *arrays, schedule)
        except EmulatorError as error:
            return error
        if not np.abs(o.astype(np.float64) - want).max() < 0.02:
            return f"wrong answer ({schedule})"
    return None


def role(ptx: str, name: str) -> tuple[int, int]:
    """Return the span of a role's code."""
    start = ptx.index(f"// fa4: role={name}")
    following = ptx.find("// fa4: role=", start + 10)
    return start, following if following > 0 else len(ptx)


def drop(ptx: str, pattern: str, span=None) -> str:
    """Blank out the first match of ``pattern`` in a span."""
    start, end = span or (0, len(ptx))
    match = re.compile(pattern, re.S).search(ptx, start, end)
    assert match, pattern
    return ptx[: match.start()] + ptx[match.end() :]


WAIT = r"\{\s*\.reg \.pred done;\s*wait_\w+:\s*mbarrier\.try_wait[^}]*\}"


@pytest.fixture(scope="module")
def arrays():
    import ml_dtypes

    rng = np.random.default_rng(5)
    return tuple(
        rng.standard_normal((1, s, 1, 64), np.float32).astype(ml_dtypes.bfloat16) for s in (256, 768, 768)
    )


def test_the_kernel_itself_passes(kernel, arrays):
    assert verdict(kernel.ptx, kernel, arrays) is None


def test_one_arrival_too_few_deadlocks_with_names(kernel, arrays):
    """p_ready expects 257 arrivals where 256 come."""
    ptx, count = re.subn(r"(mbarrier\.init\.shared::cta\.b64 \[%r\d+\], )(%r\d+|256);", r"\1\2;", kernel.ptx)
    assert count
    name = re.search(r"mov\.b32\s+(%r\d+), 256;", ptx)
    assert name, "the count 256 of p_ready"
    ptx = ptx.replace(name.group(), name.group().replace("256", "257"), 1)
    caught = verdict(ptx, kernel, arrays)
    assert isinstance(caught, Deadlock)
    message = str(caught)
    assert "p_ready[0]" in message and "(mma)" in message and "256 of 257 arrivals" in message, message


def test_a_dropped_wait_for_kv_is_caught(kernel, arrays):
    """The MMA role's first wait is that for K and Q."""
    caught = verdict(drop(kernel.ptx, WAIT, role(kernel.ptx, "mma")), kernel, arrays)
    assert caught is not None and "wrong answer" in str(caught)


def test_a_dropped_wait_for_stores_to_tensor_memory_is_caught(kernel, arrays):
    """No schedule needs to be unlucky: the checks know that nothing orders the store before the multiply."""
    span = (kernel.ptx.index("// fa4: stage=softmax"), len(kernel.ptx))
    ptx = drop(kernel.ptx, r"tcgen05\.wait::st\.sync\.aligned;", span)
    result = run(replace(kernel, ptx=ptx), *arrays, scale=0.1, check=True)
    with pytest.raises(Hazard, match="tcgen05.wait::st"):
        result.machine.checker.verdict()
