"""Attention forward, head dimension 128, bf16, no mask: 128 query rows per CTA, 128 keys per step, two stages."""

from .case import Buffer, Case, Map
from .text import STATS_BYTES_PER_WARP, STATS_END, STATS_START, entry, wait

ROWS, KEYS, DIM, STAGES = 128, 128, 128, 2
Q_BYTES, K_BYTES = ROWS * DIM * 2, KEYS * DIM * 2
Q_FULL, K_FULL, K_EMPTY, V_FULL, V_EMPTY = 0, 8, 24, 40, 56  # offsets of the barriers
Q, K, V = 1024, 1024 + Q_BYTES, 1024 + Q_BYTES + STAGES * K_BYTES
SMEM = V + STAGES * K_BYTES


def _stage(iteration: str, barrier: int) -> str:
    """Set %stage, %phase and %bar of a ring's barrier for an iteration."""
    return (
        f"and.b32 %stage, {iteration}, 1;\nshr.u32 %phase, {iteration}, 1;\nand.b32 %phase, %phase, 1;\n"
        f"shl.b32 %bar, %stage, 3;\nadd.s32 %bar, %bar, %base;\nadd.s32 %bar, %bar, {barrier};\n"
    )


def _load(map_, to: int, rows: int, bar: str) -> str:
    from .tiles import LOAD

    half = rows * 128
    return "".join(
        LOAD.format(n=3, to=f"%at+{to + half * i}", map=map_, at=f"{64 * i}, %row, %y", bar=bar)
        for i in range(2)
    )


def _producer() -> str:
    text = f"""
mov.u32 %at, %base;
shl.b32 %row, %x, 7;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%base+{Q_FULL}], {Q_BYTES};
{_load("%map0", Q, ROWS, f"%base+{Q_FULL}")}
mov.u32 %i, 0;
LOAD_NEXT:
shl.b32 %row, %i, 7;
"""
    for name, map_, to, full, empty in (
        ("K", "%map1", K, K_FULL, K_EMPTY),
        ("V", "%map2", V, V_FULL, V_EMPTY),
    ):
        text += f"""{_stage("%i", empty)}
xor.b32 %phase, %phase, 1;
{wait(f"EMPTY_{name}", "%bar", "%phase")}
add.s32 %bar, %bar, {full - empty};
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {K_BYTES};
mad.lo.s32 %at, %stage, {K_BYTES}, %base;
{_load(map_, to, KEYS, "%bar")}
"""
    return text + "add.s32 %i, %i, 1;\nsetp.lt.s32 %q, %i, %n;\n@%q bra LOAD_NEXT;\nbra ALL_DONE;\n"


