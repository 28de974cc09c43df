"""Small kernels that measure one instruction or one hand-over, in cycles by the SM's clock.

Each runs its body n times between two clock reads; two launches with different n give the cycles of one body. A *chain*
feeds each result to the next instruction: latency. The others issue independent instructions: throughput.
"""

from dataclasses import dataclass

from .case import Buffer, Case, Map
from .text import HEADER, entry, wait

MODULE = "probes"
ITERATIONS = (64, 192)
UNROLL = 32


@dataclass(frozen=True)
class Probe:
    """``body`` is run once per iteration and holds ``count`` of what is measured; ``before`` sets it up."""

    name: str
    body: str
    count: int
    warps: int = 1
    before: str = ""
    smem: int = 0
    data: int = 1 << 16
    maps: bool = False
    sinks: str = ""


def _lane_wise() -> list[Probe]:
    """Arithmetic: latency with one warp, throughput with 4 (one per scheduler) and 16."""
    f32 = {
        "fma.f32": "fma.rn.f32 {x}, {x}, %fa, %fb;",
        "mul.f32": "mul.rn.f32 {x}, {x}, %fa;",
        "add.f32": "add.rn.f32 {x}, {x}, %fb;",
        "max.f32": "max.f32 {x}, {x}, %fv;",
        "ex2.f32": "ex2.approx.ftz.f32 {x}, {x};",
        "rcp.f32": "rcp.approx.ftz.f32 {x}, {x};",
        "lg2.f32": "lg2.approx.ftz.f32 {x}, {x};",
        "tanh.f32": "tanh.approx.f32 {x}, {x};",
        "selp.f32": "selp.f32 {x}, {x}, %fv, %pv; ",
    }
    b32 = {
        "add.s32": "add.s32 {x}, {x}, %ra;",
        "mad.s32": "mad.lo.s32 {x}, {x}, %ra, %rb;",
        "lop3.b32": "lop3.b32 {x}, {x}, %ra, %rb, 0x96;",
        "shl.b32": "shf.l.wrap.b32 {x}, {x}, %ra, %rb;",
        "min.s32": "min.s32 {x}, {x}, %rv;",
        "prmt.b32": "prmt.b32 {x}, {x}, %ra, %rb;",
        "popc.b32": "popc.b32 {x}, {x};",
        "fma.bf16x2": "fma.rn.bf16x2 {x}, {x}, %ra, %rb;",
        "max.bf16x2": "max.bf16x2 {x}, {x}, %rv;",
        "cvt.bf16x2": "mov.b32 %fc, {x}; cvt.rn.bf16x2.f32 {x}, %fa, %fc;",
        "cvt.s32.f32": "mov.b32 %fc, {x}; cvt.rzi.s32.f32 {x}, %fc;",
        "cvt.f32.s32": "cvt.rn.f32.s32 %fc, {x}; mov.b32 {x}, %fc;",
        "setp.selp": "setp.lt.s32 %pc, {x}, %ra; selp.b32 {x}, %rb, %rv, %pc;",
        "shfl": "shfl.sync.bfly.b32 {x}, {x}, 1, 31, -1;",
        "vote": "setp.lt.s32 %pc, {x}, %ra; vote.sync.ballot.b32 {x}, %pc, -1;",
        "redux": "redux.sync.add.s32 {x}, {x}, -1;",
    }
    out = []
    for kind, table in (("f", f32), ("r", b32)):
        for name, text in table.items():
            chain = "\n".join(text.format(x=f"%{kind}0") for _ in range(UNROLL))
            wide = "\n".join(text.format(x=f"%{kind}{i % 8}") for i in range(UNROLL))
            out.append(Probe(f"chain {name}", chain, UNROLL))
            out += [Probe(f"wide {name} x{warps}", wide, UNROLL, warps) for warps in (4, 16)]
    mix = "\n".join(
        f"fma.rn.f32 %f{i}, %f{i}, %fa, %fb; lop3.b32 %r{i}, %r{i}, %ra, %rb, 0x96;" for i in [*range(8)] * 2
    )
    out.append(Probe("wide fma+lop3 x16", mix, UNROLL, 16))
    mix = "\n".join(
        f"fma.rn.f32 %f{i}, %f{i}, %fa, %fb; ex2.approx.ftz.f32 %f{8 + i}, %f{8 + i};"
        for i in [*range(8)] * 2
    )
    out.append(Probe("wide fma+ex2 x16", mix, UNROLL, 16))
    return out


