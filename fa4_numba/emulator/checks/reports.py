"""What the checks have to say: a report names what, where, the other party, and the usual fix."""

import enum
from dataclasses import dataclass


class Severity(enum.IntEnum):
    """``ERROR``: wrong on some run. ``WARNING``: a rule is broken that may never show. ``LINT``: could be better."""

    LINT = 1
    WARNING = 2
    ERROR = 3


# kind: (severity, what is wrong, the usual fix)
FIXES = {
    "read before landed": (
        Severity.ERROR,
        "reads what an asynchronous copy may not have written yet",
        "wait for the mbarrier that the copy completes (and check the phase's parity)",
    ),
    "read before multiplied": (
        Severity.ERROR,
        "reads what a matrix multiply may not have written yet",
        "tcgen05.commit (wgmma: commit_group) after the multiply, and wait for its mbarrier before reading",
    ),
    "read before stored": (
        Severity.ERROR,
        "reads tensor memory that a tcgen05.st may not have written yet",
        "tcgen05.wait::st in the storing warp before it signals",
    ),
    "unordered read": (
        Severity.ERROR,
        "reads what another warp writes, with no synchronisation between them",
        "arrive on a barrier after the write and wait for it before the read",
    ),
    "write under a reader": (
        Severity.ERROR,
        "overwrites what somebody may still read",
        "wait for the barrier that the reader arrives on when it is done (consumer release)",
    ),
    "write under a multiply": (
        Severity.ERROR,
        "overwrites an operand that a matrix multiply may still read",
        "wait for the mbarrier of the tcgen05.commit (wgmma: wait_group) that follows the multiply",
    ),
    "bulk store's source": (
        Severity.ERROR,
        "overwrites what a bulk store may still read",
        "cp.async.bulk.wait_group.read in the storing thread, then synchronise, before the buffer is used again",
    ),
    "exit under a bulk store": (
        Severity.WARNING,
        "may still read shared memory when its CTA has exited",
        "cp.async.bulk.commit_group and wait_group (.read) in the storing thread before it exits",
    ),
    "two writes": (
        Severity.ERROR,
        "overwrites what another party writes, with no order between the two",
        "synchronise the writers, or let them write different places",
    ),
    "missing proxy fence": (
        Severity.ERROR,
        "reads through the async proxy what threads wrote through the generic one, with no proxy fence between",
        "fence.proxy.async in the writing threads before they signal (or in the issuing thread after it has waited)",
    ),
    "cp.async without proxy fence": (
        Severity.WARNING,
        "reads through the async proxy what a cp.async wrote through the generic one, with no proxy fence between",
        "fence.proxy.async after the copies are complete, in the copying threads or in the issuing one",
    ),
    "barrier not initialised yet": (
        Severity.ERROR,
        "uses an mbarrier whose initialisation it need not see",
        "synchronise the CTA (cluster: barrier.cluster) after mbarrier.init and its fence",
    ),
    "initialisation not fenced": (
        Severity.LINT,
        "an asynchronous unit signals an mbarrier whose initialisation no fence has published",
        "fence.mbarrier_init.release.cluster (or fence.proxy.async) after mbarrier.init, before the CTA synchronises",
    ),
    "phase overrun": (
        Severity.ERROR,
        "completes a phase although a waiting warp has not yet seen the one before the last: its parity is ambiguous",
        "let the waiter's progress be awaited before two more phases complete",
    ),
    "invalidated in flight": (
        Severity.WARNING,
        "invalidates an mbarrier on which an arrival may still be in flight",
        "wait for the last phase before mbarrier.inval",
    ),
    "exit before arrival": (
        Severity.WARNING,
        "arrives at an mbarrier of another CTA that may already have exited",
        "meet at barrier.cluster before the CTAs exit",
    ),
    "uninitialised": (
        Severity.WARNING,
        "reads memory that nobody has written",
        "write it, or do not read it",
    ),
    "bank conflicts": (
        Severity.LINT,
        "has shared-memory bank conflicts",
        "swizzle or pad the layout so that the threads of an access fall into different banks",
    ),
    "loads not awaited": (
        Severity.LINT,
        "signals while tcgen05.ld of the warp may be in flight",
        "tcgen05.wait::ld before the registers are used by others (ptxas orders the registers of the warp itself)",
    ),
}


class HazardWarning(UserWarning):
    """A hazard of severity "warning" in an emulated kernel."""


@dataclass
class Report:
    """One finding. ``place`` and ``other`` are places in the program; ``count``: how often it was found."""

    kind: str
    place: object
    other: object
    what: str
    count: int = 1

    @property
    def severity(self) -> Severity:
        return FIXES[self.kind][0]

    def __str__(self):
        _, wrong, fix = FIXES[self.kind]
        times = f" ({self.count} times)" if self.count > 1 else ""
        other = f"\n    the other: {self.other}" if self.other is not None else ""
        return (
            f"{self.severity.name.lower()}: {self.kind}{times}\n    {self.place}\n    {wrong}: {self.what}{other}\n"
            f"    fix: {fix}"
        )
