"""CuTe DSL and what is built on it (flash-attn-4): its compiled host code is linked against a stand-in CUDA runtime.

CuTe DSL compiles a host function for each kernel; it builds tensor maps, sizes the grid and calls the CUDA runtime.
Here that object code is loaded by llvmlite, which lets us say what every CUDA entry point is: a Python callback.
Tensors are passed with device addresses that the emulator gave them, so host code may stay what it is.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from ...errors import LaunchError
from .cuda_runtime import CudaRuntime
from .device import L2_BYTES, SM_COUNT
from .dlpack import as_device_tensor
from .session import Session

ENVIRONMENT = {
    "CUTE_DSL_ARCH": "sm_100a",
    "CUTE_DSL_KEEP": "ptx",
    "FLASH_ATTENTION_ARCH": "sm_100",
    "FLASH_ATTENTION_NUM_SMS": str(SM_COUNT),
}
_runtime = CudaRuntime()


@contextmanager
def installed(session: Session) -> Iterator[None]:
    """Link CuTe DSL's host code to the emulator. Kernels compiled before the first session keep their real driver."""
    import cutlass.cute.runtime as runtime
    import cutlass.utils.hardware_info as hardware
    import torch
    from cutlass.cutlass_dsl import tvm_ffi_provider as provider

    if missing := [name for name, value in ENVIRONMENT.items() if os.environ.get(name) != value]:
        raise LaunchError(
            "CuTe DSL reads its environment when it is imported: call prepare_environment() of "
            f"fa4_numba.emulator.driver.cute before importing cutlass (differs: {', '.join(missing)})"
        )
    info = hardware.HardwareInfo
    compiled = (provider.TVMFFIJitCompiledFunction, provider.TVMFFIJitCompiledFunctionWithKwargs)
    changes = [
        (info, "__init__", lambda self, device_id=0: None),
        (info, "get_max_active_clusters", lambda self, cluster_size, stream=None: SM_COUNT // cluster_size),
        (info, "get_device_multiprocessor_count", lambda self: SM_COUNT),
        (info, "get_l2_cache_size_in_bytes", lambda self: L2_BYTES),
        (torch.Tensor, "is_cuda", property(lambda self: True)),
        (provider.TVMFFIJitCompiledFunctionBase, "_create_tvm_ffi_function", _link),
        *((kind, "__call__", _calling(kind.__call__, session)) for kind in compiled),
        (runtime._Tensor, "__init__", _wrapping(runtime._Tensor.__init__, session)),
    ]
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def prepare_environment() -> None:
    """Tell CuTe DSL and flash-attn-4 to compile for a B200 and to keep the PTX. Call it before importing them."""
    os.environ.update(ENVIRONMENT)


def _on_device(value, session: Session):
    """Return a torch tensor as one of the emulator's device, tuples of them likewise; anything else as it is."""
    if hasattr(value, "untyped_storage"):
        return as_device_tensor(value, session.device_memory.address(value))
    if isinstance(value, tuple):
        items = [_on_device(item, session) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _calling(call, session: Session):
    """Return a ``__call__`` that passes torch tensors with their device addresses, and raises what a launch raised."""

    def wrapped(self, *args, **named):
        named = {name: _on_device(arg, session) for name, arg in named.items()}
        with _runtime.running(self.artifacts.PTX.rstrip("\0"), session):
            return call(self, *(_on_device(arg, session) for arg in args), **named)

    return wrapped


def _wrapping(init, session: Session):
    """Return an ``__init__`` for CuTe's own tensors, which are made while it compiles."""
    return lambda self, tensor, *args, **options: init(self, _on_device(tensor, session), *args, **options)


def _link(self):
    """Stand in for ``_create_tvm_ffi_function``: load the host object code with our CUDA entry points."""
    import tvm_ffi
    from cutlass._mlir._mlir_libs._cutlass_ir import _aot_support

    if self.engine is None:
        return None
    code = _aot_support.export_module_to_bytes(self.ir_module, format="o", opt_level=3, enable_pic=True)
    engine, address = _runtime.load(code, "__tvm_ffi_" + self.function_name)
    self.engine = engine
    return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine)