def _shared() -> list[Probe]:
    """Shared memory; lane i at its own 16 bytes."""
    lanes = (
        "shl.b32 %at, %lane, 4; add.s32 %at, %at, %base; mov.u32 %r0, 0; "
        "st.shared.v4.b32 [%at], {%r0, %r0, %r0, %r0}; bar.sync 0;"
    )
    warps = "mov.u32 %at, %tid.x; shl.b32 %at, %at, 4; add.s32 %at, %at, %base;"
    out = [
        Probe(
            "chain ld.shared",
            "\n".join("ld.shared.b32 %r0, [%r0];" for _ in range(UNROLL)),
            UNROLL,
            before="mov.u32 %r0, %base; st.shared.b32 [%base], %base; bar.sync 0;",
            smem=1024,
        )
    ]
    forms = {"b32": 1, "v2.b32": 2, "v4.b32": 4}
    for form, n in forms.items():
        items = [f"%r{i}" for i in range(n)]
        registers = "{" + ", ".join(items) + "}" if n > 1 else items[0]
        use = {1: "xor.b32 %rs, %rs, %r0;", 2: "lop3.b32 %rs, %rs, %r0, %r1, 0x96;"}
        use[4] = use[2] + " lop3.b32 %rs, %rs, %r2, %r3, 0x96;"
        load = "\n".join(f"ld.shared.{form} {registers}, [%at + {512 * i}]; {use[n]}" for i in range(UNROLL))
        store = "\n".join(f"st.shared.{form} [%at + {512 * i}], {registers};" for i in range(UNROLL))
        for name, text in (("ld", load), ("st", store)):
            body = text + "\nxor.b32 %at, %at, 16384;"
            out += [
                Probe(f"{name}.shared.{form} x{count}", body, UNROLL, count, before=warps, smem=65536)
                for count in (1, 4, 16)
            ]
    four = "{%r0, %r1, %r2, %r3}"
    body = "\n".join(
        f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {four}, [%at]; add.s32 %at, %at, %r0;" for _ in range(8)
    )
    out += [Probe(f"ldmatrix.x4 chain x{n}", body, 8, n, before=lanes, smem=16384) for n in (1, 16)]
    body = "\n".join(
        f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%at + {512 * (i % 4)}], {four};" for i in range(8)
    )
    out += [Probe(f"stmatrix.x4 x{n}", body, 8, n, before=lanes, smem=16384) for n in (1, 4, 16)]
    stride = "shl.b32 %at, %lane, 7; add.s32 %at, %at, %base;"
    body = "\n".join(f"ld.shared.b32 %r0, [%at + {4096 * i}]; xor.b32 %rs, %rs, %r0;" for i in range(8))
    body += "\nxor.b32 %at, %at, 16384;"
    out.append(Probe("ld.shared.b32 32 ways", body, 8, 1, before=stride, smem=65536))
    return out


def _global() -> list[Probe]:
    """Chains of dependent loads over zeroed memory: the value is 0, the address moves by a fixed stride."""
    out = []
    for name, op, stride, data in (
        ("L1", "ld.global.ca.b32", 0, 1 << 16),
        ("L2", "ld.global.cg.b32", 128, 1 << 22),
        ("HBM", "ld.global.cg.b32", 1 << 17, 1 << 30),
    ):
        body = "\n".join(
            f"{op} %r0, [%d0]; cvt.u64.u32 %d1, %r0; add.s64 %d1, %d1, {stride}; add.s64 %d0, %d0, %d1;"
            for _ in range(UNROLL)
        )
        out.append(Probe(f"chain ld.global {name}", body, UNROLL, before="mov.u64 %d0, %data;", data=data))
    return out


