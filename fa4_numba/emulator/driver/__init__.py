"""A stand-in for the CUDA driver: a library's own Python call runs on the emulator, on a machine without a GPU.

    with emulated_driver(schedule="random:3") as log:
        kernel[grid](DeviceArray(x), DeviceArray(out), n)   # a triton.jit or Gluon kernel
    print(log)

The library compiles as it does for a Blackwell GPU; what it would hand to the driver, PTX, grid, cluster, shared
memory and the bytes of every parameter, goes to :class:`~fa4_numba.emulator.Machine` instead.
"""

from .arrays import DeviceArray
from .launch import Launch, LaunchLog
from .session import emulated_driver

__all__ = ["DeviceArray", "Launch", "LaunchLog", "emulated_driver"]
