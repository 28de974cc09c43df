"""What the config engine accepts as dtype, swizzle, integer and flag, and its arithmetic."""

import difflib

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
_ALIASES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "fp16": "float16",
    "half": "float16",
    "f32": "float32",
    "fp32": "float32",
    "fp8": "float8_e4m3fn",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e8m0": "float8_e8m0fnu",
}


def dtype_name(argument: str, value) -> str:
    """Return the canonical name of a dtype given by name or as a dtype object.

    Raises
    ------
    ConfigError
        If it is no dtype, or one that attention does not use; suggests the nearest name.
    """
    name = value
    if not isinstance(value, str):
        try:
            name = np.dtype(value).name if value is not None else None
        except (TypeError, ValueError):
            name = None
    if name not in DTYPE_BYTES:
        key = str(value).lower()
        near = [_ALIASES[key]] if key in _ALIASES else difflib.get_close_matches(key, DTYPE_BYTES, 1, 0.5)
        raise ConfigError(
            f"{argument} = {value!r}: not a dtype that attention uses; take one of {sorted(DTYPE_BYTES)}"
            + (f"; did you mean {near[0]!r}?" if near else "")
        )
    return name


def optional_dtype_name(argument: str, value) -> str | None:
    """Return :func:`dtype_name`, or None for None."""
    return None if value is None else dtype_name(argument, value)


def integer(argument: str, value) -> int:
    """Return ``value`` as an int.

    Raises
    ------
    ConfigError
        For everything else, floats and bools included: a size of 128.5 or True is a slip of the caller.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        fix = f"; pass {int(value)}" if whole else ""
        raise ConfigError(f"{argument} = {value!r}: must be an integer, got {type(value).__name__}{fix}")
    return int(value)


def flag(argument: str, value) -> bool:
    """Return ``value`` as a bool; 0 and 1 count as flags.

    Raises
    ------
    ConfigError
        For everything else, the text "False" included.
    """
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise ConfigError(f"{argument} = {value!r}: must be True or False, got {type(value).__name__}")


def swizzle_name(value) -> str:
    """Return "128B", "64B", "32B" or "NONE", from that text or a ``layout.Swizzle``.

    Raises
    ------
    ConfigError
        For everything else; None is no swizzle name, "NONE" is.
    """
    text = getattr(value, "value", value)
    name = text.upper() if isinstance(text, str) else None
    if name not in SWIZZLE_BYTES:
        near = difflib.get_close_matches(str(text).upper(), SWIZZLE_BYTES, 1, 0.5)
        raise ConfigError(
            f"swizzle_mode = {value!r}: take one of {list(SWIZZLE_BYTES)}"
            + (f"; did you mean {near[0]!r}?" if near else "")
        )
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
