"""Bulk groups: which of a warp's asynchronous stores are still in flight."""

from ..machine.waiting import BulkWait
from .registry import effect


def current_group(warp) -> dict:
    """Return the bulk group that the warp's copies join until it commits."""
    if not warp.bulk_groups or warp.bulk_groups[-1]["committed"]:
        warp.bulk_groups.append({"open": 0, "committed": False})
    return warp.bulk_groups[-1]


@effect("cp.async.bulk.commit_group")
def commit_group(warp, ins):
    """Close the current bulk group."""

    def run():
        current_group(warp)["committed"] = True
        if warp.cta.machine.checker is not None:
            warp.cta.machine.checker.bulk_committed(warp)

    return run


@effect("cp.async.bulk.wait_group")
def wait_group(warp, ins):
    """Wait until at most n groups are incomplete (``.read``: have not read their source yet; here the same)."""
    allowed = int(ins.args[0].value)

    def run():
        if warp.cta.machine.checker is not None:
            warp.cta.machine.checker.bulk_waited(warp, allowed)
        wait = BulkWait(warp, allowed)
        return None if wait.ready() else wait

    return run
