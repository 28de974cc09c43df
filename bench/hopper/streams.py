"""Kernels that one unit limits: memory, the copy engine, the tensor core, exponentials, multiply-adds, shared memory."""

from .case import Buffer, Case, Map
from .text import HEADER, STATS_BYTES_PER_WARP, STATS_END, STATS_REGISTERS, STATS_START, entry, wait

MODULE = "streams"
SMS = 132
REGISTERS = f"""
{STATS_REGISTERS}
.reg .b32 %r<64>, %lane, %thread, %cta, %base, %n, %ph, %i, %at, %row;
.reg .f32 %f<160>;
.reg .b64 %d<32>, %src, %dst;
.reg .pred %p, %q, %done, %one;
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
mov.u32 %cta, %ctaid.x;
mov.u32 %base, smem;
ld.param.u32 %n, [n];
"""


def _loop(body: str) -> str:
    return f"LOOP:\n{body}\nadd.s32 %n, %n, -1;\nsetp.ne.s32 %p, %n, 0;\n@%p bra LOOP;\n"


def copy(threads=512, vectors=4) -> str:
    """Each CTA copies one contiguous piece, ``vectors`` 16-byte loads in flight per thread."""
    step = threads * 16
    loads = "".join(
        f"ld.global.v4.b32 {{%r{4 * i}, %r{4 * i + 1}, %r{4 * i + 2}, %r{4 * i + 3}}}, [%src + {step * i}];\n"
        for i in range(vectors)
    )
    stores = "".join(
        f"st.global.v4.b32 [%dst + {step * i}], {{%r{4 * i}, %r{4 * i + 1}, %r{4 * i + 2}, %r{4 * i + 3}}};\n"
        for i in range(vectors)
    )
    move = f"add.s64 %src, %src, {step * vectors};\nadd.s64 %dst, %dst, {step * vectors};\n"
    body = f"""{REGISTERS}{STATS_START}
ld.param.u64 %src, [src];
ld.param.u64 %dst, [dst];
mul.wide.u32 %d0, %thread, 16;
mul.lo.u32 %r0, %n, {step * vectors};
mul.wide.u32 %d1, %r0, %cta;
add.s64 %d0, %d0, %d1;
add.s64 %src, %src, %d0;
add.s64 %dst, %dst, %d0;
{_loop(loads + stores + move)}{STATS_END}"""
    return entry("copy", "u64 src, u64 dst, u64 stats, u32 n", body, threads)


STAGES, ROWS = 8, 128  # of the copy by tensor copies: a box is 128 rows of 128 bytes


def tma_copy() -> str:
    """One thread per CTA: boxes go in and out through a ring of eight, four loads ahead of the stores."""
    box = ROWS * 128
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%src, {0, %r4}], [%r2];"
    issue = f"""
and.b32 %r1, %r0, {STAGES - 1};
shl.b32 %r2, %r1, 3;
add.s32 %r2, %r2, %base;
mad.lo.s32 %r3, %r1, {box}, %base;
add.s32 %r3, %r3, 1024;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {box};
mad.lo.s32 %r4, %r0, {ROWS}, %row;
{load}
"""
    init = "".join(f"mbarrier.init.shared::cta.b64 [%base+{8 * i}], 1;\n" for i in range(STAGES))
    first = "".join(f"mov.u32 %r0, {i};\n{issue}" for i in range(4))
    body = f"""{REGISTERS}{STATS_START}
mov.b64 %d0, src;
cvta.param.u64 %src, %d0;
mov.b64 %d0, dst;
cvta.param.u64 %dst, %d0;
setp.ne.u32 %p, %thread, 0;
@%p bra ALL_DONE;
{init}
fence.mbarrier_init.release.cluster;
mul.lo.u32 %row, %n, %cta;
mul.lo.u32 %row, %row, {ROWS};
mov.u32 %i, 0;
{first}
COPY:
add.s32 %r0, %i, 4;
setp.ge.s32 %q, %r0, %n;
@%q bra NO_LOAD;
cp.async.bulk.wait_group.read 3;
{issue}
NO_LOAD:
and.b32 %r1, %i, {STAGES - 1};
shl.b32 %r2, %r1, 3;
add.s32 %r2, %r2, %base;
mad.lo.s32 %r3, %r1, {box}, %base;
add.s32 %r3, %r3, 1024;
shr.u32 %r5, %i, {STAGES.bit_length() - 1};
and.b32 %r5, %r5, 1;
{wait("FULL", "%r2", "%r5")}
mad.lo.s32 %r4, %i, {ROWS}, %row;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%dst, {{0, %r4}}], [%r3];
cp.async.bulk.commit_group;
add.s32 %i, %i, 1;
setp.lt.s32 %p, %i, %n;
@%p bra COPY;
cp.async.bulk.wait_group 0;
ALL_DONE:
{STATS_END}"""
    return entry("tma_copy", "map src, map dst, u64 stats, u32 n", body, 32)


