"""clusterlaunchcontrol: a running cluster takes over the work of one that has not been started."""

import numpy as np

from ..machine.cluster import coordinates
from ..machine.memory import RANK_SHIFT
from .registry import effect, vector_items
from .synchronisation import first_address

RESPONSE_BYTES = 16  # words x, y, z of the cancelled cluster's first CTA, and 1; zeros if there was none


@effect("clusterlaunchcontrol.try_cancel")
def try_cancel(warp, ins):
    """Ask for a cluster that has not been started; the answer's 16 bytes arrive at a, and complete on the mbarrier.

    ``.multicast::cluster::all``: at the same offsets of every CTA of the cluster.
    """
    address, bar, cta = first_address(warp, ins.args[0]), first_address(warp, ins.args[1]), warp.cta
    multicast = any(part.startswith("multicast") for part in ins.parts)

    def run():
        what, at, bar_at = warp.where(ins), address(), bar()
        owner, offset = cta.reach(at, what)
        _, bar_offset = cta.reach(bar_at, what)
        targets = cta.cluster.ctas if multicast else [owner]
        barriers = [cta.mbarrier(target.rank << RANK_SHIFT | bar_offset, what) for target in targets]
        who = warp.where(ins, "clusterlaunchcontrol of ")
        for target in targets:
            target.check_shared(offset, RESPONSE_BYTES, what)

        def land():
            response = _next_cluster(cta.machine)
            for target, barrier in zip(targets, barriers):
                target.touch_shared(offset, RESPONSE_BYTES, what, write=True)
                target.shared[offset : offset + RESPONSE_BYTES] = response.view(np.uint8)
                barrier.land(RESPONSE_BYTES, who)

        cta.issue(("launch control", id(land)), land, f"cluster launch control to {barriers[0].name}")

    return run


def _next_cluster(machine) -> np.ndarray:
    """Return the response: the first CTA of a cluster that will not be started any more, if there is one."""
    number = machine.next_cluster()
    if number is None:
        return np.zeros(4, np.uint32)
    machine.count_cluster()
    first = [n * size for n, size in zip(coordinates(number, machine.clusters), machine.cluster)]
    return np.array([*first, 1], np.uint32)


@effect("clusterlaunchcontrol.query_cancel")
def query_cancel(warp, ins):
    """Read a response: ``is_canceled``, or ``get_first_ctaid`` of the cluster (``::x`` …, or all as a vector)."""
    words = warp.row(ins.args[-1]).view(np.uint32)  # (lane, word)
    question = ins.parts[2]
    if question == "is_canceled":
        target = warp.row(ins.args[0])

        def run():
            np.copyto(target, words[:, 3] != 0, where=warp.mask)

        return run
    axes = ["xyz".index(question[-1])] if "::" in question else range(3)
    targets = [
        (warp.row(d), words[:, i]) for i, d in zip(axes, vector_items(ins.args[0])) if hasattr(d, "width")
    ]

    def run_ids():
        for target, word in targets:
            np.copyto(target, word, where=warp.mask)

    return run_ids
