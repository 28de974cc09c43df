"""Tensor maps in memory: finding them, and changing them field by field."""

import numpy as np

from ...errors import ArrayError, MemoryFault
from ...layout import TensorMapSpec, replace_field
from ..machine.memory import PARAM_WINDOW, SHARED_WINDOW, SHARED_WINDOW_END
from .memory import addresses
from .registry import effect
from .synchronisation import first_address
from .tensor_core import whole_warp

MAP_BYTES = 128


def tensor_map(warp, address: int, what) -> TensorMapSpec:
    """Read the tensor map at a generic address: a kernel parameter, or global memory."""
    machine = warp.cta.machine
    if PARAM_WINDOW <= address < PARAM_WINDOW + (1 << 16):
        data = machine.param_bytes[address - PARAM_WINDOW :][:MAP_BYTES]
    else:
        data = global_bytes(warp, address, MAP_BYTES, what)
    key = data.tobytes()
    if key not in machine.tensor_maps:
        try:
            machine.tensor_maps[key] = TensorMapSpec.unpack(key)
        except ArrayError as error:
            raise MemoryFault(f"{what}: {error}") from error
    return machine.tensor_maps[key]


def global_bytes(warp, address: int, size: int, what, *, write: bool = False) -> np.ndarray:
    """Return a view of bytes of global memory."""
    data, offset = warp.cta.machine.memory.find(address, address + size, what, write=write)
    return data[offset : offset + size]


def _bytes_at(warp, address: int, shared: bool, what) -> np.ndarray:
    """Return a view of the map at a shared address, or a generic one."""
    if not shared and SHARED_WINDOW <= address < SHARED_WINDOW_END:
        shared, address = True, address - SHARED_WINDOW
    if not shared:
        return global_bytes(warp, address, MAP_BYTES, what, write=True)
    offset = warp.cta.own(address, what)
    warp.cta.touch_shared(offset, MAP_BYTES, what, write=True)
    return warp.cta.shared[offset : offset + MAP_BYTES]


@effect("tensormap.replace")
def replace(warp, ins):
    """Overwrite one field of the tensor map at a; ``ord`` is the dimension of those that have several.

    ``rank`` is given minus 1; a ``global_stride`` in bytes, the first being dimension 1's.
    """
    field = ins.parts[3]
    shared = any(part.startswith("shared") for part in ins.parts)
    address, value = (
        first_address(warp, ins.args[0]),
        warp.scalar(ins.args[-1], np.uint64 if ins.parts[-1] == "b64" else np.uint32),
    )
    order = warp.scalar(ins.args[1]) if len(ins.args) == 3 else lambda: 0

    def run():
        what = warp.where(ins)
        place = _bytes_at(warp, address(), shared, what)
        data = bytearray(place.tobytes())
        try:
            replace_field(data, field, order(), value())
        except ArrayError as error:
            raise MemoryFault(f"{what}: {error}") from error
        place[:] = np.frombuffer(data, np.uint8)

    return run


@effect("tensormap.cp_fenceproxy")
def copy_and_fence(warp, ins):
    """Copy a tensor map from shared to global memory and order the copy before later uses of the map."""
    target, source = first_address(warp, ins.args[0]), first_address(warp, ins.args[1])

    def run():
        what = warp.where(ins)
        whole_warp(warp, ins)
        offset = warp.cta.own(source(), what)
        warp.cta.touch_shared(offset, MAP_BYTES, what)
        global_bytes(warp, target(), MAP_BYTES, what, write=True)[:] = warp.cta.shared[
            offset : offset + MAP_BYTES
        ]

    return run


@effect("prefetch.tensormap", "prefetch.param.tensormap", "prefetch.const.tensormap")
def prefetch_map(warp, ins):
    """A hint that the map will be used."""
    addresses(warp, ins.args[0])
    return lambda: None
