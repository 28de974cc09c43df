"""Bulk groups: which of a warp's asynchronous stores are still in flight."""

from ..machine.waiting import GroupWait
from .registry import effect


@effect("cp.async.bulk.commit_group")
def commit_group(warp, ins):
    """Close the current bulk group."""

    def run():
        warp.bulk_groups.commit()
        if warp.cta.machine.checker is not None:
            warp.cta.machine.checker.bulk_committed(warp)

    return run


@effect("cp.async.bulk.wait_group")
def wait_group(warp, ins):
    """Wait until at most the newest n groups are incomplete (``.read``: have not read their source yet; here the same)."""
    allowed = int(ins.args[0].value)

    def run():
        if warp.cta.machine.checker is not None:
            warp.cta.machine.checker.bulk_waited(warp, allowed)
        return wait_for(warp.bulk_groups, allowed)

    return run


def wait_for(groups, allowed: int):
    """Return what the warp waits for, or None if it need not."""
    wait = GroupWait(groups, allowed)
    return None if wait.ready() else wait
