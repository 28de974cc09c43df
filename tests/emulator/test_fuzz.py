"""Damaged PTX: whatever is done to a program's text, only ``Fa4Error`` comes out of parsing, loading and running it."""

import contextlib
import re

import numpy as np
import pytest

from fa4_numba import FA4Config
from fa4_numba.emulator import GlobalMemory, Machine, parse
from fa4_numba.errors import Fa4Error
from fa4_numba.toolchain import compile_kernel

TOKEN = re.compile(r"[%$@.\w:]+|\s+|.", re.S)


def damage(tokens: list[str], random: np.random.Generator) -> str:
    """Delete, double, swap or replace tokens, or cut the text off."""
    tokens = list(tokens)
    for _ in range(random.integers(1, 4)):
        i, j = (int(n) for n in random.integers(0, max(len(tokens), 1), 2))
        kind = random.integers(0, 6)
        if kind == 0 and len(tokens) > 1:
            del tokens[i]
        elif kind == 1:
            tokens.insert(i, tokens[i])
        elif kind == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif kind == 3:
            tokens[i] = tokens[j]
        elif kind == 4:
            tokens[i] = str(
                random.choice(
                    ["0", "-1", "99999999999", "0f7F800000", "{", "}", "[", "]", ";", "_", "!", "%p1"]
                )
            )
        elif kind == 5:
            tokens = tokens[: i + 1]
    return "".join(tokens)


@pytest.fixture(scope="module")
def kernel_text() -> str:
    """The PTX of our own kernel: what a compiler really writes."""
    return compile_kernel(FA4Config(num_q_heads=1, group=1, qk_depth=64, ov_depth=64, bn_cap=128)).ptx


SMALL = """.version 9.0
.target sm_100a
.address_size 64
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.func (.param .b32 o) twice(.param .b32 i) { .reg .b32 %r<3>; ld.param.b32 %r1, [i]; add.u32 %r2, %r1, %r1;
st.param.b32 [o], %r2; ret; }
.visible .entry k(.param .u64 out) .maxntid 64 {
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>; .reg .f32 %f<4>;
.shared .align 16 .b8 room[512]; .local .align 4 .b8 own[16];
mov.u32 %r1, %tid.x; mov.u32 %r2, room; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3; st.shared.u32 [%r3], %r1;
bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [%r2+256], 64; bar.sync 0;
mbarrier.arrive.shared::cta.b64 _, [%r2+256];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+256], 0; @!%p2 bra W;
rem.u32 %r4, %r1, 3; T: .branchtargets A, B, C; brx.idx %r4, T;
A: add.u32 %r1, %r1, 1; bra E; B: { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call.uni (y), twice, (x);
ld.param.b32 %r1, [y]; } C: cvt.rn.f32.u32 %f1, %r1; fma.rn.ftz.f32 %f2, %f1, 0f40000000, %f1; mov.b32 %r1, %f2;
E: shfl.sync.bfly.b32 %r5|%p3, %r1, 1, 31, -1; mov.b64 %rd1, {%r1, %r5}; mov.u64 %rd2, table; ld.global.u32 %r6, [%rd2+4];
ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r3, 2; and.b64 %rd4, %rd4, 511; add.s64 %rd3, %rd3, %rd4; st.global.b64 [%rd3], %rd1;
st.local.u32 [own+4], %r6; ld.local.u32 %r7, [own+4]; ret; }
"""


def run_damaged(text: str, threads: int) -> None:
    """Load and run an entry for a while, with an address or zeros for each parameter."""
    module, memory = parse(text), GlobalMemory()
    entry = next(iter(module.entries.values()))
    out = memory.bind(np.zeros(256, np.uint64), "out", writable=True)
    args = [np.uint64(out) if size == 8 else bytes(size) for _, size, _ in entry.params]
    machine = Machine(
        module,
        (1, 1, 1),
        (threads, 1, 1),
        args,
        memory,
        65536,
        entry=entry.name,
        max_steps=3000,
        engine="interpreter",
    )
    machine.run()


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_program_raises_only_our_errors(seed):
    random, tokens = np.random.default_rng(seed), TOKEN.findall(SMALL)
    for _ in range(60):
        with contextlib.suppress(Fa4Error):
            run_damaged(damage(tokens, random), 64)


def test_the_program_itself_runs():
    run_damaged(SMALL, 64)


def test_a_damaged_kernel_raises_only_our_errors(kernel_text):
    random, tokens = np.random.default_rng(0), TOKEN.findall(kernel_text)
    for _ in range(40):
        with contextlib.suppress(Fa4Error):
            run_damaged(damage(tokens, random), 32)
