"""The emulator against what a GPU answered, case by case, with both engines."""

import pytest

from .batch import batches, emulate
from .operands import explain
from .recording import FAMILIES, Recording, cases_of

# Matrix multiplies and tensor copies are done by the machine whatever engine runs the rest, so that compiled code
# around them need not be made for every one.
_EVERY = {"matrices": 6, "wgmma": 10, "tma": 6}


def recorded(family: str) -> list:
    """Return the cases of a family that have a recording of their own."""
    outputs = Recording.load(family).outputs
    return [
        case for name, case in cases_of(family).items() if name in outputs and outputs[name][0] == case.digest
    ]


_RUNS = [("interpreter", f, cases) for f in FAMILIES for cases in batches(recorded(f))]
_RUNS += [("compiled", f, cases) for f in FAMILIES for cases in batches(recorded(f)[:: _EVERY.get(f, 1)])]
_IDS = [f"{engine}-{family}-{cases[0].name}".replace(" ", "_") for engine, family, cases in _RUNS]


@pytest.mark.parametrize("engine, family, cases", _RUNS, ids=_IDS)
def test_parity(engine, family, cases):
    """Every output byte agrees, or lies within the documented bounds of an approximation."""
    outputs, problems = Recording.load(family).outputs, []
    for case, out in zip(cases, emulate(cases, engine)):
        wrong = case.compare.mismatches(out, outputs[case.name][1])
        if len(wrong):
            problems.append(f"{case.name}: {len(wrong)} differ\n{explain(case, out, outputs[case.name][1])}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("family", FAMILIES)
def test_recordings_are_current(family):
    """Each recording belongs to a present description, and each description has one."""
    outputs, cases = Recording.load(family).outputs, cases_of(family)
    gone = sorted(set(outputs) - set(cases))
    stale = [name for name, case in cases.items() if name in outputs and outputs[name][0] != case.digest]
    missing = [name for name in cases if name not in outputs]
    again = f"record the family again on a Hopper GPU: python -m tests.silicon.record {family}"
    assert not gone, f"recordings without a description: {gone}; {again}"
    assert not stale, f"descriptions that changed since they were recorded: {stale}; {again}"
    assert not missing, f"descriptions without a recording: {missing}; {again}"
