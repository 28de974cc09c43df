"""Every error that fa4_numba raises on purpose, so that ``except Fa4Error`` catches all of them."""


class Fa4Error(Exception):
    """Base of all fa4_numba errors."""


class ConfigError(Fa4Error, ValueError):
    """An ``FA4Config`` argument has no meaning, or the config cannot be built."""


class ArrayError(Fa4Error, ValueError):
    """An array argument has the wrong rank, shape, dtype, strides or values."""


class UnsupportedError(Fa4Error, NotImplementedError):
    """The request is meaningful, but this backend or version does not serve it."""


class ToolchainError(Fa4Error, RuntimeError):
    """A compiler, assembler or cache step failed, or its tool is missing."""


class BackendError(Fa4Error, RuntimeError):
    """The chosen backend cannot run on this machine (no GPU, wrong architecture, no driver)."""


class PtxSyntaxError(Fa4Error, ValueError):
    """PTX text that cannot be parsed; the message names the line."""


class UnknownInstructionError(PtxSyntaxError):
    """A PTX instruction that the emulator does not implement; raised when the module is loaded."""


class EmulatorError(Fa4Error, RuntimeError):
    """Base of everything that goes wrong while PTX is being executed."""


class LaunchError(EmulatorError):
    """Grid, block, shared memory or arguments do not fit the kernel or the architecture."""


class Deadlock(EmulatorError):
    """No warp can run: the message lists every waiting warp and what it waits for."""


class Hazard(EmulatorError):
    """The program did something whose result the hardware does not define."""


class MemoryFault(EmulatorError):
    """An access outside, or misaligned within, the memory that it names."""


class StepLimit(EmulatorError):
    """The instruction budget of the run is used up (likely an endless loop)."""
