"""Reading PTX: text to modules of decoded instructions in basic blocks."""

from .blocks import Block, build_blocks
from .module import Entry, Instruction, Module
from .parser import parse

__all__ = ["Block", "Entry", "Instruction", "Module", "build_blocks", "parse"]
