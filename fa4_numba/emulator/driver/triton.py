"""Triton and Gluon: a driver object for ``triton.runtime.driver``, with a compiler that stops at PTX."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ...hw import SM_100A
from ...layout import Swizzle, TensorMapSpec
from .device import SM_COUNT
from .session import Session

DEVICE = "fa4_numba emulator"  # Triton keeps compiled kernels by device: no real one has this key
SCALARS = {f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)}
SCALARS |= {"i1": np.dtype(np.int8), "u1": np.dtype(np.uint8), "fp16": np.dtype(np.float16)}
SCALARS |= {"bf16": np.dtype(ml_dtypes.bfloat16), "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
SCALARS |= {"f32": np.dtype(np.float32)}
# Triton numbers element types as the tensormap.replace instruction does
MAP_DTYPES = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32")
MAP_DTYPES += ("float32", "float64", "bfloat16", "float32", "float32", "float32")
SWIZZLES = (Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128)


@contextmanager
def installed(session: Session) -> Iterator[None]:
    """Make the emulator Triton's active driver."""
    from triton import knobs
    from triton.runtime import driver

    previous, hook = driver._active, knobs.runtime.add_stages_inspection_hook
    driver.set_active(EmulatedTritonDriver(session))
    knobs.runtime.add_stages_inspection_hook = _stop_at_ptx
    try:
        yield
    finally:
        driver._active, knobs.runtime.add_stages_inspection_hook = previous, hook


def _stop_at_ptx(*call):
    """Triton's hook for changed pipelines: without arguments it says how its results are told apart in the cache."""
    if not call:
        return DEVICE, DEVICE
    stages = call[1]
    stages["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


@dataclass(frozen=True)
class _Function:
    name: str
    ptx: str


class EmulatedTritonDriver:
    """What Triton's runtime asks of a driver."""

    def __init__(self, session: Session):
        self.session = session
        self.utils = self
        self.launcher_cls = lambda source, metadata: _Launcher(source, metadata)

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 100, 32)

    def get_current_device(self) -> str:
        return DEVICE

    def get_current_stream(self, device) -> int:
        return 0

    def get_device_properties(self, device) -> dict:
        return {
            "max_shared_mem": SM_100A.smem_bytes_per_block,
            "multiprocessor_count": SM_COUNT,
            "warpSize": 32,
        }

    def load_binary(self, name, ptx, shared, device) -> tuple:
        """Return (module, function, registers, spills, most threads); the module is None: nothing to unload."""
        return None, _Function(name, ptx.decode()), 0, 0, 1024


class _Launcher:
    """Turns a kernel's Python arguments into parameter bytes. Triton keeps it with the compiled kernel."""

    def __init__(self, source, metadata):
        self.types, self.metadata = tuple(source.signature.values()), metadata
        self.maps = getattr(metadata, "tensordesc_meta", None) or ()

    def __call__(self, grid_x, grid_y, grid_z, stream, function, packed, described, enter, leave, *args):
        from triton.runtime import driver

        session, metadata = driver.active.session, self.metadata
        ctas = metadata.num_ctas
        for hook in (enter,) if enter is not None else ():
            hook(described)
        maps = iter(self.maps)
        data = [b for kind, arg in zip(self.types, args) for b in _parameter(kind, arg, maps, session)]
        for size in (metadata.global_scratch_size, metadata.profile_scratch_size):
            data.append(_scalar("i64", session.device_memory.scratch(size * grid_x * grid_y * grid_z * ctas)))
        session.launch(
            function.name,
            function.ptx,
            (grid_x * ctas, grid_y, grid_z),
            (32 * metadata.num_warps, 1, 1),
            (ctas, 1, 1),
            metadata.shared,
            data,
        )
        for hook in (leave,) if leave is not None else ():
            hook(described)


def _parameter(kind, arg, maps, session: Session) -> list[bytes]:
    """Return the parameters that one argument becomes: none for a constant, several for a descriptor."""
    if isinstance(kind, tuple):
        return [b for k, a in zip(kind, arg) for b in _parameter(k, a, maps, session)]
    if kind == "constexpr":
        return []
    if kind.startswith("tensordesc"):
        return _descriptor(arg, next(maps, None), session)
    if kind.startswith("*"):
        return [_scalar("i64", session.device_memory.address(arg))]
    return [_scalar(kind, arg)]


def _scalar(kind: str, value) -> bytes:
    dtype = SCALARS[kind]
    if dtype.kind in "iu":
        return (int(value) & ((1 << 8 * dtype.itemsize) - 1)).to_bytes(dtype.itemsize, "little")
    return np.array(value, dtype).tobytes()


def _descriptor(arg, meta, session: Session) -> list[bytes]:
    """A host tensor descriptor: the tensor map, or its pieces where the kernel makes the map; then shape and strides."""
    shape, strides = list(arg.shape), list(arg.strides)
    address = session.device_memory.address(arg.base)
    if meta is None:
        flags = [arg.padding == "nan", getattr(arg, "round_f32_to_tf32", False)]
        first = [_scalar("i64", address), *(_scalar("i64", n) for n in shape + strides)]
        first += [_scalar("i1", flag) for flag in flags]
    else:
        size = meta["elem_size"]
        first = [
            TensorMapSpec(
                MAP_DTYPES[meta["elem_type"]],
                address,
                tuple(reversed(shape)),
                tuple(size * s for s in reversed(strides[:-1])),
                tuple(reversed(meta["block_size"])),
                SWIZZLES[meta["swizzle"]],
            ).pack()
        ]
    return first + [_scalar("i32", n) for n in shape] + [_scalar("i64", n) for n in strides]
