"""Asynchronous work in groups: a kernel that does not wait, or waits for too little, must see old values."""

import numpy as np
import pytest

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.emulator.machine.copy_groups import Groups

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"


def run(body: str, schedule: str, threads: int = 32) -> np.ndarray:
    source, out = np.arange(1024, dtype=np.uint32), np.zeros(512, np.uint32)
    memory = GlobalMemory()
    args = (memory.bind(source, "source"), memory.bind(out, "out", writable=True))
    text = f"""{HEADER}.visible .entry k(.param .u64 src, .param .u64 dst) {{
.reg .b64 %in, %out, %p; .reg .b32 %t, %s, %v, %d<4>, %a<4>; .reg .b64 %desc; .reg .pred %yes;
ld.param.u64 %in, [src]; ld.param.u64 %out, [dst]; mov.u32 %t, %tid.x; mov.u32 %s, smem;
mad.wide.u32 %in, %t, 16, %in; mad.wide.u32 %out, %t, 4, %out;
{body}
ret; }}"""
    Machine(
        text,
        (1, 1, 1),
        (threads, 1, 1),
        args,
        memory,
        dynamic_smem_bytes=8192,
        schedule=schedule,
        engine="interpreter",
    ).run()
    return out


def copy(wait: str) -> str:
    return f"""mad.lo.u32 %s, %t, 16, %s; mov.u32 %v, 77; st.shared.b32 [%s], %v; st.shared.b32 [%s+512], %v;
cp.async.ca.shared.global [%s], [%in], 16; cp.async.commit_group;
cp.async.ca.shared.global [%s+512], [%in+512], 16; cp.async.commit_group;
{wait} ld.shared.b32 %v, [%s]; st.global.b32 [%out], %v; ld.shared.b32 %v, [%s+512]; st.global.b32 [%out+128], %v;"""


FIRST, SECOND = np.arange(32) * 4, 128 + np.arange(32) * 4


def test_a_copy_without_a_wait_has_not_landed():
    assert (run(copy(""), "late")[:64] == 77).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random:1", "random:2", "random:3"])
@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;", "cp.async.wait_all;"])
def test_waiting_for_all_copies(schedule, wait):
    out = run(copy(wait), schedule)
    assert np.array_equal(out[:32], FIRST)
    assert np.array_equal(out[32:64], SECOND)


@pytest.mark.parametrize("seed", range(8))
def test_waiting_for_all_but_the_newest_group(seed):
    """Whatever lands first: the older group is there."""
    out = run(copy("cp.async.wait_group 1;"), f"random:{seed}")
    assert np.array_equal(out[:32], FIRST)


def test_the_newest_group_may_be_complete_before_an_older_one():
    groups = Groups("copies")
    old = groups.begin()
    groups.commit()
    new = groups.begin()
    groups.commit()
    groups.end(new)
    assert not groups.settled(1)
    groups.end(old)
    assert groups.settled(1)
    assert groups.idle()


def wgmma(wait: str) -> str:
    """Ones times ones, K = 16: every element of D is 16."""
    ones = 0x3F803F80
    return f"""mad.lo.u32 %s, %t, 16, %s; mov.u32 %v, {ones}; st.shared.v4.b32 [%s], {{%v, %v, %v, %v}};
fence.proxy.async; bar.sync 0; mov.u32 %a0, {ones}; mov.u32 %a1, %a0; mov.u32 %a2, %a0; mov.u32 %a3, %a0;
mov.u32 %d0, 7; mov.u32 %d1, 7; mov.u32 %d2, 7; mov.u32 %d3, 7; setp.ne.u32 %yes, 0, 0;
mov.u32 %s, smem; cvt.u64.u32 %desc, %s; shr.u64 %desc, %desc, 4; add.s64 %desc, %desc, {(128 >> 4) << 16 | (128 >> 4) << 32};
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, %desc, %yes, 1, 1, 0;
wgmma.commit_group.sync.aligned; {wait} st.global.b32 [%out], %d3;"""


def test_a_multiply_without_a_wait_has_not_landed():
    assert (run(wgmma(""), "late", 128)[:128] == 7).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random:5"])
def test_a_multiply_that_is_waited_for(schedule):
    out = run(wgmma("wgmma.wait_group.sync.aligned 0;"), schedule, 128)
    assert (out[:128].view(np.float32) == 16).all()
