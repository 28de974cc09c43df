"""Makes an emulator machine of a case: the same launch, with zero-filled or small random inputs."""

import numpy as np

from fa4_numba.emulator import Machine
from fa4_numba.emulator.machine.memory import GlobalMemory
from fa4_numba.layout import Swizzle, TensorMapSpec

from .case import Case

SWIZZLES = {0: Swizzle.NONE, 128: Swizzle.B128}


def machine_of(
    case: Case, text: str, n: int | None = None, **options
) -> tuple[Machine, dict[str, np.ndarray]]:
    """Return (machine, arrays by buffer name); ``n`` is the iteration count of a probe."""
    memory, arrays, addresses = GlobalMemory(), {}, {}
    for buffer in case.buffers:
        arrays[buffer.name] = _filled(buffer)
        addresses[buffer.name] = memory.bind(arrays[buffer.name], buffer.name, writable=buffer.fill != "bf16")
    maps = {m.name: _tensor_map(m, addresses[m.buffer]) for m in case.maps}
    args = []
    for arg in case.args:
        if arg == "n":
            args.append(np.uint32(n))
        elif isinstance(arg, list):
            args.append({"u32": np.uint32, "u64": np.uint64, "f32": np.float32}[arg[0]](arg[1]))
        else:
            args.append(maps.get(arg, addresses.get(arg)))
    machine = Machine(
        text,
        case.grid,
        (case.block, 1, 1),
        tuple(args),
        memory,
        dynamic_smem_bytes=case.smem,
        entry=case.entry,
        **options,
    )
    return machine, arrays


def _filled(buffer) -> np.ndarray:
    if buffer.fill != "bf16":
        return np.zeros(buffer.bytes, np.uint8)
    pattern = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)
    pattern = (pattern.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return np.resize(pattern, buffer.bytes)


def _tensor_map(spec, address: int) -> TensorMapSpec:
    strides, pitch = [], 2
    for count in spec.shape[:-1]:
        pitch *= count
        strides.append(pitch)
    return TensorMapSpec("bfloat16", address, spec.shape, tuple(strides), spec.box, SWIZZLES[spec.swizzle])
