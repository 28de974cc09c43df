"""The PTX parser: scopes, tables, functions, variables, operands; and that damage is always named."""

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine, parse
from fa4_numba.errors import Hazard, MemoryFault, PtxSyntaxError, UnknownInstructionError


def run(body: str, *, before: str = "", dtype=np.uint32, schedule="eager") -> np.ndarray:
    """Run a kernel of 32 lanes that leaves a result in ``%r0`` (or ``%rd0`` for 64 bits) and return all lanes'."""
    bits = 8 * np.dtype(dtype).itemsize
    name = "%rd0" if bits == 64 else "%r0"
    text = f"""{HEADER}{before}
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>; .reg .b16 %h<4>;
mov.u32 %r1, %tid.x; mov.b32 %r0, 0; mov.b64 %rd0, 0;
{body}
ld.param.u64 %rd18, [out]; mul.wide.u32 %rd19, %r1, {bits // 8}; add.s64 %rd18, %rd18, %rd19;
st.global.b{bits} [%rd18], {name};
ret;
}}"""
    out, memory = np.zeros(32, dtype), GlobalMemory()
    Machine(
        text, (1, 1, 1), (32, 1, 1), (memory.bind(out, "out", writable=True),), memory, schedule=schedule
    ).run()
    return out


LANES = np.arange(32, dtype=np.uint32)


def test_scopes_hide_registers_and_labels():
    out = run("""
    { .reg .b32 t; mov.b32 t, 5; bra L; mov.b32 t, 9; L: add.u32 %r0, %r0, t; }
    { .reg .b32 t; mov.b32 t, 7; bra L; mov.b32 t, 9; L: add.u32 %r0, %r0, t;
      { .reg .b32 t; mov.b32 t, 100; add.u32 %r0, %r0, t; } add.u32 %r0, %r0, t; }""")
    assert (out == 5 + 7 + 100 + 7).all()


@pytest.mark.parametrize("schedule", ["eager", "random:3"])
def test_indexed_branch_sends_each_lane_to_its_target(schedule):
    body = """
    rem.u32 %r2, %r1, 3;
    T: .branchtargets
        A,
        B, C;
    brx.idx %r2, T;
    A: mov.b32 %r0, 10; bra.uni E;
    B: mov.b32 %r0, 20; bra.uni E;
    C: mov.b32 %r0, 30;
    E:"""
    assert (run(body, schedule=schedule) == 10 + LANES % 3 * 10).all()


def test_guarded_indexed_branch():
    out = run("""
    setp.lt.u32 %p1, %r1, 16; mov.b32 %r2, 1;
    T: .branchtargets A, B;
    @%p1 brx.idx %r2, T;
    mov.b32 %r0, 1; bra E;
    A: mov.b32 %r0, 2; bra E;
    B: mov.b32 %r0, 3;
    E:""")
    assert (out == np.where(LANES < 16, 3, 1)).all()


SQUARE = """
.func (.param .b32 result) square(.param .b32 a) {
.reg .b32 %r<4>;
ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, %r1;
st.param.b32 [result+0], %r2;
ret;
}
"""


def test_calls_run_the_function_with_its_own_names():
    out = run(
        """
    mov.b32 %r3, 4;
    { .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r1;
      call.uni (retval0), square, (param0); ld.param.b32 %r4, [retval0+0]; }
    { .param .b32 param0; .param .b32 retval0; st.param.b32 [param0+0], %r3;
      call.uni (retval0), square, (param0); ld.param.b32 %r5, [retval0]; }
    add.u32 %r0, %r4, %r5;""",
        before=SQUARE,
    )
    assert (out == LANES**2 + 16).all()


def test_guarded_call_with_register_parameters_and_early_return():
    before = """
    .func (.reg .b32 r) at_most_nine(.reg .b32 a) {
    .reg .pred p; mov.b32 r, a; setp.le.u32 p, a, 9; @p ret; mov.b32 r, 9; ret; }"""
    out = run(
        "mov.b32 %r0, 77; setp.ne.u32 %p1, %r1, 3; @%p1 call (%r0), at_most_nine, (%r1);", before=before
    )
    assert out[3] == 0xFFFFFFFF or out[3] == 77  # a result of a call that did not happen has no value
    rest = LANES != 3
    assert (out[rest] == np.minimum(LANES, 9)[rest]).all()


def test_functions_call_functions_but_not_themselves():
    before = (
        SQUARE
        + """.func (.param .b32 o) fourth(.param .b32 i) { .reg .b32 %r<3>; .param .b32 t; ld.param.b32 %r1, [i];
    st.param.b32 [t], %r1; call (t), square, (t); call (o), square, (t); ret; }"""
    )
    out = run(
        "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), fourth, (x); ld.param.b32 %r0, [y]; }",
        before=before,
    )
    assert (out == LANES**4).all()
    with pytest.raises(PtxSyntaxError, match="recursion"):
        run("call loop;", before=".func loop() { call loop; ret; }")


