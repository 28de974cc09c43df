"""What the chips are: one :class:`ArchSpec` per architecture, each number with its source."""

from .arch import SM_90A, SM_100A, ArchSpec, arch

__all__ = ["SM_90A", "SM_100A", "ArchSpec", "arch"]
