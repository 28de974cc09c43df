"""FlashAttention-4 in Python: the Blackwell forward kernel in Numba-CUDA, and an emulator that runs it anywhere."""

from importlib import import_module

__version__ = "0.1.0"

_EXPORTS = {
    "attention": "api",
    "emulate": "api",
    "explain_backend": "api",
    "choose_config": "api",
    "Problem": "api",
    "FA4Config": "config",
    "compile_kernel": "toolchain",
    "CompiledKernel": "toolchain",
    "Fa4Error": "errors",
    "ConfigError": "errors",
    "ArrayError": "errors",
    "UnsupportedError": "errors",
    "BackendError": "errors",
    "ToolchainError": "errors",
    "EmulatorError": "errors",
}
__all__ = ["__version__", *_EXPORTS]


def __getattr__(name):
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