def _barriers() -> list[Probe]:
    one = (
        "mbarrier.init.shared::cta.b64 [%base], 1; mbarrier.init.shared::cta.b64 [%base + 8], 1; bar.sync 0;"
    )
    first = "setp.eq.u32 %pl, %lane, 0; mov.u32 %ph, 0; setp.ge.u32 %pw, %tx, 32;"
    arrive = "@%pl mbarrier.arrive.shared::cta.b64 _, [{0}];\n"
    alone = arrive.format("%base") + wait("W0", "%base", "%ph") + "xor.b32 %ph, %ph, 1;\n"
    ping = (
        "@%pw bra SECOND;\n"
        + arrive.format("%base")
        + wait("W1", "%base+8", "%ph")
        + "bra JOIN;\nSECOND:\n"
        + wait("W2", "%base", "%ph")
        + arrive.format("%base+8")
        + "JOIN:\nxor.b32 %ph, %ph, 1;\n"
    )
    named = (
        "@%pw bra SECOND_;\nbar.arrive 1, 64;\nbar.sync 2, 64;\nbra JOIN_;\nSECOND_:\nbar.sync 1, 64;\n"
        "bar.arrive 2, 64;\nJOIN_:\n"
    )
    out = [
        Probe("mbarrier alone", alone, 1, before=one + first, smem=1024),
        Probe("mbarrier ping-pong", ping, 1, 2, before=one + first, smem=1024),
        Probe("bar ping-pong", named, 1, 2, before=first),
        Probe("fence.proxy.async", "fence.proxy.async.shared::cta;", 1),
        Probe("elect", "elect.sync %r0|%pc, -1; @%pc add.s32 %r1, %r1, 1;", 1),
    ]
    out += [Probe(f"bar.sync x{n}", "bar.sync 0;", 1, n) for n in (1, 4, 8, 16)]
    return out


def _tma() -> list[Probe]:
    """Tensor copies by one thread: one at a time (latency), and eight in flight (throughput)."""
    one = "mbarrier.init.shared::cta.b64 [%base], 1; fence.mbarrier_init.release.cluster; mov.u32 %ph, 0; mov.u32 %row, 0;"
    one += " setp.ne.u32 %pm, %lane, 0; @%pm bra END;"
    out = []

    def load(name, at, row):
        return (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            f"[{at}], [{name}, {{0, {row}}}], [%base];\n"
        )

    for name, rows in (("small", 8), ("large", 128)):
        size = rows * 128
        for count in (1, 2, 4, 8):
            body = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%base], {size * count};\n"
            for i in range(count):
                body += load(name, f"%base+{1024 + size * i}", "%row") + f"add.s32 %row, %row, {rows};\n"
            body += wait("WT", "%base", "%ph") + "xor.b32 %ph, %ph, 1; and.b32 %row, %row, 4095;\n"
            smem = 1024 + size * count
            out.append(Probe(f"TMA load {size} B x{count}", body, count, before=one, smem=smem, maps=True))
        for count in (1, 4):
            store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
            body = "".join(
                f"{store}[{name}, {{0, %row}}], [%base+{1024 + size * i}];\nadd.s32 %row, %row, {rows};\n"
                for i in range(count)
            )
            body += "cp.async.bulk.commit_group;\n"
            for form in (".read", ""):
                text = body + f"cp.async.bulk.wait_group{form} 0;\nand.b32 %row, %row, 4095;\n"
                out.append(
                    Probe(
                        f"TMA store {size} B x{count} wait{form}",
                        text,
                        count,
                        before=one,
                        smem=1024 + size * count,
                        maps=True,
                    )
                )
    return out


