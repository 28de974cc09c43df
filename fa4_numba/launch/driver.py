"""The few CUDA driver calls of a launch: tensor maps, modules, memory, kernels with by-value parameters."""

import ctypes
from functools import cache

import numpy as np

from ..errors import BackendError
from ..layout import Swizzle, TensorMapSpec

_DATA_TYPE = {
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "uint64": "UINT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
}
_SWIZZLE = {Swizzle.NONE: "NONE", Swizzle.B32: "32B", Swizzle.B64: "64B", Swizzle.B128: "128B"}


@cache
def _driver():
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise BackendError(
            "launching on a GPU needs the package cuda-python: pip install cuda-python"
        ) from error
    return driver


def check(result):
    """Return a driver call's values; an error code becomes a ``BackendError`` with its name."""
    status, *values = result
    if int(status) != 0:
        raise BackendError(f"CUDA driver: {status.name}")
    return values[0] if len(values) == 1 else values or None


def encode_tensor_map(spec: TensorMapSpec) -> bytes:
    """Return the hardware's 128 bytes for ``spec`` (cuTensorMapEncodeTiled)."""
    d = _driver()
    encoded = check(
        d.cuTensorMapEncodeTiled(
            getattr(d.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_DATA_TYPE[spec.dtype]}"),
            spec.rank,
            spec.address,
            [d.cuuint64_t(n) for n in spec.shape],
            [
                d.cuuint64_t(n) for n in spec.strides_bytes or (16,)
            ],  # the driver takes no null pointer, even for rank 1
            [d.cuuint32_t(n) for n in spec.box],
            [d.cuuint32_t(1)] * spec.rank,
            d.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(d.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLE[spec.swizzle]}"),
            d.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            d.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return np.array([int(word) for word in encoded.opaque], np.uint64).tobytes()


@cache
def use_primary_context(device: int = 0):
    """Make the device's primary context (the one that torch and others use) current."""
    d = _driver()
    check(d.cuInit(0))
    context = check(d.cuDevicePrimaryCtxRetain(check(d.cuDeviceGet(device))))
    check(d.cuCtxSetCurrent(context))
    return context


@cache
def load_function(cubin: bytes, entry: str, dynamic_smem_bytes: int):
    """Load a cubin and return its kernel, allowed to use ``dynamic_smem_bytes`` of shared memory."""
    d = _driver()
    use_primary_context()
    function = check(d.cuModuleGetFunction(check(d.cuModuleLoadData(cubin)), entry.encode()))
    limit = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(d.cuFuncSetAttribute(function, limit, dynamic_smem_bytes))
    return function


def _parameter(value) -> ctypes.Structure:
    """Return a ctypes object that holds one kernel argument by value."""
    if isinstance(value, TensorMapSpec):
        # the driver copies 128 bytes from here; it does not need the 64-byte alignment of the device side
        return (ctypes.c_uint8 * 128).from_buffer_copy(encode_tensor_map(value))
    if isinstance(value, float):
        return ctypes.c_float(value)
    return ctypes.c_uint64(value) if value >= 1 << 31 else ctypes.c_int64(value)


def launch(function, plan, stream: int = 0) -> None:
    """Launch ``function`` with a :class:`LaunchPlan` on a CUDA stream (its handle as an int)."""
    d = _driver()
    values = [_parameter(value) for value in plan.args]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    check(
        d.cuLaunchKernel(
            function, *plan.grid, *plan.block, plan.dynamic_smem_bytes, stream, ctypes.addressof(pointers), 0
        )
    )


class DeviceArray:
    """A device copy of a host array, freed with the object."""

    def __init__(self, array: np.ndarray):
        d = _driver()
        use_primary_context()
        self.nbytes = array.nbytes
        self.address = int(check(d.cuMemAlloc(max(1, self.nbytes))))
        check(d.cuMemcpyHtoD(self.address, array.ctypes.data, self.nbytes))

    def download(self, array: np.ndarray) -> None:
        """Copy the device's bytes into a contiguous host array of the same size (waits for the device)."""
        check(_driver().cuMemcpyDtoH(array.ctypes.data, self.address, self.nbytes))

    def __del__(self):
        if hasattr(self, "address"):
            _driver().cuMemFree(self.address)