def _scores() -> str:
    """S = Q Kᵀ of iteration %i: eight multiplies of 16 columns, issued and committed."""
    from .tiles import _descriptor, _registers

    text = f"""{_stage("%i", K_FULL)}
shl.b32 %at, %group, 13;
add.s32 %at, %at, %base;
add.s32 %at, %at, {Q};
{_descriptor("a", "%at")}
mad.lo.s32 %at, %stage, {K_BYTES}, %base;
add.s32 %at, %at, {K};
{_descriptor("b", "%at")}
WAITLABEL
wgmma.fence.sync.aligned;
"""
    for i in range(8):
        a, b = (i % 4) * 2 + (i // 4) * ROWS * 8, (i % 4) * 2 + (i // 4) * KEYS * 8
        text += f"add.s64 %d1, %a, {a};\nadd.s64 %d2, %b, {b};\n"
        text += (
            f"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {_registers('s', 64)}, %d1, %d2, "
            f"{'%first' if i == 0 else 1}, 1, 1, 0, 0;\n"
        )
    return text + "wgmma.commit_group.sync.aligned;\n"


def _values(label: str) -> str:
    """O += P V of the iteration before %i, issued and committed."""
    from .tiles import _descriptor, _registers

    text = f"""add.s32 %r5, %i, -1;
{_stage("%r5", V_FULL)}
mad.lo.s32 %at, %stage, {K_BYTES}, %base;
add.s32 %at, %at, {V};
{_descriptor("b", "%at", KEYS * 128 // 16)}
{wait(label, "%bar", "%phase")}
wgmma.fence.sync.aligned;
"""
    for i in range(8):
        text += f"add.s64 %d2, %b, {128 * i};\n"
        text += (
            f"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {_registers('o', 64)}, "
            f"{_registers('p', 4, 4 * i)}, %d2, 1, 1, 1, 1;\n"
        )
    return text + "wgmma.commit_group.sync.aligned;\n"


def _softmax() -> str:
    """New maxima, the factor for O, exponentials in place, row sums. Thread holds two rows, of 32 scores each."""
    text = ""
    for row in (0, 1):
        own = [i for i in range(64) if (i // 2) % 2 == row]
        for chain in range(4):
            text += f"mov.f32 %t{chain}, %s{own[chain]};\n"
        text += "".join(f"max.f32 %t{k % 4}, %t{k % 4}, %s{i};\n" for k, i in enumerate(own) if k >= 4)
        text += "max.f32 %t0, %t0, %t1;\nmax.f32 %t2, %t2, %t3;\nmax.f32 %t0, %t0, %t2;\n"
        text += f"max.f32 %t0, %t0, %m{row};\n"
        for lanes in (1, 2):
            text += f"shfl.sync.bfly.b32 %t1, %t0, {lanes}, 31, -1;\nmax.f32 %t0, %t0, %t1;\n"
        text += f"sub.f32 %t1, %m{row}, %t0;\nmul.f32 %t1, %t1, %scale;\nex2.approx.ftz.f32 %c{row}, %t1;\n"
        text += f"mov.f32 %m{row}, %t0;\nmul.f32 %t4, %t0, %scale;\nneg.f32 %t4, %t4;\n"
        for i in own:
            text += f"fma.rn.ftz.f32 %s{i}, %s{i}, %scale, %t4;\nex2.approx.ftz.f32 %s{i}, %s{i};\n"
        for chain in range(4):
            text += f"mov.f32 %t{chain}, %s{own[chain]};\n"
        text += "".join(f"add.f32 %t{k % 4}, %t{k % 4}, %s{i};\n" for k, i in enumerate(own) if k >= 4)
        text += "add.f32 %t0, %t0, %t1;\nadd.f32 %t2, %t2, %t3;\nadd.f32 %t0, %t0, %t2;\n"
        text += f"fma.rn.f32 %l{row}, %l{row}, %c{row}, %t0;\n"
    return text


def _pack() -> str:
    return "".join(f"cvt.rn.bf16x2.f32 %p{i}, %s{2 * i + 1}, %s{2 * i};\n" for i in range(32))


def _scale_output(factors: str) -> str:
    return "".join(f"mul.f32 %o{i}, %o{i}, %{factors}{(i // 2) % 2};\n" for i in range(64))


def _release(barrier: int, iteration: str) -> str:
    return f"{_stage(iteration, barrier)}@%first_thread mbarrier.arrive.shared::cta.b64 _, [%bar];\n"


def _consumer() -> str:
    clear = "".join(f"mov.f32 %o{i}, 0f00000000;\n" for i in range(64))
    scores = _scores()
    text = f"""{clear}
mov.f32 %m0, 0fF149F2CA; mov.f32 %m1, %m0; mov.f32 %l0, 0f00000000; mov.f32 %l1, %l0;
ld.param.f32 %scale, [scale];
add.s32 %group, %group, -1;
and.b32 %r6, %thread, 127;
setp.eq.u32 %first_thread, %r6, 0;
setp.ne.u32 %first, %thread, %thread;
mov.u32 %i, 0;
{wait("Q_FULL", f"%base+{Q_FULL}", "0")}
{scores.replace("WAITLABEL", wait("K_FIRST", "%bar", "%phase"))}
wgmma.wait_group.sync.aligned 0;
{_release(K_EMPTY, "%i")}{_softmax()}{_pack()}
mov.u32 %i, 1;
NEXT:
{scores.replace("WAITLABEL", wait("K_FULL", "%bar", "%phase"))}{_values("V_FULL")}
wgmma.wait_group.sync.aligned 1;
{_release(K_EMPTY, "%i")}{_softmax()}
wgmma.wait_group.sync.aligned 0;
add.s32 %r5, %i, -1;
{_release(V_EMPTY, "%r5")}{_scale_output("c")}{_pack()}
add.s32 %i, %i, 1;
setp.lt.s32 %q, %i, %n;
@%q bra NEXT;
{_values("V_LAST")}
wgmma.wait_group.sync.aligned 0;
"""
    for row in (0, 1):
        for lanes in (1, 2):
            text += f"shfl.sync.bfly.b32 %t0, %l{row}, {lanes}, 31, -1;\nadd.f32 %l{row}, %l{row}, %t0;\n"
        text += f"rcp.approx.ftz.f32 %c{row}, %l{row};\n"
    return text + _scale_output("c") + _store()


def _store() -> str:
    """bf16 pairs, straight from the registers."""
    text = """
shr.u32 %r7, %r6, 5;
shl.b32 %r7, %r7, 4;
shl.b32 %r8, %group, 6;
add.s32 %r7, %r7, %r8;
shr.u32 %r8, %lane, 2;
add.s32 %r7, %r7, %r8;
shl.b32 %r8, %x, 7;
add.s32 %r7, %r7, %r8;
shl.b32 %r8, %n, 7;
mad.lo.u32 %r7, %y, %r8, %r7;
shl.b32 %r7, %r7, 8;
and.b32 %r8, %lane, 3;
shl.b32 %r8, %r8, 2;
add.s32 %r7, %r7, %r8;
cvt.u64.u32 %d3, %r7;
ld.param.u64 %out, [out];
add.s64 %out, %out, %d3;
"""
    for i in range(0, 64, 4):
        text += f"cvt.rn.bf16x2.f32 %r0, %o{i + 1}, %o{i};\nst.global.b32 [%out+{4 * i}], %r0;\n"
        text += (
            f"cvt.rn.bf16x2.f32 %r0, %o{i + 3}, %o{i + 2};\nst.global.b32 [%out+{4 * i + 8 * 256}], %r0;\n"
        )
    return text


def attention() -> str:
    from .tiles import REGISTERS, _init, _maps

    body = f"""{REGISTERS}{STATS_START}
.reg .pred %first_thread;
{_maps("q", "k", "v")}
{_init("%base", [1, 1, 1, 2, 2, 1, 1, 2, 2])}
setp.ne.u32 %q, %group, 0;
@%q bra CONSUME;
setmaxnreg.dec.sync.aligned.u32 24;
setp.ne.u32 %q, %thread, 0;
@%q bra ALL_DONE;
{_producer()}
CONSUME:
setmaxnreg.inc.sync.aligned.u32 240;
{_consumer()}
ALL_DONE:
{STATS_END}"""
    return entry("attention", "map q, map k, map v, u64 out, u64 stats, f32 scale, u32 n", body, 384)


def attention_case(tokens=2048, heads=64) -> list[Case]:
    size, threads = heads * tokens * DIM * 2, 384
    ctas = tokens // ROWS * heads
    buffers = [Buffer(name, size, "bf16") for name in "QKV"] + [Buffer("out", size)]
    buffers.append(Buffer("stats", ctas * threads // 32 * STATS_BYTES_PER_WARP))
    maps = [
        Map(name, name.upper(), (DIM, tokens, heads), (64, rows, 1))
        for name, rows in (("q", ROWS), ("k", KEYS), ("v", KEYS))
    ]
    args = ["q", "k", "v", "out", "stats", ["f32", 1.4426950408889634 / DIM**0.5], ["u32", tokens // KEYS]]
    work = {"flop": 4 * heads * tokens**2 * DIM}
    grid = (tokens // ROWS, heads, 1)
    return [
        Case(
            "attention",
            "tiles",
            "attention",
            grid,
            threads,
            SMEM,
            args,
            buffers,
            maps,
            "stats",
            "tensor core and MUFU",
            work,
        )
    ]
