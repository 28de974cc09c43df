"""Clusters of CTAs: who is who, each other's shared memory and barriers, the cluster barrier, and what goes wrong."""

import itertools

import numpy as np
import pytest
from programs import HEADER

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.errors import Deadlock, Hazard, LaunchError, MemoryFault

SCHEDULES = ["eager", "late", "random:1", "random:2"]
SHARED = ".extern .shared .align 1024 .b8 smem[];"


def kernel(body, directives=""):
    return f"""{HEADER} {SHARED}
.visible .entry k(.param .u64 out) {directives} {{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<8>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, smem; mov.u32 %r2, %tid.x; mov.u32 %r3, %cluster_ctarank;
{body}
ret;
}}"""


def launch(body, words=64, grid=(2, 1, 1), block=(32, 1, 1), directives="", cluster=(2, 1, 1), **options):
    """Run the kernel with its ``out`` array of 32-bit words; return the array."""
    memory, out = GlobalMemory(), np.full(words, -1, np.int32)
    args = (memory.bind(out, "out", writable=True),)
    Machine(kernel(body, directives), grid, block, args, memory, 4096, cluster, **options).run()
    return out


def test_who_is_who():
    """Every CTA of a (4, 6, 2) grid of (2, 3, 1) clusters writes its cluster registers."""
    names = [f"%{base}.{axis}" for base in ("clusterid", "nclusterid", "cluster_ctaid") for axis in "xyz"]
    names += ["%cluster_nctaid.y", "%cluster_ctarank", "%cluster_nctarank"]
    body = """mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
    mad.lo.s32 %r5, %r6, 6, %r5; mad.lo.s32 %r4, %r5, 4, %r4; mul.wide.u32 %rd2, %r4, 48; add.s64 %rd1, %rd1, %rd2;"""
    body += "".join(
        f"mov.u32 %r7, {name}; st.global.b32 [%rd1+{4 * i}], %r7;" for i, name in enumerate(names)
    )
    out = launch(body, 12 * 48, (4, 6, 2), cluster=(2, 3, 1)).reshape(2, 6, 4, 12)
    for z, y, x in itertools.product(range(2), range(6), range(4)):
        want = [x // 2, y // 3, z, 2, 2, 2, x % 2, y % 3, 0, 3, y % 3 * 2 + x % 2, 6]
        assert out[z, y, x].tolist() == want


EXCHANGE = """
xor.b32 %r4, %r3, 1; mapa.shared::cluster.u32 %r5, %r1, %r4;
shl.b32 %r6, %r2, 2; add.s32 %r7, %r1, %r6; add.s32 %r8, %r5, %r6;
mad.lo.s32 %r9, %r3, 100, %r2;
st.shared::cta.b32 [%r7], %r9;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
ld.shared::cluster.b32 %r10, [%r8]; st.shared::cluster.b32 [%r8+128], %r9;
barrier.cluster.arrive; barrier.cluster.wait;
ld.shared.b32 %r11, [%r7+128];
mad.lo.s32 %r12, %r3, 64, %r2; mul.wide.u32 %rd2, %r12, 4; add.s64 %rd2, %rd1, %rd2;
st.global.b32 [%rd2], %r10; st.global.b32 [%rd2+128], %r11;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ctas_read_and_write_each_others_shared_memory(schedule):
    out = launch(EXCHANGE, 128, schedule=schedule).reshape(2, 2, 32)
    lanes = np.arange(32)
    for rank, k in itertools.product(range(2), range(2)):
        assert (out[rank, k] == lanes + 100 * (1 - rank)).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_generic_addresses_reach_the_cluster(schedule):
    """cvta, mapa and getctarank on 64-bit generic addresses; loads and stores without a state space."""
    body = EXCHANGE.replace(
        "mapa.shared::cluster.u32 %r5, %r1, %r4;",
        """cvt.u64.u32 %rd3, %r1; cvta.shared::cta.u64 %rd3, %rd3; mapa.u64 %rd4, %rd3, %r4;
        getctarank.u64 %r20, %rd4; setp.ne.u32 %p1, %r20, %r4; @%p1 trap_;
        isspacep.shared::cluster %p2, %rd4; isspacep.shared %p3, %rd4; isspacep.shared::cta %p4, %rd3;
        selp.b32 %r21, 1, 0, %p2; selp.b32 %r22, 2, 0, %p3; selp.b32 %r23, 4, 0, %p4;
        add.s32 %r21, %r21, %r22; add.s32 %r21, %r21, %r23;
        cvta.to.shared::cluster.u64 %rd5, %rd4; cvt.u32.u64 %r5, %rd5; mul.wide.u32 %rd6, %r2, 4; add.s64 %rd4, %rd4, %rd6;""",
    ).replace("@%p1 trap_;", "@%p1 bra END;")
    body = body.replace("ld.shared::cluster.b32 %r10, [%r8]", "ld.b32 %r10, [%rd4]") + (
        "isspacep.global %p2, %rd1; selp.b32 %r22, 8, 0, %p2; add.s32 %r21, %r21, %r22;"
        "st.global.b32 [%rd2+128], %r21; END:"
    )
    out = launch(body, 128, schedule=schedule).reshape(2, 2, 32)
    for rank in range(2):
        assert (out[rank, 0] == np.arange(32) + 100 * (1 - rank)).all()
        assert (out[rank, 1] == 1 + 4 + 8).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_mbarriers_of_another_cta(schedule):
    """Three CTAs arrive at the barrier of rank 0 (its address: the rank's bits cleared), which then reads their words."""
    body = """
    setp.ne.s32 %p1, %r2, 0; setp.ne.s32 %p2, %r3, 0; or.pred %p3, %p1, %p2;
    @!%p3 mbarrier.init.shared::cta.b64 [%r1], 4;
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    and.b32 %r4, %r1, 4278190079; and.b32 %r4, %r4, 4244635647;
    shl.b32 %r5, %r3, 2; add.s32 %r5, %r4, %r5; add.s32 %r6, %r3, 10;
    @!%p1 st.shared::cluster.b32 [%r5+16], %r6;
    @!%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
    @%p2 bra END;
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r1], 0; @!%p4 bra W;
    @%p1 bra END;
    ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r1+16]; st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13};
    END: barrier.cluster.arrive; barrier.cluster.wait;"""
    out = launch(body, 4, (4, 1, 1), cluster=(4, 1, 1), schedule=schedule)
    assert out.tolist() == [10, 11, 12, 13]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_arrivals_then_two_waits(schedule):
    """A thread may be one cluster barrier ahead: each wait ends with as many arrivals of everybody."""
    body = """
    setp.eq.s32 %p1, %r3, 1; @%p1 bra OTHER;
    barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.wait;
    ld.shared.b32 %r4, [%r1]; st.global.b32 [%rd1], %r4; bra END;
    OTHER: barrier.cluster.arrive; barrier.cluster.wait;
    and.b32 %r5, %r1, 4278190079; st.shared::cluster.b32 [%r5], 77;
    barrier.cluster.arrive; barrier.cluster.wait;
    END:"""
    assert launch(body, 1, schedule=schedule)[0] == 77


def test_threads_that_have_exited_are_not_waited_for():
    body = """setp.eq.s32 %p1, %r3, 1; @%p1 bra END; setp.gt.u32 %p2, %r2, 40; @%p2 exit;
    barrier.cluster.arrive; barrier.cluster.wait; st.global.b32 [%rd1], 5; END:"""
    assert launch(body, 1, block=(64, 1, 1))[0] == 5


def test_a_deadlock_names_every_cta():
    body = "setp.eq.s32 %p1, %r3, 1; @%p1 bra L; barrier.cluster.arrive; barrier.cluster.wait; bra END; L: bar.sync 1, 64; END:"
    with pytest.raises(Deadlock) as caught:
        launch(body)
    message = str(caught.value)
    assert "CTAs (0, 0, 0) to (1, 0, 0)" in message and "32 of 64 threads" in message
    assert "not arrived: CTA (1, 0, 0) warp 0" in message


@pytest.mark.parametrize(
    "body, error, message",
    [
        ("mapa.shared::cluster.u32 %r4, %r1, 2; ld.shared::cluster.b32 %r5, [%r4];", MemoryFault, "rank 2"),
        ("mapa.shared::cluster.u32 %r4, %r1, 1; ld.shared.b32 %r5, [%r4];", MemoryFault, "only its own CTA"),
        (
            "mapa.shared::cluster.u32 %r4, %r1, 1; ld.shared::cluster.b32 %r5, [%r4+8192];",
            MemoryFault,
            "outside",
        ),
        (
            "mapa.shared::cluster.u32 %r4, %r1, 1; mbarrier.init.shared.b64 [%r4], 1;",
            MemoryFault,
            "its own CTA",
        ),
        ("barrier.cluster.wait;", Hazard, "without an arrive"),
        (
            "setp.lt.u32 %p1, %r2, 5; @%p1 barrier.cluster.arrive.aligned;",
            Hazard,
            "executed by 5 of 32",
        ),
    ],
)
def test_faults(body, error, message):
    with pytest.raises(error, match=message):
        launch(f"setp.eq.s32 %p7, %r3, 1; @%p7 bra END; {body} END:")


@pytest.mark.parametrize(
    "grid, cluster, directives, message",
    [
        ((3, 1, 1), (2, 1, 1), "", "divisible"),
        ((32, 1, 1), (32, 1, 1), "", "at most 16"),
        ((4, 1, 1), (4, 1, 1), ".explicitcluster .reqnctapercluster 2, 1, 1", "requires"),
        ((3, 1, 1), None, ".reqnctapercluster 2", "divisible"),
    ],
)
def test_launch_errors(grid, cluster, directives, message):
    with pytest.raises(LaunchError, match=message):
        launch("", 1, grid, cluster=cluster, directives=directives)


def test_a_kernel_that_requires_a_cluster_gets_it():
    out = launch(EXCHANGE, 128, cluster=None, directives=".reqnctapercluster 2, 1, 1")
    assert out[0] == 100 and out[64] == 0


def test_reading_and_writing_a_machine_by_rank():
    memory, out = GlobalMemory(), np.zeros(2, np.int32)
    args = (memory.bind(out, "out", writable=True),)
    body = """ld.shared.b32 %r4, [%r1]; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd2, %rd1, %rd2;
    st.global.b32 [%rd2], %r4; st.shared.b32 [%r1+4], %r4;"""
    machine = Machine(kernel(body), (2, 1, 1), (32, 1, 1), args, memory, 64, (2, 1, 1))
    machine.start()
    for rank in range(2):
        machine.write_shared(0, np.int32(40 + rank).tobytes(), cta=rank)
        machine.write_tmem(3, np.full((128, 1), rank, np.uint32), cta=rank)
    machine.run()
    assert out.tolist() == [40, 41]
    assert machine.read_shared(4, 4, cta=1).view(np.int32)[0] == 41
    assert machine.read_tmem(3, 1, cta=1).min() == 1 and machine.registers(0, cta=1)[3, 0] == 1
