"""Runs mutants: which are caught, and by what."""

import collections
from dataclasses import dataclass

import numpy as np

from fa4_numba.emulator.checks import Severity
from fa4_numba.errors import Fa4Error

from .mutator import Mutant, mutants

SCHEDULES = ("eager", "late", "random:1", "random:2")


@dataclass
class Outcome:
    """``caught``: "hazard", "deadlock", "fault", "wrong values", or "" for a survivor; ``message``: what was said."""

    mutant: Mutant
    caught: str
    message: str

    def __str__(self):
        return f"{self.caught or 'SURVIVED':<13} {self.mutant}\n    {self.message[:400]}"


def executed_lines(machine) -> set[int]:
    """Return the PTX lines of the machine's instructions (not arithmetic) that a checked run has executed."""
    return {warp.pieces[pc].instruction.line for warp in machine.live.warps for pc in warp.effects}


def judge(mutant: Mutant, launch, ptx: str, usual=frozenset(), schedules=SCHEDULES) -> Outcome:
    """Run a mutant under the schedules until something catches it; ``usual``: kinds of lint that say nothing.

    ``launch(ptx, schedule)`` returns (machine, function that says whether the results are right).
    """
    wrong = None
    for schedule in schedules:
        try:
            machine, right = launch(mutant.apply(ptx), schedule)
            machine.run()
        except Fa4Error as error:
            name = type(error).__name__.lower()
            return Outcome(
                mutant, {"memoryfault": "fault", "steplimit": "deadlock"}.get(name, name), str(error)
            )
        serious = [
            r for r in machine.checker.reports if r.severity >= Severity.WARNING or r.kind not in usual
        ]
        if serious:
            return Outcome(mutant, "hazard", str(serious[0]))
        if wrong is None and not right():
            wrong = Outcome(mutant, "wrong values", f"schedule {schedule}")
    return wrong or Outcome(mutant, "", "")


def run_all(launch, ptx: str, per_kind: int, progress: bool = False, kinds=None) -> list[Outcome]:
    """Make and judge mutants of a kernel; ``progress``: print each; ``kinds``: only those."""
    machine, right = launch(ptx, "eager")
    machine.run()
    if not right() or any(r.severity >= Severity.WARNING for r in machine.checker.reports):
        raise AssertionError("the unmutated kernel is not clean")
    usual = frozenset(r.kind for r in machine.checker.reports)
    made = mutants(machine.entry.instructions, executed_lines(machine), per_kind)
    outcomes = []
    for mutant in made:
        if kinds is not None and mutant.kind not in kinds:
            continue
        outcomes.append(judge(mutant, launch, ptx, usual))
        if progress:
            print(outcomes[-1], flush=True)
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """Return counts by kind as Markdown."""
    rows = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        rows[outcome.mutant.kind][outcome.caught or "survived"] += 1
    columns = ["hazard", "deadlock", "fault", "wrong values", "survived"]
    lines = ["| kind | made | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for kind, counts in rows.items():
        lines.append(
            f"| {kind} | {sum(counts.values())} | " + " | ".join(str(counts[c] or "") for c in columns) + " |"
        )
    return "\n".join(lines)


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.view(np.uint8), b.view(np.uint8))


def report(outcomes: list[Outcome]) -> None:
    """Print the table and the sum."""
    print(table(outcomes))
    print(f"{sum(bool(outcome.caught) for outcome in outcomes)} of {len(outcomes)} mutants caught")
