"""Ends that a program does not want: traps, and calls of functions that nobody defines."""

from ...errors import Hazard
from .registry import effect


@effect("call")
def call(warp, ins):
    """Call a function that the module only declares: a failed assertion, as a rule. (Others are inlined.)"""
    name = ins.args[0].name

    def run():
        raise Hazard(f"{warp.where(ins)}: calls {name}, which the module declares but does not define")

    return run


@effect("trap", "brkpt")
def trap(warp, ins):
    """Give up: the program says that something is wrong."""

    def run():
        raise Hazard(f"{warp.where(ins)}: the program executes {ins.op}, so it found something wrong itself")

    return run