def _wgmma() -> list[Probe]:
    """Matrix multiplies of one or two warpgroups: batches of k instructions, each batch waited for."""
    before = (
        "shr.u32 %at, %base, 4; cvt.u64.u32 %da, %at; mov.u64 %d1, 0x4000004000010000; or.b64 %da, %da, %d1;"
        " mov.u64 %db, %da; "
    )
    out = []
    for n, batches, groups in (
        (8, (1, 8), (1,)),
        (64, (1, 8), (1, 2)),
        (128, (1, 2, 8, 16), (1, 2)),
        (256, (1, 8), (1, 2)),
    ):
        acc = "{" + ", ".join(f"%f{i}" for i in range(n // 2)) + "}"
        for form, a in (("SS", "%da"), ("RS", "{%r0, %r1, %r2, %r3}")):
            tail = "1, 1, 1, 0, 0" if form == "SS" else "1, 1, 1, 0"
            for batch in batches if form == "SS" else (8,):
                body = "wgmma.fence.sync.aligned;\n"
                for _ in range(batch):
                    body += (
                        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {acc}, {a}, %db, {tail};\n"
                    )
                body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
                for group in groups:
                    sinks = ",".join(f"%f{i}" for i in range(n // 2))
                    out.append(
                        Probe(
                            f"wgmma {form} n{n} batch {batch} groups {group}",
                            body,
                            batch,
                            4 * group,
                            before=before,
                            smem=65536,
                            sinks=sinks,
                        )
                    )
    return out


def probes() -> list[Probe]:
    return [*_lane_wise(), *_shared(), *_global(), *_barriers(), *_tma(), *_wgmma()]


def entry_name(probe: Probe) -> str:
    return "".join(c if c.isalnum() else "_" for c in probe.name)


def _kernel(probe: Probe) -> str:
    setup = "".join(f"cvt.rn.f32.u32 %f{i}, %lane;\n" for i in range(128))
    setup += "".join(f"add.s32 %r{i}, %lane, {i};\n" for i in range(8))
    sinks = probe.sinks.split(",") if probe.sinks else [f"%f{i}" for i in range(16)]
    sink = "".join(f"add.f32 %fs, %fs, {f};\n" for f in sinks)
    sink += "".join(f"xor.b32 %rs, %rs, %r{i};\n" for i in range(8))
    maps = "".join(
        f"mov.b64 %m_{n}, {n};\ncvta.param.u64 {n}_, %m_{n};\n" if probe.maps else ""
        for n in ("small", "large")
    )
    body = probe.body.replace("[small,", "[small_,").replace("[large,", "[large_,")
    params = "u64 out, u64 data, u32 n" + (", map small, map large" if probe.maps else "")
    text = f"""
.reg .b32 %r<16>, %ra, %rb, %rv, %lane, %at, %base, %n, %ph, %rs, %row, %tx, %t0;
.reg .f32 %f<128>, %fa, %fb, %fv, %fc, %fs;
.reg .b64 %d<8>, %da, %db, %data, %out, %c0, %c1, %m_small, %m_large, small_, large_;
.reg .pred %p0, %pl, %pc, %pv, %pw, %done, %pm;
ld.param.u64 %out, [out];
ld.param.u64 %data, [data];
ld.param.u32 %n, [n];
mov.u32 %lane, %laneid;
mov.u32 %tx, %tid.x;
mov.u32 %base, smem;
{maps}{setup}
add.s32 %ra, %n, 3; add.s32 %rb, %n, 5; shl.b32 %rv, %n, 3;
cvt.rn.f32.s32 %fa, %ra; cvt.rn.f32.s32 %fb, %rb; cvt.rn.f32.s32 %fv, %rv;
setp.lt.s32 %pv, %n, 17; mov.u32 %ph, 0; mov.u32 %row, 0; mov.f32 %fs, 0f00000000; mov.u32 %rs, 0; mov.u32 %at, 0;
{probe.before}
mov.u64 %c0, %clock64;
LOOP:
{body}
add.s32 %n, %n, -1;
setp.ne.s32 %p0, %n, 0;
@%p0 bra LOOP;
mov.u64 %c1, %clock64;
{sink}
mov.b32 %t0, %fs; xor.b32 %rs, %rs, %t0; xor.b32 %rs, %rs, %ph; xor.b32 %rs, %rs, %at;
sub.s64 %c1, %c1, %c0;
cvt.u64.u32 %d2, %tx;
add.s64 %d2, %out, %d2;
setp.ne.u32 %pm, %lane, 0;
@%pm bra END;
st.global.u64 [%d2], %c1;
st.global.u32 [%d2 + 8], %rs;
END:
"""
    return entry(entry_name(probe), params, text, 32 * probe.warps)


def module_text() -> str:
    return HEADER + "\n".join(_kernel(probe) for probe in probes())


def cases() -> list[Case]:
    """Return a launch per probe; ``n`` is the iteration count, set by whoever runs it (argument "n")."""
    out = []
    rows = 1 << 13
    for probe in probes():
        buffers = [Buffer("out", 1 << 14), Buffer("data", probe.data)]
        maps, args = [], ["out", "data", "n"]
        if probe.maps:
            buffers.append(Buffer("tensor", rows * 128))
            maps = [
                Map("small", "tensor", (64, rows), (64, 8)),
                Map("large", "tensor", (64, rows), (64, 128)),
            ]
            args += ["small", "large"]
        out.append(
            Case(
                probe.name,
                MODULE,
                entry_name(probe),
                (1, 1, 1),
                32 * probe.warps,
                probe.smem,
                args,
                buffers,
                maps,
                work={"count": probe.count, "iterations": list(ITERATIONS)},
            )
        )
    return out
