"""PTX types as numpy dtypes."""

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPE = {
    "pred": np.bool_,
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8,
    "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f32x2": np.float32,
}  # fmt: skip


def dtype_of(ins, default: str | None = None):
    """Return the dtype of the instruction's last type modifier."""
    for part in reversed(ins.parts):
        if part in DTYPE:
            return np.dtype(DTYPE[part])
    if default is None:
        raise ValueError("no type modifier")
    return np.dtype(DTYPE[default])


def signed(dtype: np.dtype) -> np.dtype:
    """Return the signed integer type of the same width."""
    return np.dtype(f"i{dtype.itemsize}")


def unsigned(dtype: np.dtype) -> np.dtype:
    """Return the unsigned integer type of the same width."""
    return np.dtype(f"u{dtype.itemsize}")
