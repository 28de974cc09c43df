"""Runs a compiled attention kernel on numpy arrays in the emulator."""

from dataclasses import dataclass

import numpy as np

from ..emulator import GlobalMemory, Machine
from ..toolchain import CompiledKernel
from .host_arrays import covering_bytes, tma_ready, zeros_tma_ready
from .plan import Operand, plan_forward


@dataclass(frozen=True)
class EmulationRun:
    """Result of one emulated launch.

    Attributes
    ----------
    o : ndarray, ``(batch, queries, q heads, v dim)``
    lse : ndarray of float32, ``(batch, q heads, queries)``
    stats : RunStats
        Warp- and lane-instructions, seconds, CTAs.
    machine : Machine
        The machine after the run: memories, timeline, hazards.
    """

    o: np.ndarray
    lse: np.ndarray
    stats: object
    machine: Machine

    @property
    def timeline(self):
        """Events of every warp and unit, if the run was traced."""
        return self.machine.timeline


def bind_operand(memory: GlobalMemory, array: np.ndarray, name: str, *, writable: bool = False) -> Operand:
    """Bind a ``tma_ready`` array to the emulator's global memory."""
    address = memory.bind(covering_bytes(array), name=name, writable=writable)
    return Operand(address, array.shape, array.strides, str(array.dtype))


def barrier_names(cfg) -> dict[int, str]:
    """Return the name of every barrier by its byte offset in dynamic shared memory."""
    return {region.start: region.name for region in cfg.barrier_map()}


def prepare(kernel: CompiledKernel, q, k, v, *, scale: float, schedule: str = "eager", **machine_options):
    """Return (machine, o, lse): the launch of ``kernel`` on ``(batch, sequence, heads, dim)`` arrays, not yet run.

    Parameters
    ----------
    kernel : CompiledKernel
        Compiled for a config that fits the arrays.
    q, k, v : ndarray
        Non-empty, of the kernel's dtype. Never written.
    scale : float
        Softmax scale, > 0.
    schedule : str
        When asynchronous work lands: "eager", "late" or "random:SEED".
    **machine_options
        Passed to :class:`fa4_numba.emulator.Machine` (``trace``, ``progress``, ``max_steps``).
    """
    cfg = kernel.config
    q, k, v = (tma_ready(array) for array in (q, k, v))
    batch, seq_q, heads, _ = q.shape
    o = zeros_tma_ready((batch, seq_q, heads, v.shape[3]), q.dtype)
    lse = np.full((batch, heads, seq_q), np.nan, np.float32)
    memory = GlobalMemory()
    operands = [bind_operand(memory, array, name) for array, name in ((q, "q"), (k, "k"), (v, "v"))]
    operands.append(bind_operand(memory, o, "o", writable=True))
    lse_address = memory.bind(lse, name="lse", writable=True)
    plan = plan_forward(cfg, *operands, lse_address, scale)
    machine = Machine(
        kernel.ptx,
        grid=plan.grid,
        block=plan.block,
        args=plan.args,
        memory=memory,
        dynamic_smem_bytes=plan.dynamic_smem_bytes,
        schedule=schedule,
        shared_names=barrier_names(cfg),
        **machine_options,
    )
    return machine, o, lse


def run(
    kernel: CompiledKernel, q, k, v, *, scale: float, schedule: str = "eager", **machine_options
) -> EmulationRun:
    """Run ``kernel`` in the emulator; parameters as :func:`prepare`."""
    machine, o, lse = prepare(kernel, q, k, v, scale=scale, schedule=schedule, **machine_options)
    stats = machine.run()
    return EmulationRun(o, lse, stats, machine)
