"""Tensors as DLPack hands them over: the layout of a torch tensor, at an address of our choice."""

import ctypes

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_FP8 = {"float8_e4m3fn": 10, "float8_e5m2": 12}
_CUDA = 2


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("index", ctypes.c_int)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class _Exporter:
    """An object with the two methods that DLPack asks for. It must outlive the tensor made from it."""

    def __init__(self, address: int, shape, strides, dtype: str):
        integers = lambda values: (ctypes.c_int64 * len(values))(*values)
        self._shape, self._strides = integers(shape), integers(strides)
        tensor = _Tensor(address, _Device(_CUDA, 0), len(shape), _dtype(dtype), self._shape, self._strides, 0)
        self._managed = _Managed(tensor, None, None)  # no deleter: nothing to free

    def __dlpack__(self, **options):
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)

    def __dlpack_device__(self):
        return _CUDA, 0


def _dtype(name: str) -> _DType:
    if name in _FP8:
        return _DType(_FP8[name], 8, 1)
    kind = name.rstrip("0123456789")
    return _DType(_CODES[kind], int(name[len(kind) :] or 8), 1)


_exporters: list[_Exporter] = []  # host code may keep what it was given


def as_device_tensor(tensor, address: int):
    """Return a tvm_ffi tensor with the layout of a torch tensor, whose data lies at ``address``."""
    import tvm_ffi

    _exporters.append(_Exporter(address, tensor.shape, tensor.stride(), str(tensor.dtype).rpartition(".")[2]))
    return tvm_ffi.from_dlpack(_exporters[-1])