def wgmma(columns=256, batch=8) -> str:
    """Two warpgroups multiply the same operands in shared memory over and over."""
    acc = "{" + ", ".join(f"%f{i}" for i in range(columns // 2)) + "}"
    multiplies = "".join(
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {acc}, %d0, %d2, 1, 1, 1, 0, 0;\n"
        for _ in range(batch)
    )
    clear = "".join(f"mov.f32 %f{i}, 0f00000000;\n" for i in range(columns // 2))
    keep = "".join(f"add.f32 %f0, %f0, %f{i};\n" for i in range(1, columns // 2))
    # bf16 ones and a few bits of the thread's number: shared memory must hold numbers
    fill = """
mov.u32 %r0, %thread;
FILL:
shl.b32 %r1, %r0, 4;
add.s32 %r1, %r1, %base;
mul.lo.u32 %r2, %r0, 40503;
and.b32 %r2, %r2, 0x000f000f;
or.b32 %r2, %r2, 0x3f803f00;
st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2};
add.s32 %r0, %r0, 256;
setp.lt.u32 %p, %r0, 3072;
@%p bra FILL;
fence.proxy.async.shared::cta;
bar.sync 0;
"""
    body = f"""{REGISTERS}{STATS_START}{fill}{clear}
shr.u32 %r0, %thread, 7;
shl.b32 %r0, %r0, 13;
add.s32 %r0, %r0, %base;
add.s32 %r1, %base, 16384;
shr.u32 %r0, %r0, 4;
shr.u32 %r1, %r1, 4;
cvt.u64.u32 %d0, %r0;
cvt.u64.u32 %d2, %r1;
or.b64 %d0, %d0, 0x4000004000010000;
or.b64 %d2, %d2, 0x4000004000010000;
{_loop("wgmma.fence.sync.aligned;" + multiplies + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")}
{keep}
ld.param.u64 %dst, [out];
mul.wide.u32 %d1, %thread, 4;
add.s64 %dst, %dst, %d1;
st.global.f32 [%dst], %f0;
{STATS_END}"""
    return entry("wgmma", "u64 out, u64 stats, u32 n", body, 256)


def _arithmetic(name: str, body: str, threads: int) -> str:
    """Sixteen independent values per thread, kept in registers."""
    start = "".join(f"cvt.rn.f32.u32 %f{i}, %thread;\nmul.f32 %f{i}, %f{i}, 0f3A000000;\n" for i in range(16))
    keep = "".join(f"add.f32 %f0, %f0, %f{i};\n" for i in range(1, 16))
    text = f"""{REGISTERS}{STATS_START}{start}
cvt.rn.f32.u32 %f20, %n;
rcp.approx.ftz.f32 %f21, %f20;
{_loop(body)}{keep}
ld.param.u64 %dst, [out];
mul.wide.u32 %d1, %thread, 4;
add.s64 %dst, %dst, %d1;
st.global.f32 [%dst], %f0;
{STATS_END}"""
    return entry(name, "u64 out, u64 stats, u32 n", text, threads)


def exponentials(threads=512) -> str:
    return _arithmetic(
        "exponentials", "".join(f"ex2.approx.ftz.f32 %f{i}, %f{i};\n" for i in range(16)) * 2, threads
    )


def multiply_adds(threads=512) -> str:
    return _arithmetic(
        "multiply_adds", "".join(f"fma.rn.f32 %f{i}, %f{i}, %f21, %f21;\n" for i in range(16)) * 4, threads
    )


def softmax_mix(threads=256) -> str:
    """What a softmax does per element: maximum, fma, exponential, sum, conversion to bf16."""
    text = ""
    for i in range(0, 16, 2):
        a, b = f"%f{i}", f"%f{i + 1}"
        text += f"max.f32 %f30, %f30, {a};\nmax.f32 %f31, %f31, {b};\n"
        for x in (a, b):
            text += f"fma.rn.ftz.f32 {x}, {x}, %f21, %f21;\nex2.approx.ftz.f32 {x}, {x};\n"
        text += f"add.f32 %f32, %f32, {a};\nadd.f32 %f33, %f33, {b};\n"
        text += f"cvt.rn.bf16x2.f32 %r10, {a}, {b};\nxor.b32 %r11, %r11, %r10;\n"
    text += "fma.rn.f32 %f21, %f30, 0f00000000, %f21;\n"
    return (
        _arithmetic("softmax_mix", text, threads)
        .replace(
            "\nLOOP:",
            "\nmov.f32 %f30, 0f00000000; mov.f32 %f31, %f30; mov.f32 %f32, %f30; mov.f32 %f33, %f30; mov.u32 %r11, 0;\nLOOP:",
        )
        .replace(
            "ld.param.u64 %dst",
            "mov.b32 %f34, %r11; add.f32 %f0, %f0, %f31; add.f32 %f0, %f0, %f32; add.f32 %f0, %f0, %f33; add.f32 %f0, %f0, %f34;\n"
            "ld.param.u64 %dst",
        )
    )


def shared_memory(threads=512) -> str:
    """16-byte loads of shared memory without bank conflicts, and a few stores."""
    items = [f"{{%r{4 * i}, %r{4 * i + 1}, %r{4 * i + 2}, %r{4 * i + 3}}}" for i in range(8)]
    loads = "".join(f"ld.shared.v4.b32 {items[i]}, [%at + {8192 * (i % 4)}];\n" for i in range(4))
    stores = "".join(f"st.shared.v4.b32 [%r40 + {8192 * (i % 4)}], {items[(i + 1) % 4]};\n" for i in range(4))
    body = f"""{REGISTERS}{STATS_START}
shl.b32 %at, %thread, 4;
add.s32 %at, %at, %base;
mov.u32 %r0, %thread; mov.u32 %r1, %thread; mov.u32 %r2, %thread; mov.u32 %r3, %thread;
shr.u32 %r40, %n, 20;  // 0, which the assembler cannot know: loads are not forwarded from stores
add.s32 %r40, %r40, %at;
{"".join(f"st.shared.v4.b32 [%at + {8192 * i}], {items[0]};" for i in range(4))}
bar.sync 0;
{_loop((loads + stores) * 4)}
ld.shared.v4.b32 {items[0]}, [%at];
xor.b32 %r0, %r0, %r1; xor.b32 %r2, %r2, %r3; xor.b32 %r0, %r0, %r2;
ld.param.u64 %dst, [out];
mul.wide.u32 %d1, %thread, 4;
add.s64 %dst, %dst, %d1;
st.global.b32 [%dst], %r0;
{STATS_END}"""
    return entry("shared_memory", "u64 out, u64 stats, u32 n", body, threads)


def module_text() -> str:
    kernels = copy(), tma_copy(), wgmma(), exponentials(), multiply_adds(), softmax_mix(), shared_memory()
    return HEADER + "\n".join(kernels)


def cases() -> list[Case]:
    def stats(ctas, threads):
        return Buffer("stats", ctas * threads // 32 * STATS_BYTES_PER_WARP)

    out = []
    n, ctas = 32, 4 * SMS
    size = ctas * n * 512 * 16 * 4
    buffers = [Buffer("src", size, "bf16"), Buffer("dst", size), stats(ctas, 512)]
    out.append(
        Case(
            "copy",
            MODULE,
            "copy",
            (ctas, 1, 1),
            512,
            0,
            ["src", "dst", "stats", ["u32", n]],
            buffers,
            stats="stats",
            bound="HBM",
            work={"bytes": 2 * size},
        )
    )
    n = 256
    rows = SMS * n * ROWS
    buffers = [Buffer("src_data", rows * 128, "bf16"), Buffer("dst_data", rows * 128), stats(SMS, 32)]
    maps = [Map(name, f"{name}_data", (64, rows), (64, ROWS)) for name in ("src", "dst")]
    out.append(
        Case(
            "tma_copy",
            MODULE,
            "tma_copy",
            (SMS, 1, 1),
            32,
            1024 + STAGES * ROWS * 128,
            ["src", "dst", "stats", ["u32", n]],
            buffers,
            maps,
            "stats",
            "HBM",
            {"bytes": 2 * rows * 128},
        )
    )
    for name, threads, n, per_iteration, bound, smem in (
        ("wgmma", 256, 200, {"flop": 2 * 8 * 64 * 256 * 16 * 2}, "tensor core", 49152),
        ("exponentials", 512, 400, {"ex2": 512 * 32}, "MUFU", 0),
        ("multiply_adds", 512, 600, {"fma": 512 * 64}, "FMA", 0),
        ("softmax_mix", 256, 1000, {"elements": 256 * 16}, "MUFU and issue", 0),
        ("shared_memory", 512, 100, {"bytes": 512 * 32 * 16}, "shared memory", 32768),
    ):
        out.append(
            Case(
                name,
                MODULE,
                name,
                (SMS, 1, 1),
                threads,
                smem,
                ["out", "stats", ["u32", n]],
                [Buffer("out", 4096), stats(SMS, threads)],
                stats="stats",
                bound=bound,
                work={key: SMS * n * value for key, value in per_iteration.items()},
            )
        )
    return out
