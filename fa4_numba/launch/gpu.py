"""Runs a compiled attention kernel on a Blackwell GPU, on numpy arrays."""

import numpy as np

from ..toolchain import CompiledKernel
from .driver import DeviceArray, launch, load_function
from .host_arrays import padded_row
from .plan import Operand, plan_forward


def _upload(array: np.ndarray) -> tuple[Operand, DeviceArray, np.ndarray]:
    """Return the operand, its device memory, and the contiguous host array whose rows are padded to 16 bytes."""
    padded = padded_row(array.shape[-1], array.itemsize)
    rows = np.zeros((*array.shape[:-1], padded), array.dtype)
    rows[..., : array.shape[-1]] = array
    device = DeviceArray(rows)
    return Operand(device.address, array.shape, rows.strides, str(array.dtype)), device, rows


def run_on_gpu(kernel: CompiledKernel, q, k, v, *, scale: float):
    """Return (O, LSE) of ``(B, S, H, D)`` numpy arrays, computed by the GPU; parameters as the emulator's ``run``.

    Raises
    ------
    BackendError
        If the driver refuses a call; names its error code.
    """
    operands, devices = [], []
    for array in (q, k, v):
        operand, device, _ = _upload(array)
        operands.append(operand)
        devices.append(device)
    o = np.zeros((q.shape[0], q.shape[1], q.shape[2], v.shape[3]), q.dtype)
    o_operand, o_device, o_rows = _upload(o)
    lse = np.full((q.shape[0], q.shape[2], q.shape[1]), np.nan, np.float32)
    lse_device = DeviceArray(lse)
    plan = plan_forward(kernel.config, *operands, o_operand, lse_device.address, scale)
    launch(load_function(kernel.cubin, kernel.entry, plan.dynamic_smem_bytes), plan)
    o_device.download(o_rows)
    lse_device.download(lse)
    return np.ascontiguousarray(o_rows[..., : o.shape[3]]), lse
