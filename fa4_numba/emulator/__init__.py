"""Executes PTX on the CPU: Blackwell's TMA, tensor memory, tcgen05 and mbarriers, warp by warp.

It knows nothing of attention: PTX text, launch shape and arrays in; memory, trace and verdicts out. It needs numpy
and ml_dtypes only.
"""

from .machine.inspection import Event, RunStats
from .machine.machine import Machine
from .machine.memory import GlobalMemory
from .perfetto import perfetto_json
from .ptx import Module, parse

__all__ = ["Event", "GlobalMemory", "Machine", "Module", "RunStats", "parse", "perfetto_json"]
