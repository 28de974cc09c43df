"""The one way in which device functions are made here.

Only functions inlined into the kernel compile on a machine without a GPU driver, and only a kernel without calls
keeps its ``setmaxnreg`` register budgets.
"""

from numba import cuda
from numba.cuda import types

U32 = types.uint32
I32 = types.int32
U64 = types.uint64
F32 = types.float32


def device_inline(function):
    """Make ``function`` a device function that is inlined at every call."""
    return cuda.jit(device=True, inline="always")(function)