def test_call_of_a_declared_function_is_a_hazard_only_when_it_happens():
    before = ".extern .func __assertfail(.param .b64 a);"
    body = """{{ .param .b64 m; st.param.b64 [m], %rd0; setp.gt.u32 %p1, %r1, {limit}; @%p1 call __assertfail, (m); }}"""
    assert (run(body.format(limit=31), before=before) == 0).all()
    with pytest.raises(Hazard, match="__assertfail"):
        run(body.format(limit=30), before=before)


def test_local_variables_belong_to_each_lane():
    out = run("""
    .local .align 8 .b8 depot[64];
    mov.b64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 4; and.b64 %rd3, %rd3, 28;
    add.s64 %rd4, %rd2, %rd3; st.u32 [%rd4], %r1; ld.local.u32 %r2, [depot]; ld.u32 %r0, [%rd4];""")
    assert (out == LANES).all()
    with pytest.raises(MemoryFault, match="local"):
        run(".local .align 4 .b8 x[4]; ld.local.u32 %r0, [x+4];")


def test_module_variables_have_their_initial_values():
    before = ".global .align 4 .u32 table[4] = {3, 0x10, 010, 1};\n.const .align 8 .f64 half = 0d3FE0000000000000;\n"
    out = run(
        "and.b32 %r2, %r1, 3; mul.wide.u32 %rd1, %r2, 4; mov.u64 %rd2, table; add.s64 %rd2, %rd2, %rd1; ld.global.u32 %r0, [%rd2];",
        before=before,
    )
    assert (out == np.array([3, 16, 8, 1])[LANES % 4]).all()
    assert (run("ld.const.b64 %rd0, [half];", before=before, dtype=np.float64) == 0.5).all()


def test_operands_in_all_spellings():
    assert (run("mov.b64 %rd0, 0d3FF8000000000000;", dtype=np.float64) == 1.5).all()
    assert (run("mov.b32 %r0, 0f3FC00000;").view(np.float32) == 1.5).all()
    assert (run("mov.b32 %r0, -1;") == 0xFFFFFFFF).all()
    assert (run("mov.b32 %r0, 4294967295U;") == 0xFFFFFFFF).all()
    negated = "setp.lt.u32 %p1, %r1, 4; setp.ge.and.u32 %p2, %r1, 0, !%p1; selp.b32 %r0, 1, 0, %p2;"
    assert (run(negated) == (LANES >= 4)).all()
    addresses = """.shared .align 16 .b8 s[256]; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
    st.shared.u32 [ %r3 + 0 ], {%r1}; add.u32 %r3, %r3, 16; ld.shared.u32 {%r0}, [%r3+-0x10];"""
    assert (run(addresses) == LANES).all()


MALFORMED = {
    "no PTX at all": ("hello", "no .entry"),
    "not text": (b"x", "must be text"),
    "cut off in the body": (HEADER + ".entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0;", "cut off"),
    "cut off in a statement": (HEADER + ".entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0", "not closed"),
    "cut off in the parameters": (HEADER + ".entry k(.param .u64 a", "not closed"),
    "no body": (HEADER + ".entry k()", "no body"),
    "label missing": (HEADER + ".entry k() { bra L; }", "label 'L' is not defined"),
    "label twice": (HEADER + ".entry k() { L: L: ret; }", "defined twice"),
    "register missing": (HEADER + ".entry k() { mov.b32 %r1, 0; }", "'%r1' is neither"),
    "predicate missing": (HEADER + ".entry k() { @%p1 ret; }", "predicate '%p1'"),
    "odd parameter": (HEADER + ".entry k(.param .frob a) { ret; }", "cannot read the parameter"),
    "parameters of one name": (HEADER + ".entry k(.param .u64 a, .param .u64 a) { ret; }", "one name"),
    "a register too many": (HEADER + ".entry k() { .reg .b32 %r<99999999>; ret; }", "no kernel has so many"),
    "a parameter too large": (HEADER + ".entry k(.param .align 4 .b8 a[40000]) { ret; }", "at most 32764"),
    "an unknown directive": (HEADER + ".entry k() { .frobnicate 1; ret; }", "'.frobnicate' is not supported"),
    "a call of nothing": (HEADER + ".entry k() { call f; }", "calls nothing that the module declares"),
    "a table that is not there": (HEADER + ".entry k() { .reg .b32 %r<2>; brx.idx %r1, T; }", "table"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_text_is_named(name):
    text, message = MALFORMED[name]
    with pytest.raises(PtxSyntaxError, match=message):
        parse(text)


def test_unknown_opcode_names_line_and_what_is_near():
    text = HEADER + ".entry k() {\n.reg .b32 %r<3>;\nadd.s23 %r1, %r1, %r2;\nfrobnicate.b32 %r1, %r2;\nret; }"
    with pytest.raises(UnknownInstructionError, match=r"line \d+: '(add\.s23|frobnicate\.b32)'"):
        Machine(text, (1, 1, 1), (32, 1, 1))
