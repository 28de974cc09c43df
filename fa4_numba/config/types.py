"""dtype and swizzle names as the config engine accepts them."""

import numpy as np

from ..errors import ConfigError

DTYPE_BYTES = {
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
}
SWIZZLE_BYTES = {"128B": 128, "64B": 64, "32B": 32, "NONE": 16}


def dtype_name(argument: str, value) -> str:
    """Return the canonical name of a dtype given by name or as a dtype object."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if name is None:
        try:
            name = np.dtype(value).name
        except TypeError:
            name = repr(value)
    if name not in DTYPE_BYTES:
        raise ConfigError(
            f"{argument} = {value!r}: not a dtype that attention uses; take one of {sorted(DTYPE_BYTES)}"
        )
    return name


def integer(argument: str, value) -> int:
    """Return ``value`` as an int; bools and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ConfigError(f"{argument} = {value!r}: must be an integer, got {type(value).__name__}")
    return int(value)


def swizzle_name(value) -> str:
    """Return "128B", "64B", "32B" or "NONE"."""
    name = str(getattr(value, "value", value)).upper()
    if name not in SWIZZLE_BYTES:
        raise ConfigError(f"swizzle_mode = {value!r}: take one of {list(SWIZZLE_BYTES)}")
    return name


def div(a: int, b: int) -> int:
    """Floor division; 0 for a zero divisor (degenerate shapes give numbers, and ``supported()`` says no)."""
    return a // b if b else 0


def mod(a: int, b: int) -> int:
    """Floor remainder; 0 for a zero divisor."""
    return a % b if b else 0


def align_down(a: int, b: int) -> int:
    """Largest multiple of ``b`` that is ≤ ``a``."""
    return div(a, b) * b


def align_up(a: int, b: int) -> int:
    """Smallest multiple of ``b`` that is ≥ ``a``."""
    return div(a + b - 1, b) * b
