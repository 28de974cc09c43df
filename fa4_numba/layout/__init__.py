"""How data lies in memory: pure functions over addresses, bits and indices."""

from .banks import bank_conflicts
from .block_scaled import BlockScaledDesc
from .descriptors import InstrDesc, Major, SmemDesc, operand_byte_address
from .swizzle import Swizzle, swizzle_address
from .tensor_map import TensorMapSpec
from .tensor_map_format import replace_field
from .tmem import DataPath, accumulator_lane, cells, copy_rows, split_tmem_address, tmem_address, warp_lanes

__all__ = [
    "BlockScaledDesc",
    "DataPath",
    "InstrDesc",
    "Major",
    "SmemDesc",
    "Swizzle",
    "TensorMapSpec",
    "accumulator_lane",
    "bank_conflicts",
    "cells",
    "copy_rows",
    "operand_byte_address",
    "replace_field",
    "split_tmem_address",
    "swizzle_address",
    "tmem_address",
    "warp_lanes",
]
