"""Host arrays as device memory: each gets an address when a kernel first sees it."""

import ctypes

import numpy as np

from ...errors import ArrayError
from ..machine.memory import GlobalMemory


class DeviceArray:
    """A numpy array with the few attributes that libraries ask of a tensor. Kernels read and write it in place."""

    def __init__(self, array: np.ndarray):
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise ArrayError("DeviceArray takes a C-contiguous numpy array (np.ascontiguousarray makes one)")
        self.array = array

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self, dim: int | None = None):
        """Return the strides in elements, or one of them."""
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if dim is None else strides[dim]

    def data_ptr(self) -> int:
        """Return the host address; the device address is given at the launch."""
        return self.array.ctypes.data


class DeviceMemory:
    """Maps host storage to device addresses. Storage that was seen stays alive, so that no address is used twice."""

    def __init__(self):
        self.memory = GlobalMemory()
        self._bound: dict[int, int] = {}  # host address → device address

    def address(self, tensor) -> int:
        """Return the device address of a tensor's first element: a DeviceArray, a torch CPU tensor, None or an int."""
        if tensor is None or isinstance(tensor, int):
            return tensor or 0
        if isinstance(tensor, DeviceArray):
            return self._storage(tensor.data_ptr(), tensor.array.nbytes, tensor)
        if hasattr(tensor, "untyped_storage"):
            storage = tensor.untyped_storage()
            start = self._storage(storage.data_ptr(), storage.nbytes(), storage)
            return start + tensor.data_ptr() - storage.data_ptr()
        raise ArrayError(
            f"cannot pass a {type(tensor).__name__} to a kernel: wrap numpy arrays in DeviceArray, or pass torch CPU tensors"
        )

    def scratch(self, nbytes: int) -> int:
        """Return the address of new memory whose contents are undefined (all bits set)."""
        return self.address(DeviceArray(np.full(nbytes, 0xFF, np.uint8))) if nbytes else 0

    def _storage(self, host: int, nbytes: int, owner) -> int:
        if nbytes == 0:
            return 0
        if host not in self._bound:
            data = np.frombuffer((ctypes.c_uint8 * nbytes).from_address(host), np.uint8)
            device = self.memory.bind(data, f"storage {len(self._bound)}", writable=True, owner=owner)
            self._bound[host] = device
        return self._bound[host]
