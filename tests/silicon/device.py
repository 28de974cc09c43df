"""Runs cases on a GPU through the CUDA driver."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from fa4_numba.launch import driver
from fa4_numba.toolchain.assemble import assemble_module

from .case import HEADER, UNWRITTEN, Case

ARCH = "sm_90a"


def compile_cases(cases: list[Case]) -> bytes:
    """Return one cubin with the kernels of all cases."""
    unique = {case.entry: case for case in cases}
    return assemble_module(HEADER + "".join(case.entry_text() for case in unique.values()), ARCH)


class Device:
    """A GPU with the kernels of some cases loaded."""

    def __init__(self, cubin: bytes):
        self.driver = driver._driver()
        driver.use_primary_context()
        self.module = driver.check(self.driver.cuModuleLoadData(cubin))

    def run(self, case: Case) -> np.ndarray:
        """Return the output buffer after one launch."""
        d, check = self.driver, driver.check
        source = driver.DeviceArray(case.data)
        out = np.full(case.out_bytes, UNWRITTEN, np.uint8)
        target = driver.DeviceArray(out)
        function = check(d.cuModuleGetFunction(self.module, case.entry.encode()))
        limit = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(d.cuFuncSetAttribute(function, limit, case.shared_bytes))
        maps = case.placed_maps({"in": source.address, "out": target.address})
        values = [ctypes.c_uint64(source.address), ctypes.c_uint64(target.address)]
        values += [(ctypes.c_uint8 * 128).from_buffer_copy(driver.encode_tensor_map(spec)) for spec in maps]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        shape = (case.grid, 1, 1, case.threads, 1, 1)
        check(d.cuLaunchKernel(function, *shape, case.shared_bytes, 0, ctypes.addressof(pointers), 0))
        check(d.cuCtxSynchronize())
        target.download(out)
        return out


@cache
def description() -> dict:
    """Return the device's name and compute capability, and the driver's version."""
    d, check = driver._driver(), driver.check
    driver.use_primary_context()
    device = check(d.cuDeviceGet(0))
    attribute = d.CUdevice_attribute
    major = check(d.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = check(d.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    name = check(d.cuDeviceGetName(64, device)).split(b"\0")[0].decode()
    kernel_module = Path("/proc/driver/nvidia/version")
    text = kernel_module.read_text().splitlines()[0] if kernel_module.exists() else ""
    cuda = check(d.cuDriverGetVersion())
    version = next((word for word in text.split() if word[:1].isdigit() and word.count(".") >= 1), "")
    return {
        "device": name,
        "compute": f"{major}.{minor}",
        "driver": version,
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
    }
