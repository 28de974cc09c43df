"""Thread-block clusters: ranks, distributed shared memory, remote mbarriers, multicast, copies between CTAs."""

from itertools import product

import numpy as np

from fa4_numba.layout import Swizzle

from .case import Case
from .tma import BARRIER, SETUP, WAIT, dump, spec
from .values import random_bits

_MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
_RANK = """.reg .b32 %rank, %size, %peer, %r<8>, %s, %far; .reg .b64 %p; .reg .pred %lead, %ok;
mov.u32 %rank, %cluster_ctarank; mov.u32 %size, %cluster_nctarank; setp.eq.u32 %lead, %thread, 0;
add.u32 %peer, %rank, 1; rem.u32 %peer, %peer, %size; mad.wide.u32 %p, %gid, 16, %out;"""


def ranks(size: int):
    """Special registers, mapa and getctarank."""
    body = f"""{_RANK} mov.u32 %r0, %clusterid.x; mov.u32 %r1, %nclusterid.x; mov.u32 %r2, %cluster_ctaid.x; mov.u32 %r3, %cluster_nctaid.x;
st.global.v4.b32 [%p], {{%r0, %r1, %r2, %r3}};
mapa.shared::cluster.u32 %r0, %smem, %peer; getctarank.shared::cluster.u32 %r1, %r0; and.b32 %r2, %r0, 0x00ffffff; shr.u32 %r3, %r0, 24;
add.u32 %r2, %r2, %rank; st.global.v4.b32 [%p+{16 * 32 * 2 * size}], {{%r0, %r1, %r2, %r3}};
.reg .b64 %g, %h; .reg .pred %a, %b, %c; cvt.u64.u32 %g, %smem; cvta.shared.u64 %g, %g; mapa.u64 %h, %g, %peer;
isspacep.shared::cta %a, %h; isspacep.shared::cluster %b, %h; isspacep.global %c, %h; selp.u32 %r0, 1, 0, %a; selp.u32 %r1, 1, 0, %b;
selp.u32 %r2, 1, 0, %c; getctarank.u64 %r3, %h; st.global.v4.b32 [%p+{16 * 32 * 4 * size}], {{%r0, %r1, %r2, %r3}};"""
    yield Case(
        f"ranks of {size}",
        body,
        np.zeros(16, np.uint8),
        16 * 32 * 6 * size,
        grid=2 * size,
        cluster=size,
        shared_bytes=64,
    )


def remote_memory(size: int):
    """Loads, stores and atomics to another CTA's shared memory; st.async and red.async."""
    body = f"""{_RANK} mad.lo.u32 %s, %thread, 16, %smem; mad.lo.u32 %r0, %gid, 3, 1; st.shared.b32 [%s], %r0; {_MEET}
mapa.shared::cluster.u32 %far, %s, %peer; ld.shared::cluster.b32 %r1, [%far]; mul.lo.u32 %r2, %r1, 5;
st.shared::cluster.v2.b32 [%far+8], {{%r2, %r0}}; atom.relaxed.cluster.shared::cluster.add.u32 %r3, [%far], 7; {_MEET}
ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%s]; mov.b32 %r5, %r3; st.global.v4.b32 [%p], {{%r4, %r5, %r6, %r7}};"""
    yield Case(
        f"remote ld, st, atom among {size}",
        body,
        np.zeros(16, np.uint8),
        512 * size,
        grid=size,
        cluster=size,
        shared_bytes=512,
    )
    generic = f"""{_RANK} mad.lo.u32 %s, %thread, 16, %smem; st.shared.b32 [%s], %gid; {_MEET} .reg .b64 %g; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;
mapa.u64 %g, %g, %peer; ld.b32 %r0, [%g]; add.u32 %r1, %r0, 100; st.b32 [%g+4], %r1; {_MEET} ld.shared.v2.b32 {{%r2, %r3}}, [%s];
st.global.v4.b32 [%p], {{%r0, %r1, %r2, %r3}};"""
    yield Case(
        f"remote generic ld and st among {size}",
        generic,
        np.zeros(16, np.uint8),
        512 * size,
        grid=size,
        cluster=size,
        shared_bytes=512,
    )
    setup = f"""{_RANK} mad.lo.u32 %s, %thread, 16, %smem; mov.b32 %r0, 40; st.shared.v4.b32 [%s], {{%r0, %r0, %r0, %r0}};
add.u32 %r5, %smem, 512; @%lead mbarrier.init.shared::cta.b64 [%r5], 1; @%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], BYTES;
fence.mbarrier_init.release.cluster; {_MEET}
mapa.shared::cluster.u32 %far, %s, %peer; mapa.shared::cluster.u32 %r6, %r5, %peer; mul.lo.u32 %r1, %gid, 9;"""
    finish = f"""WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %ok, [%r5], 0; @!%ok bra WAIT;
ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%s]; st.global.v4.b32 [%p], {{%r0, %r1, %r2, %r3}}; {_MEET}"""
    forms = {
        "st.async b32": (128, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%far], %r1, [%r6];"),
        "st.async v2": (256, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%far], {%r1, %gid}, [%r6];"),
        "st.async v4": (512, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%far], {%r1, %gid, %r1, %r0}, [%r6];"),
    }  # fmt: skip
    for op, kind in [
        *product(("add", "min", "max"), ("u32", "s32")),
        ("inc", "u32"),
        ("dec", "u32"),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b32"),
    ]:
        text = f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{kind} [%far], %r1, [%r6];"
        forms[f"red.async {op}.{kind}"] = (128, text)
    for name, (count, form) in forms.items():
        text = f"{setup.replace('BYTES', str(count))} {form} {finish}"
        yield Case(
            f"{name} among {size}",
            text,
            np.zeros(16, np.uint8),
            512 * size,
            grid=size,
            cluster=size,
            shared_bytes=576,
        )


