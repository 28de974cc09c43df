"""The CUDA entry points that CuTe DSL's host code calls, as Python callbacks, and the loader that links them."""

import ctypes
from contextlib import contextmanager

from ...errors import LaunchError
from ...hw import SM_100A
from .cuda_tensor_map import repack
from .device import SM_COUNT
from .launch import parsed

_CLUSTER_DIMENSION = 4  # cudaLaunchAttributeID
_ATTRIBUTES = {8: 48 * 1024, 16: SM_COUNT, 75: 10, 76: 0, 97: SM_100A.smem_bytes_per_block}  # cudaDeviceAttr


class _Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]

    def __iter__(self):
        return iter((self.x, self.y, self.z))


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("dim", _Dim3), ("rest", ctypes.c_uint8 * 52)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", _Dim3),
        ("block", _Dim3),
        ("smem", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    ]


class CudaRuntime:
    """Callbacks by the names that the host code links to."""

    def __init__(self):
        self._ptx = self._session = None
        self._handles: dict[int, str] = {}
        self._callbacks: list = []
        self._error: BaseException | None = None

    @contextmanager
    def running(self, ptx: str, session):
        """While it lasts the host code of the module ``ptx`` runs: its launches go to ``session``, its errors are raised."""
        outer = self._ptx, self._session
        self._ptx, self._session, self._error = ptx, session, None
        try:
            yield
        finally:
            self._ptx, self._session = outer
            if self._error is not None:
                raise self._error from None

    def load(self, code: bytes, symbol: str):
        """Link object code against the callbacks. Return (what keeps it alive, address of ``symbol``)."""
        import llvmlite.binding as llvm
        import tvm_ffi

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        if not self._callbacks:
            library = tvm_ffi.libinfo.find_libtvm_ffi()
            llvm.load_library_permanently(library)
            self._tvm = ctypes.CDLL(library)
            self._export(llvm)
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(symbol)
        if not address:
            raise LaunchError(f"the host code of CuTe DSL has no symbol {symbol}")
        return engine, address

    def _export(self, llvm) -> None:
        """Give every callback its symbol."""
        pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
        out = ctypes.POINTER(pointer)
        number = ctypes.POINTER(integer)
        table = {
            "_cudaLibraryLoadData": (
                self._load_library,
                out,
                *[pointer] * 3,
                ctypes.c_uint,
                *[pointer] * 2,
                ctypes.c_uint,
            ),
            "_cudaLibraryGetKernel": (self._get_kernel, out, pointer, ctypes.c_char_p),
            "_cudaGetDevice": (self._zero, number),
            "_cudaSetDevice": (self._accept, integer),
            "_cudaGetDeviceCount": (self._one, number),
            "_cudaDeviceGetAttribute": (self._attribute, number, integer, integer),
            "_cuKernelGetAttribute": (self._zero, number, integer, pointer, integer),
            "_cuDeviceGet": (self._zero, number, integer),
            "_cudaFuncSetAttribute": (self._accept, pointer, integer, integer),
            "_cudaKernelSetAttributeForDevice": (self._accept, pointer, integer, integer, integer),
            "_cudaOccupancyMaxActiveBlocksPerMultiprocessor": (self._one, number, pointer, integer, size),
            "_cudaLaunchKernelEx": (self._launch, ctypes.POINTER(_Config), pointer, out),
            "cuda_dialect_init_library_once": (self._init_once, out, pointer, pointer, pointer),
            "cuda_dialect_unload_library_once": (self._accept, out),
            "CuteDSLRT_TVMFFISetRaisedCudaError": (self._raised, integer),
            "CuteDSLRT_TVMFFISetRaisedCudaLaunchError": (self._raised, integer),
        }
        for name, (function, *types) in table.items():
            callback = ctypes.CFUNCTYPE(ctypes.c_int, *types)(function)
            self._callbacks.append(callback)
            llvm.add_symbol(name, ctypes.cast(callback, pointer).value)

    # -- entry points: each returns a cudaError_t, 0 for success ------------------------------------
    def _accept(self, *args) -> int:
        return 0

    def _zero(self, out, *args) -> int:
        out[0] = 0
        return 0

    def _one(self, out, *args) -> int:
        out[0] = 1
        return 0

    def _attribute(self, out, attribute, device) -> int:
        out[0] = _ATTRIBUTES.get(attribute, 0)
        return 0

    def _load_library(self, out, code, *args) -> int:
        out[0] = code
        return 0

    def _get_kernel(self, out, library, name) -> int:
        handle = len(self._handles) + 1
        self._handles[handle] = name.decode()
        out[0] = handle
        return 0

    def _init_once(self, library, init, load, error) -> int:
        """Call the host code's own functions that load the library, the first time."""
        if not library[0]:
            handle = ctypes.c_void_p()
            at = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
            if result := at(init)(ctypes.byref(handle)):
                return result
            if load:
                loader = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int)
                if result := loader(load)(ctypes.byref(handle), 0):
                    return result
            library[0] = handle.value
        return 0

    def _raised(self, error) -> int:
        """The host code is about to report a failure: TVM's error must exist. running() raises the real one."""
        self._tvm.TVMFFIErrorSetRaisedFromCStr(b"RuntimeError", b"the emulated launch failed")
        return 0

    def _launch(self, config, kernel, args) -> int:
        try:
            self._deliver(config.contents, self._handles[kernel], args)
        except BaseException as error:  # must not cross the C frames: running() raises it after the call
            self._error = error
            return 1
        return 0

    def _deliver(self, config, name: str, args) -> None:
        if self._session is None:
            raise LaunchError(f"{name} was compiled for the emulator: call it inside emulated_driver()")
        cluster = (1, 1, 1)
        for i in range(config.count):
            if config.attributes[i].id == _CLUSTER_DIMENSION:
                cluster = tuple(config.attributes[i].dim)
        params = parsed(self._ptx).entries[name].params
        data = [ctypes.string_at(args[i], size) for i, (_, size, _) in enumerate(params)]
        data = [
            repack(b) if (size, alignment) == (128, 64) else b
            for b, (_, size, alignment) in zip(data, params)
        ]
        self._session.launch(name, self._ptx, config.grid, config.block, cluster, config.smem, data)
