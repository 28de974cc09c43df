"""Flushing subnormals to zero (``.ftz``) by the CPU's own mode, where it has one that numpy's arithmetic obeys.

Nearly every float instruction of an attention kernel is ``.ftz``. During a run the CPU's flush mode (MXCSR: FTZ and
DAZ) is on, so that such an instruction is one numpy call; the others switch it off around theirs. On CPUs without
the mode, ``.ftz`` instructions flush in numpy.
"""

import contextlib
import ctypes
import platform

import numpy as np

_MXCSR_OFFSET = 28  # in glibc's x86-64 fenv_t, after the x87 environment
_FTZ_AND_DAZ = 0x8040


class FlushMode:
    """The flush mode of the calling thread."""

    def __init__(self):
        self.available = self.on = False
        if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
            return
        try:
            library = ctypes.CDLL("libm.so.6")
        except OSError:
            return
        self._set = library.fesetenv
        self._set.argtypes = [ctypes.c_void_p]
        library.fegetenv.argtypes = [ctypes.c_void_p]
        self._environments = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
        self._normal, self._flush = (ctypes.addressof(e) for e in self._environments)
        for address in (self._normal, self._flush):
            library.fegetenv(address)
        self._environments[1][_MXCSR_OFFSET // 4] |= _FTZ_AND_DAZ
        self.available = self._works()

    def _works(self) -> bool:
        """Return whether numpy flushes subnormal inputs and results in this mode."""
        tiny, subnormal = np.full(64, 2.0**-126, np.float32), np.full(64, 2.0**-130, np.float32)
        with self.flushing(force=True):
            flushed = not (tiny * np.float32(0.5)).any() and not (subnormal * np.float32(2.0**20)).any()
        return flushed and bool((tiny * np.float32(0.5)).all())

    @contextlib.contextmanager
    def flushing(self, *, force: bool = False):
        """Switch the mode on for a ``with`` block."""
        if not (self.available or force):
            yield
            return
        self._set(self._flush)
        self.on = True
        try:
            yield
        finally:
            self.on = False
            self._set(self._normal)

    def exactly(self, function, *arguments):
        """Call ``function`` with the mode off."""
        if not self.on:
            return function(*arguments)
        self._set(self._normal)
        try:
            return function(*arguments)
        finally:
            self._set(self._flush)


MODE = FlushMode()


def keeping_subnormals(function):
    """Return ``function``, to be called with the flush mode off."""
    if not MODE.available:
        return function
    exactly = MODE.exactly
    return lambda *arguments: exactly(function, *arguments)
