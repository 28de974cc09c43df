"""Arrays that lie on a GPU (torch, cupy, anything with ``__cuda_array_interface__``): no copies, the caller's stream."""

from dataclasses import dataclass
from importlib import import_module

import ml_dtypes
import numpy as np

from ..errors import ArrayError
from ..launch.plan import Operand
from .problem import Problem, choose_config


@dataclass(frozen=True)
class DeviceView:
    """Pointer, shape, strides (bytes) and dtype of a device array; quacks like an array for the argument checks."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def is_on_device(value) -> bool:
    """Return whether ``value`` is an array in GPU memory."""
    if isinstance(value, np.ndarray):
        return False
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in (2, 13)  # kDLCUDA, kDLCUDAManaged
    return hasattr(value, "__cuda_array_interface__")


def view_of(name: str, value) -> DeviceView:
    """Return the :class:`DeviceView` of a device array.

    Raises
    ------
    ArrayError
        If ``value`` is not on the GPU while another argument is, or has a dtype that attention does not know.
    """
    if not is_on_device(value):
        raise ArrayError(f"{name} is not on the GPU but other arguments are: move all of them to one place")
    if hasattr(value, "data_ptr") and hasattr(value, "stride"):  # torch: its interface has no bfloat16
        kind = str(value.dtype).rpartition(".")[2]
        if kind not in ("bfloat16", "float16", "float32", "float64"):
            raise ArrayError(f"{name} has dtype {value.dtype}: expected bfloat16 or float16")
        dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        strides = tuple(step * dtype.itemsize for step in value.stride())
        return DeviceView(value.data_ptr(), tuple(value.shape), strides, dtype)
    interface = value.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = tuple(
            int(dtype.itemsize * np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))
        )
    return DeviceView(interface["data"][0], shape, tuple(strides), dtype)


def operand(name: str, view: DeviceView, layout: str) -> Operand:
    """Return the launch operand ``(B, S, H, D)`` of a view; refuses strides that TMA cannot take."""
    order = (0, 1, 2, 3) if layout == "bshd" else (0, 2, 1, 3)
    shape, strides = (tuple(x[i] for i in order) for x in (view.shape, view.strides))
    fits = all(n == 1 or (s > 0 and s % 16 == 0) for n, s in zip(shape[:3], strides[:3]))
    if not fits or (shape[3] > 1 and strides[3] != view.dtype.itemsize) or view.address % 16:
        raise ArrayError(
            f"{name} has strides {view.strides} bytes at address {view.address:#x}: on the GPU the last dimension must be "
            "contiguous, and the address and other strides multiples of 16 bytes; use a contiguous copy with a head "
            "dimension that is a multiple of 8"
        )
    return Operand(view.address, shape, strides, view.dtype.name)


def _module(value):
    return import_module(type(value).__module__.partition(".")[0])


def empty_like_kind(value, shape: tuple, dtype) -> object:
    """Return an uninitialised array of ``value``'s library, on its device. ``dtype``: "float32", or None for value's."""
    module = _module(value)
    if not hasattr(module, "empty"):
        raise ArrayError(
            f"cannot make an output of the kind {type(value).__name__}: pass torch or cupy arrays"
        )
    options = {"device": value.device} if hasattr(value, "data_ptr") else {}
    return module.empty(shape, dtype=getattr(module, dtype) if dtype else value.dtype, **options)


def current_stream(value) -> int:
    """Return the handle of the stream that the caller's library works on."""
    cuda = getattr(_module(value), "cuda", None)
    if hasattr(cuda, "current_stream"):
        return int(cuda.current_stream().cuda_stream)
    if hasattr(cuda, "get_current_stream"):
        return int(cuda.get_current_stream().ptr)
    return int(value.__cuda_array_interface__.get("stream") or 0)


def run(values, views, problem: Problem, layout: str):
    """Launch the kernel on device arrays; return (o, lse), arrays of q's kind, ready on the caller's stream.

    Non-finite V under a causal mask is not contained here (that needs a pass over V on the host).
    """
    from ..launch.driver import launch, load_function
    from ..launch.plan import plan_forward
    from ..toolchain import compile_kernel

    if problem.effective_scale <= 0:
        raise ArrayError(f"scale = {problem.scale}: must be > 0 for device arrays; negate q instead")
    o_shape = (*views[0].shape[:3], problem.v_dim)
    o = empty_like_kind(values[0], o_shape, None)
    lse = empty_like_kind(values[0], (problem.batch, problem.num_q_heads, problem.seq_q), "float32")
    operands = [operand(name, view, layout) for name, view in zip("qkv", views)]
    operands.append(operand("o", view_of("o", o), layout))
    kernel = compile_kernel(choose_config(problem).config, causal=problem.causal)
    plan = plan_forward(kernel.config, *operands, view_of("lse", lse).address, problem.effective_scale)
    function = load_function(kernel.cubin, kernel.entry, plan.dynamic_smem_bytes)
    launch(function, plan, current_stream(values[0]))
    return o, lse
