"""Kernel arguments as the bytes of their parameters."""

import numpy as np

from ...errors import LaunchError
from ...layout import TensorMapSpec


def argument_bytes(value, name: str, size: int, is_float: bool) -> bytes:
    """Return the bytes of one kernel argument."""
    if isinstance(value, TensorMapSpec):
        data = value.pack()
    elif isinstance(value, bytes | np.generic):
        data = value if isinstance(value, bytes) else value.tobytes()
    elif size in (2, 4, 8) and (is_float or isinstance(value, float)):
        data = np.array(value, f"f{size}").tobytes()
    elif isinstance(value, int):
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise LaunchError(f"argument {name} = {value}: does not fit {size} bytes")
        data = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    else:
        raise LaunchError(
            f"argument {name}: cannot pass a {type(value).__name__}; take an int, float or TensorMapSpec"
        )
    if len(data) != size:
        raise LaunchError(f"argument {name} has {len(data)} bytes, the kernel declares {size}")
    return data
