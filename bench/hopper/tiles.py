"""A matrix product and an attention, as they are written for Hopper: one loading warp, two multiplying warpgroups.

Shared memory: boxes of 64 bf16 columns with a 128-byte swizzle. Barriers: one per stage that says "full" and one that
says "empty".
"""

from .case import Buffer, Case, Map
from .text import HEADER, STATS_BYTES_PER_WARP, STATS_END, STATS_REGISTERS, STATS_START, entry, wait

MODULE = "tiles"
SW128, SBO_1024 = 1 << 62, 64 << 32
LOAD = "cp.async.bulk.tensor.{n}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{to}], [{map}, {{{at}}}], [{bar}];\n"
REGISTERS = f"""
{STATS_REGISTERS}
.reg .b32 %r<64>, %p<32>, %thread, %group, %base, %n, %i, %stage, %phase, %bar, %at, %row, %x, %y, %lane;
.reg .f32 %s<128>, %o<64>, %m<8>, %l<8>, %c<8>, %t<16>, %scale;
.reg .b64 %d<16>, %a, %b, %out, %map<4>;
.reg .pred %q, %done, %first;
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
mov.u32 %base, smem;
shr.u32 %group, %thread, 7;
mov.u32 %x, %ctaid.x;
mov.u32 %y, %ctaid.y;
ld.param.u32 %n, [n];
"""


