"""Inline-PTX instructions as data (``table``) and the adapter that makes Numba-CUDA intrinsics of them.

Importing this package does not import Numba; ``fa4_numba.ptx.numba_adapter`` does.
"""

from .instruction import Instruction
from .table import TABLE, instruction

__all__ = ["TABLE", "Instruction", "instruction"]
