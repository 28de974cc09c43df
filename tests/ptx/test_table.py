"""Every row of the instruction table assembles, and the compiler respects what rows say of themselves."""

import re

import pytest

from fa4_numba.ptx import TABLE, Instruction
from fa4_numba.toolchain import assemble

IMMEDIATES = {"columns": 512, "registers": 200, "pending": 0, "bit": 4, "half_split": 32}


def bound(row):
    return row.bind(**{name: IMMEDIATES[name] for name in row.immediates}) if row.immediates else row


def module(rows, arch):
    body = "".join(bound(row).standalone_ptx() for row in rows)
    return f".version 9.0\n.target {arch}\n.address_size 64\n.visible .entry k() .maxntid 512\n{{\n{body}\nret;\n}}\n"


def pair_form(row):
    return "cta_group::2" in row.text


@pytest.mark.parametrize("pair", [False, True])
def test_rows_assemble_for_sm100a(pair):
    # one function may not mix single-CTA and CTA-pair tcgen05 forms
    rows = [row for row in TABLE.values() if pair_form(row) == pair]
    assert len(rows) > (5 if pair else 100)
    assemble(module(rows, "sm_100a"), "sm_100a")


def test_rows_assemble_for_sm90a():
    rows = [r for r in TABLE.values() if r.since != "sm_100a" and not r.name.startswith("registers_")]
    assert len(rows) > 50
    assemble(module(rows, "sm_90a"), "sm_90a")


def test_aligned_rows_are_convergent_and_never_pure():
    for row in TABLE.values():
        if ".aligned" in row.text:
            assert row.convergent and not row.pure, row.name
    with pytest.raises(ValueError, match="convergent"):
        Instruction("bad", "tcgen05.wait::ld.sync.aligned;")


def test_rows_name_their_isa_section():
    assert [row.name for row in TABLE.values() if not row.section] == []


def compile_body(function):
    from numba import cuda
    from numba.cuda import types

    signature = types.void(types.int32, types.uint64)
    return cuda.compile_ptx(function, signature, cc=(10, 0, "a"), launch_bounds=(128, 1))[0]


def test_llvm_does_not_move_an_aligned_row_into_a_branch():
    """A ``.sync.aligned`` load whose result only a branch uses stays before it, where the whole warp executes it."""
    from numba import cuda

    from fa4_numba.kernels.common.device import U32
    from fa4_numba.ptx.numba_adapter import intrinsic_for

    load, store = intrinsic_for("tmem_load_32x32b_x1"), intrinsic_for("global_store_f32")

    def kernel(n, out):
        value = load(U32(n))
        if cuda.threadIdx.x < n:
            store(out, value[0])

    ptx = compile_body(kernel)
    assert ptx.index("tcgen05.ld.sync.aligned") < re.search(r"@!?%p\d+ bra", ptx).start()


def test_pure_rows_are_merged_and_votes_are_not():
    from fa4_numba.kernels.common.device import F32, U32
    from fa4_numba.ptx.numba_adapter import intrinsic_for

    vote, exp2, store = (
        intrinsic_for("vote_any"),
        intrinsic_for("exp2_approx"),
        intrinsic_for("global_store_f32"),
    )

    def kernel(n, out):
        store(out, exp2(F32(n)) + F32(vote(U32(n))))
        store(out, exp2(F32(n)) + F32(vote(U32(n))))

    ptx = compile_body(kernel)
    assert ptx.count("ex2.approx") == 1
    assert ptx.count("vote.sync") == 2


def test_side_effects_are_kept_in_order_and_not_merged():
    from fa4_numba.ptx.numba_adapter import intrinsic_for

    fence_before, fence_after = intrinsic_for("tmem_fence_before"), intrinsic_for("tmem_fence_after")

    def kernel(n, out):
        fence_before()
        fence_after()
        fence_before()

    found = re.findall(r"tcgen05\.fence::(\w+)", compile_body(kernel))
    assert found == ["before_thread_sync", "after_thread_sync", "before_thread_sync"]
