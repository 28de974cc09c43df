"""Arrays in and out: numpy, DLPack and ``__cuda_array_interface__``. What comes in decides what goes out."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ..errors import ArrayError, UnsupportedError

_CPU = (1, 3)  # DLPack device types: CPU, pinned host memory


@dataclass(frozen=True)
class HostArray:
    """A numpy view of an argument, and the function that turns a numpy result into the argument's kind."""

    numpy: np.ndarray
    back: object


def to_host(name: str, value) -> HostArray:
    """Return ``value`` as a numpy array without a copy.

    Raises
    ------
    ArrayError
        If it is no array of numbers.
    UnsupportedError
        If it lies on a GPU (the backends that run here take host arrays).
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiubV" and value.dtype.name not in ("bfloat16",):
            raise ArrayError(f"{name} has dtype {value.dtype}: expected numbers")
        return HostArray(value, lambda result: result)
    if hasattr(value, "__cuda_array_interface__"):
        raise UnsupportedError(
            f"{name} lies on a GPU: backends 'reference' and 'emulator' take host arrays; copy it to the host "
            "(for instance with .get() or .cpu())"
        )
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(name, value)
    raise ArrayError(f"{name} is a {type(value).__name__}: pass a numpy array, or one that speaks DLPack")


def _from_dlpack(name: str, value) -> HostArray:
    if value.__dlpack_device__()[0] not in _CPU:
        raise UnsupportedError(
            f"{name} lies on a GPU: backends 'reference' and 'emulator' take host arrays; copy it first"
        )
    if "bfloat16" in str(getattr(value, "dtype", "")):
        return _from_torch_bfloat16(name, value)
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ArrayError(f"{name}: DLPack export failed ({error}); pass a detached, dense array") from error
    return HostArray(array, _same_kind(value))


def _same_kind(value):
    """Return a converter to the producer's own array type, if its module has ``from_dlpack``."""
    module = __import__(type(value).__module__.partition(".")[0])
    convert = getattr(module, "from_dlpack", None) or getattr(
        getattr(module, "numpy", None), "from_dlpack", None
    )
    return convert or (lambda result: result)


def _from_torch_bfloat16(name: str, value) -> HostArray:
    """numpy's DLPack has no bfloat16: the bits travel as int16."""
    module = __import__(type(value).__module__.partition(".")[0])
    if not hasattr(value, "view") or not hasattr(module, "int16"):
        raise ArrayError(
            f"{name}: bfloat16 arrays of {type(value).__name__} cannot be read; pass an ml_dtypes array"
        )
    array = np.from_dlpack(value.detach().view(module.int16)).view(ml_dtypes.bfloat16)

    def back(result):
        if result.dtype == ml_dtypes.bfloat16:
            return module.from_dlpack(np.ascontiguousarray(result).view(np.int16)).view(module.bfloat16)
        return module.from_dlpack(result)

    return HostArray(array, back)