def remote_barriers(size: int):
    """Every CTA arrives on every other's mbarrier, three phases."""
    loop = " ".join(
        f"mapa.shared::cluster.u32 %far, %smem, {r}; @%lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];"
        for r in range(size)
    )
    body = f"""{_RANK} @%lead mbarrier.init.shared::cta.b64 [%smem], {size}; fence.mbarrier_init.release.cluster; {_MEET}
mov.u32 %r0, 0;
LOOP: and.b32 %r1, %r0, 1; {loop}
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %ok, [%smem], %r1; @!%ok bra WAIT;
add.u32 %r0, %r0, 1; setp.lt.u32 %ok, %r0, 3; @%ok bra LOOP; {_MEET} st.global.v4.b32 [%p], {{%r0, %r1, %rank, %peer}};"""
    yield Case(
        f"remote arrivals among {size}",
        body,
        np.zeros(16, np.uint8),
        512 * size,
        grid=size,
        cluster=size,
        shared_bytes=64,
    )
    split = f"""{_RANK} mov.u32 %r0, 0;
LOOP: barrier.cluster.arrive.relaxed.aligned; add.u32 %r0, %r0, 1; barrier.cluster.wait.aligned; setp.lt.u32 %ok, %r0, 4; @%ok bra LOOP;
st.global.v4.b32 [%p], {{%r0, %rank, %size, %peer}};"""
    yield Case(
        f"cluster barrier among {size}",
        split,
        np.zeros(16, np.uint8),
        512 * size,
        grid=size,
        cluster=size,
        shared_bytes=64,
    )


def copies(size: int):
    """Multicast loads, and bulk copies and reductions from shared memory to another CTA's."""
    setup = SETUP.replace("%r<4>", "%r<4>, %rank, %base").replace(
        "bar.sync 0;", f"mov.u32 %rank, %cluster_ctarank; {_MEET}"
    )
    for swizzle in (Swizzle.NONE, Swizzle.B128):
        tensor = spec("uint16", (72, 40), (swizzle.span_bytes // 2, 16), swizzle)
        data, box = random_bits(72 * 2 * 40 // 8, 3).view(np.uint8), tensor.box_bytes
        mask = (1 << size) - 1
        out = dump(box * size).replace(
            "add.s64 %p, %out, %p;", f"mad.wide.u32 %p, %rank, {box * size}, %p; add.s64 %p, %out, %p;"
        )
        body = f"""{setup} mad.lo.u32 %s, %rank, {box}, %smem; mad.lo.u32 %base, %rank, 3, 1;
@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {box * size};
.reg .b16 %mask; mov.b16 %mask, {mask}; {_MEET}
@%lead cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%m, {{8, %base}}], [%bar], %mask;
{WAIT} {out} {_MEET}"""
        yield Case(
            f"multicast {swizzle.value} to {size}",
            body,
            data,
            box * size * size,
            grid=size,
            cluster=size,
            shared_bytes=BARRIER + 64,
            maps=(("in", tensor),),
        )
    plain = setup.replace(" mov.b64 %m, map0; cvta.param.u64 %m, %m;", "")
    put = """mad.lo.u32 %i, %thread, 4, %smem; mad.lo.u32 %base, %gid, 77, 5; st.shared.b32 [%i], %base; st.shared.b32 [%i+128], %rank;
fence.proxy.async.shared::cta; bar.sync 0;"""
    far = f"""add.u32 %base, %rank, 1; rem.u32 %base, %base, {size}; add.u32 %s, %smem, 128; mapa.shared::cluster.u32 %s, %s, %base;
mapa.shared::cluster.u32 %i, %bar, %base;"""
    out = dump(256).replace("add.s64 %p, %out, %p;", "mad.wide.u32 %p, %rank, 256, %p; add.s64 %p, %out, %p;")
    forms = {"copy": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"}
    for op, kind in (
        ("add", "u32"),
        ("add", "s32"),
        ("min", "s32"),
        ("max", "u32"),
        ("inc", "u32"),
        ("xor", "b32"),
        ("and", "b32"),
        ("add", "u64"),
    ):
        forms[f"reduce {op}.{kind}"] = (
            f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{kind}"
        )
    for name, form in forms.items():
        body = f"""{plain} {put} @%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 128; {_MEET} {far}
@%lead {form} [%s], [%smem], 128, [%i];
{WAIT} {_MEET} {out}"""
        yield Case(
            f"bulk {name} among {size}",
            body,
            np.zeros(16, np.uint8),
            256 * size,
            grid=size,
            cluster=size,
            shared_bytes=BARRIER + 64,
        )


def cases():
    """Return every case of this family."""
    families = (ranks, remote_memory, remote_barriers, copies)
    return [case for size in (2, 4) for family in families for case in family(size)]
