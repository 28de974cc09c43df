"""From a config to machine code: Numba-CUDA, PTX hooks, ptxas, the resource report, the disk cache."""

from .assemble import Resources, assemble, disassemble
from .compile import CompiledKernel, compile_kernel, toolchain_versions

__all__ = ["CompiledKernel", "Resources", "assemble", "compile_kernel", "disassemble", "toolchain_versions"]
