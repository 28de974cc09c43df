"""A few mutants of each kernel in every test run; ``python -m tests.mutation.own_kernel`` and ``….peer_kernel`` run all."""

import pytest

from . import own_kernel, peer_kernel
from .mutator import KINDS, Mutant
from .run import run_all

# kind: how it is caught, and a word that the message must hold
SAMPLE = {
    "dropped mbarrier wait": ("hazard", "write under a reader"),
    "flipped parity": ("deadlock", "waits for parity"),
    "dropped wait::st": ("hazard", "tcgen05.wait::st"),
    "dropped proxy fence": ("hazard", "missing proxy fence"),
    "column outside the allocation": ("fault", "are not allocated"),
}


@pytest.mark.parametrize("kind", SAMPLE)
def test_a_mutant_of_our_kernel_is_caught_and_named(kind):
    caught, words = SAMPLE[kind]
    (outcome,) = run_all(own_kernel.launch, own_kernel._kernel().ptx, 1, kinds={kind})
    assert outcome.caught == caught and words in outcome.message, str(outcome)


@pytest.mark.peers_triton
@pytest.mark.parametrize("kind", ["dropped mbarrier wait", "dropped wait::st", "one arrival more expected"])
def test_a_mutant_of_tritons_attention_is_caught(kind):
    pytest.importorskip("triton")
    (outcome,) = run_all(peer_kernel.launch, peer_kernel._recorded()[0].ptx, 1, kinds={kind})
    assert outcome.caught, str(outcome)


def test_a_mutant_changes_its_line_and_no_other():
    ptx = "a;\nbar.sync 0; // all\nb;"
    mutant = Mutant("dropped named barrier", 2, "bar.sync 0", KINDS["dropped named barrier"][1]("bar.sync 0"))
    assert mutant.apply(ptx).split("\n") == ["a;", "  // all", "b;"]