def _registers(prefix: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def _maps(*names: str) -> str:
    return "".join(f"mov.b64 %d0, {name};\ncvta.param.u64 %map{i}, %d0;\n" for i, name in enumerate(names))


def _init(bars: str, counts: list[int]) -> str:
    """Thread 0 makes the barriers at ``bars``, 8 bytes apart."""
    text = "".join(f"mbarrier.init.shared::cta.b64 [{bars}+{8 * i}], {n};\n" for i, n in enumerate(counts))
    return f"setp.ne.u32 %q, %thread, 0;\n@%q bra READY;\n{text}fence.mbarrier_init.release.cluster;\nREADY:\nbar.sync 0;\n"


def _descriptor(name: str, address: str, lbo: int = 1) -> str:
    """Set %name to the matrix descriptor of operand rows of 128 bytes that start at ``address``."""
    constant = SW128 | SBO_1024 | lbo << 16
    return f"shr.u32 %r0, {address}, 4;\ncvt.u64.u32 %{name}, %r0;\nor.b64 %{name}, %{name}, {constant:#x};\n"


def _ring(stages: int) -> str:
    """Set %stage and the parity %phase of iteration %i."""
    return (
        f"rem.u32 %stage, %i, {stages};\ndiv.u32 %phase, %i, {stages};\nand.b32 %phase, %phase, 1;\n"
        if stages & (stages - 1)
        else f"and.b32 %stage, %i, {stages - 1};\nshr.u32 %phase, %i, {stages.bit_length() - 1};\nand.b32 %phase, %phase, 1;\n"
    )


def matmul(stages=4, n=256, k=64) -> str:
    """C (M, N) = A (M, K) · Bᵀ (N, K): 128 × 256 tiles, f32 accumulation, bf16 result stored by the threads."""
    a_bytes, b_bytes = 128 * 128, n * 128
    stage_bytes = a_bytes + b_bytes
    first = 1024
    acc = "{" + ", ".join(f"%s{i}" for i in range(n // 2)) + "}"
    multiplies = "".join(
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {acc}, %d{1 + i}, %d{5 + i}, 1, 1, 1, 0, 0;\n"
        for i in range(4)
    )
    advance = "".join(f"add.s64 %d{1 + i}, %a, {2 * i};\nadd.s64 %d{5 + i}, %b, {2 * i};\n" for i in range(4))
    store = ""
    for i in range(0, n // 2, 4):
        store += f"cvt.rn.bf16x2.f32 %r0, %s{i + 1}, %s{i};\nst.global.b32 [%out + {4 * i}], %r0;\n"
        store += f"cvt.rn.bf16x2.f32 %r0, %s{i + 3}, %s{i + 2};\nst.global.b32 [%d9 + {4 * i}], %r0;\n"
    body = f"""{REGISTERS}{STATS_START}{_maps("a", "b")}
{_init("%base", [1] * stages + [2] * stages)}
mov.u32 %i, 0;
setp.ne.u32 %q, %group, 0;
@%q bra CONSUME;
setmaxnreg.dec.sync.aligned.u32 40;
setp.ne.u32 %q, %thread, 0;
@%q bra ALL_DONE;
shl.b32 %x, %x, 7;
mul.lo.u32 %y, %y, {n};
LOAD_NEXT:
{_ring(stages)}
xor.b32 %phase, %phase, 1;
shl.b32 %bar, %stage, 3;
add.s32 %bar, %bar, %base;
{wait("EMPTY", f"%bar+{8 * stages}", "%phase")}
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {stage_bytes};
mad.lo.s32 %at, %stage, {stage_bytes}, %base;
add.s32 %at, %at, {first};
mul.lo.s32 %row, %i, {k};
{LOAD.format(n=2, to="%at", map="%map0", at="%row, %x", bar="%bar")}
add.s32 %at, %at, {a_bytes};
{LOAD.format(n=2, to="%at", map="%map1", at="%row, %y", bar="%bar")}
add.s32 %i, %i, 1;
setp.lt.s32 %q, %i, %n;
@%q bra LOAD_NEXT;
bra ALL_DONE;
CONSUME:
setmaxnreg.inc.sync.aligned.u32 232;
{"".join(f"mov.f32 %s{i}, 0f00000000;{chr(10)}" for i in range(n // 2))}
add.s32 %group, %group, -1;
shl.b32 %row, %group, 13;
and.b32 %r1, %thread, 127;
setp.eq.u32 %first, %r1, 0;
MULTIPLY_NEXT:
{_ring(stages)}
shl.b32 %bar, %stage, 3;
add.s32 %bar, %bar, %base;
mad.lo.s32 %at, %stage, {stage_bytes}, %base;
add.s32 %at, %at, {first};
add.s32 %r2, %at, {a_bytes};
add.s32 %at, %at, %row;
{_descriptor("a", "%at")}{_descriptor("b", "%r2")}{advance}
{wait("FULL", "%bar", "%phase")}
wgmma.fence.sync.aligned;
{multiplies}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
@%first mbarrier.arrive.shared::cta.b64 _, [%bar+{8 * stages}];
add.s32 %i, %i, 1;
setp.lt.s32 %q, %i, %n;
@%q bra MULTIPLY_NEXT;
ld.param.u64 %out, [c];
ld.param.u32 %r9, [columns];
shr.u32 %r2, %r1, 5;
shl.b32 %r2, %r2, 4;
shl.b32 %r3, %group, 6;
add.s32 %r2, %r2, %r3;
shr.u32 %r3, %lane, 2;
add.s32 %r2, %r2, %r3;
shl.b32 %x, %x, 7;
add.s32 %r2, %r2, %x;
mul.lo.u32 %y, %y, {n};
and.b32 %r3, %lane, 3;
shl.b32 %r3, %r3, 1;
add.s32 %y, %y, %r3;
mad.lo.u32 %r4, %r2, %r9, %y;
mul.wide.u32 %d8, %r4, 2;
add.s64 %out, %out, %d8;
mul.wide.u32 %d9, %r9, 16;
add.s64 %d9, %d9, %out;
{store}
ALL_DONE:
{STATS_END}"""
    return entry("matmul", "map a, map b, u64 c, u64 stats, u32 columns, u32 n", body, 384)


def module_text() -> str:
    from .attention import attention

    return HEADER + matmul() + attention()


def cases() -> list[Case]:
    from .attention import attention_case

    size, threads = 4096, 384
    ctas = (size // 128) * (size // 256)
    buffers = [Buffer(name, size * size * 2, "bf16") for name in "AB"] + [Buffer("c", size * size * 2)]
    buffers.append(Buffer("stats", ctas * threads // 32 * STATS_BYTES_PER_WARP))
    maps = [Map("a", "A", (size, size), (64, 128)), Map("b", "B", (size, size), (64, 256))]
    return [
        Case(
            "matmul",
            MODULE,
            "matmul",
            (size // 128, size // 256, 1),
            threads,
            1024 + 4 * (128 + 256) * 128,
            ["a", "b", "c", "stats", ["u32", size], ["u32", size // 64]],
            buffers,
            maps,
            "stats",
            "tensor core",
            {"flop": 2 * size**3},
        ),
        *attention_case(),
    ]
