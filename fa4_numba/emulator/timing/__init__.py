"""A clock for the emulator: what a GPU would need, as a model predicts it. Every figure that comes from here is *model*."""

from .arch import KNOWN, SM_90, SM_100, TimingArch, timing_arch
from .clock import Clock
from .report import Timing

__all__ = ["KNOWN", "SM_90", "SM_100", "Clock", "Timing", "TimingArch", "timing_arch"]
