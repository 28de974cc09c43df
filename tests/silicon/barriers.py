"""mbarriers step by step, named barriers, and cp.async with its groups."""

from itertools import product

import numpy as np

from .case import Case
from .values import random_bits

_NOTHING = np.zeros(16, np.uint8)


def _sequence(name: str, *steps: str) -> Case:
    """One thread does each step, then looks at the barrier: which parities have completed.

    ``STATE`` in a step marks an instruction that gives a state, of which the pending count and completion are stored too;
    ``SLOT`` is a place in the output of the step's own.
    """
    lines, at = [], 0
    for step in steps:
        lines.append(step.replace("STATE", "%state").replace("SLOT", f"[%out+{at}]"))
        at += 4 * step.count("SLOT")
        for parity in (0, 1):
            lines.append(
                f"mbarrier.test_wait.parity.shared::cta.b64 %ok, [%smem], {parity}; selp.u32 %r, 1, 0, %ok;"
            )
            lines.append(f"st.global.b32 [%out+{at}], %r;")
            at += 4
        if "STATE" in step:
            lines.append(f"mbarrier.pending_count.b64 %r, %state; st.global.b32 [%out+{at}], %r;")
            lines.append("mbarrier.test_wait.shared::cta.b64 %ok, [%smem], %state; selp.u32 %r, 1, 0, %ok;")
            lines.append(f"st.global.b32 [%out+{at + 4}], %r;")
            at += 8
    body = """.reg .b64 %state, %old; .reg .b32 %r; .reg .pred %ok, %lead; setp.ne.u32 %lead, %thread, 0; @%lead bra END;
""" + "\n".join(lines) + "\nEND:"  # fmt: skip
    return Case(f"mbarrier: {name}", body, _NOTHING, at, shared_bytes=64)


def mbarriers():
    """Phases, counts, states and transaction bytes."""
    arrive = "mbarrier.arrive.shared::cta.b64 STATE, [%smem];"
    init = lambda n: f"mbarrier.init.shared::cta.b64 [%smem], {n};"
    yield _sequence("one arrival a phase", init(1), arrive, arrive, arrive)
    yield _sequence("three arrivals a phase", init(3), *[arrive] * 7)
    yield _sequence("arrivals by count", init(5), "mbarrier.arrive.shared::cta.b64 STATE, [%smem], 2;", arrive,
                    "mbarrier.arrive.release.cta.shared::cta.b64 STATE, [%smem], 2;", arrive)  # fmt: skip
    yield _sequence("a state of an earlier phase stays complete", init(1), "mbarrier.arrive.shared::cta.b64 %old, [%smem];",
                    "mbarrier.test_wait.shared::cta.b64 %ok, [%smem], %old; selp.u32 %r, 1, 0, %ok; st.global.b32 SLOT, %r;",
                    arrive)  # fmt: skip
    yield _sequence(
        "no completion",
        init(3),
        "mbarrier.arrive.noComplete.shared::cta.b64 STATE, [%smem], 2;",
        arrive,
        arrive,
    )
    yield _sequence("arrive_drop", init(3), "mbarrier.arrive_drop.shared::cta.b64 STATE, [%smem];", arrive, arrive, arrive,
                    arrive, "mbarrier.arrive_drop.shared::cta.b64 STATE, [%smem];", arrive, arrive)  # fmt: skip
    yield _sequence("arrive_drop.noComplete", init(4), "mbarrier.arrive_drop.noComplete.shared::cta.b64 STATE, [%smem], 2;",
                    arrive, arrive, arrive, arrive)  # fmt: skip
    complete = lambda n: f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%smem], {n};"
    yield _sequence("bytes and arrivals", init(1), "mbarrier.arrive.expect_tx.shared::cta.b64 STATE, [%smem], 96;",
                    complete(32), complete(64), arrive)  # fmt: skip
    yield _sequence("bytes before the arrival", init(1), "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 64;",
                    complete(64), arrive, arrive)  # fmt: skip
    yield _sequence("completion before expectation", init(2), arrive, complete(16),
                    "mbarrier.arrive.expect_tx.shared::cta.b64 STATE, [%smem], 16;", arrive, arrive)  # fmt: skip
    yield _sequence("arrive_drop.expect_tx", init(2), "mbarrier.arrive_drop.expect_tx.shared::cta.b64 STATE, [%smem], 8;",
                    complete(8), arrive, arrive, arrive)  # fmt: skip
    yield _sequence(
        "invalidated and used again",
        init(2),
        arrive,
        "mbarrier.inval.shared::cta.b64 [%smem];" + init(1),
        arrive,
    )
    warp = """.reg .b64 %state; .reg .b32 %r, %n; .reg .pred %ok, %lead; setp.eq.u32 %lead, %thread, 0;
@%lead mbarrier.init.shared::cta.b64 [%smem], 64; bar.sync 0; mov.u32 %n, 0;
LOOP: mbarrier.arrive.shared::cta.b64 %state, [%smem];
W: mbarrier.try_wait.shared::cta.b64 %ok, [%smem], %state; @!%ok bra W;
add.u32 %n, %n, 1; setp.lt.u32 %ok, %n, 5; @%ok bra LOOP; .reg .b64 %p; mad.wide.u32 %p, %thread, 4, %out; st.global.b32 [%p], %n;"""
    yield Case("mbarrier: two warps meet five times", warp, _NOTHING, 256, 64, shared_bytes=64)


def named():
    """bar and barrier: all, part, arrive without waiting, reductions."""
    share = """.reg .b32 %s, %v, %t; .reg .b64 %p; .reg .pred %q, %odd; mad.lo.u32 %s, %thread, 4, %smem; mad.lo.u32 %v, %thread, 7, 3;
mad.wide.u32 %p, %thread, 4, %out;"""
    read = "xor.b32 %t, %thread, 32; mad.lo.u32 %s, %t, 4, %smem; ld.shared.b32 %v, [%s]; st.global.b32 [%p], %v;"
    for form in (
        "bar.sync 0",
        "barrier.sync 3",
        "barrier.sync.aligned 5, 128",
        "bar.sync 15, 128",
        "barrier.cta.sync.aligned 1",
    ):
        yield Case(
            form, f"{share} st.shared.b32 [%s], %v; {form}; {read}", _NOTHING, 512, 128, shared_bytes=512
        )
    pair = "shr.u32 %t, %thread, 6; add.u32 %t, %t, 1; barrier.sync %t, 64;"
    yield Case(
        "barrier.sync by pairs of warps",
        f"{share} st.shared.b32 [%s], %v; {pair} {read}",
        _NOTHING,
        512,
        128,
        shared_bytes=512,
    )
    producer = f"""{share} setp.lt.u32 %q, %thread, 32; @!%q bra CONSUMER;
st.shared.b32 [%s+128], %v; bar.arrive 1, 64; bar.sync 2, 64; ld.shared.b32 %v, [%s]; st.global.b32 [%p], %v; bra END;
CONSUMER: bar.sync 1, 64; ld.shared.b32 %t, [%s]; st.global.b32 [%p], %t; st.shared.b32 [%s+-128], %v; bar.arrive 2, 64; END:"""
    yield Case("bar.arrive and bar.sync between two warps", producer, _NOTHING, 256, 64, shared_bytes=512)
    predicate = "and.b32 %t, %thread, {mask}; setp.{compare}.u32 %q, %t, {value};"
    for mask, compare, value in ((3, "eq", 1), (0, "eq", 0), (0, "ne", 0), (127, "lt", 77)):
        text = predicate.format(mask=mask, compare=compare, value=value)
        for op, invert in product(("and", "or"), ("", "!")):
            body = f"{share} {text} bar.red.{op}.pred %odd, 1, {invert}%q; selp.u32 %v, 1, 0, %odd; st.global.b32 [%p], %v;"
            yield Case(f"bar.red.{op} {mask} {compare} {value}{invert}", body, _NOTHING, 512, 128)
        for form in (
            "bar.red.popc.u32 %v, 2, %q",
            "barrier.red.popc.aligned.u32 %v, 2, 128, !%q",
            "barrier.cta.red.popc.u32 %v, 4, 128, %q",
        ):
            yield Case(
                f"{form} {mask} {compare} {value}",
                f"{share} {text} {form}; st.global.b32 [%p], %v;",
                _NOTHING,
                512,
                128,
            )


def copies():
    """cp.async: sizes, zero fill, ignored sources, groups, arrival on an mbarrier."""
    data = random_bits(512, 2).view(np.uint8)
    setup = """.reg .b32 %s, %r<4>, %n; .reg .b64 %p, %q, %state; .reg .pred %odd, %ok; mad.lo.u32 %s, %thread, 16, %smem;
mad.wide.u32 %p, %thread, 16, %in; mad.wide.u32 %q, %thread, 16, %out; and.b32 %n, %thread, 1; setp.eq.u32 %odd, %n, 1;
st.shared.v4.b32 [%s], {%n, %n, %n, %n};"""
    read = "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%s]; st.global.v4.b32 [%q], {%r0, %r1, %r2, %r3};"
    forms = {
        "4": "cp.async.ca.shared.global [%s], [%p], 4;", "8": "cp.async.ca.shared.global [%s], [%p], 8;",
        "16": "cp.async.ca.shared.global [%s], [%p], 16;", "16 cg": "cp.async.cg.shared.global.L2::128B [%s], [%p], 16;",
        "zero fill of 16": "and.b32 %n, %thread, 15; cp.async.cg.shared.global [%s], [%p], 16, %n;",
        "zero fill of 8": "and.b32 %n, %thread, 7; cp.async.ca.shared.global [%s], [%p], 8, %n;",
        "ignore-src": "cp.async.ca.shared.global [%s], [%p], 16, %odd;",
        "predicated": "@%odd cp.async.ca.shared.global [%s], [%p], 16;",
    }  # fmt: skip
    for name, form in forms.items():
        body = f"{setup} {form} cp.async.commit_group; cp.async.wait_group 0; {read}"
        yield Case(f"cp.async {name}", body, data, 2048, 128, shared_bytes=2048)
    yield Case(
        "cp.async wait_all",
        f"{setup} {forms['16']} cp.async.wait_all; {read}",
        data,
        2048,
        128,
        shared_bytes=2048,
    )
    groups = f"""{setup} {forms["16"]} cp.async.commit_group;
cp.async.ca.shared.global [%s+2048], [%p+1024], 16; cp.async.commit_group; cp.async.commit_group;
cp.async.ca.shared.global [%s+4096], [%p+2048], 16; cp.async.commit_group;
cp.async.wait_group 3; {read} cp.async.wait_group 1;
ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%s+2048]; st.global.v4.b32 [%q+1024], {{%r0, %r1, %r2, %r3}};
cp.async.wait_group 0; ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%s+4096]; st.global.v4.b32 [%q+2048], {{%r0, %r1, %r2, %r3}};"""
    yield Case("cp.async groups", groups, data, 3072, 64, shared_bytes=6144)
    for noinc, count in (("", 128), (".noinc", 256)):
        body = f"""{setup} .reg .pred %lead; setp.eq.u32 %lead, %thread, 0;
@%lead mbarrier.init.shared::cta.b64 [%smem+2048], {count}; bar.sync 0; {forms["16"]}
cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [%smem+2048]; mbarrier.arrive.shared::cta.b64 %state, [%smem+2048];
W: mbarrier.test_wait.parity.shared::cta.b64 %ok, [%smem+2048], 0; @!%ok bra W;
xor.b32 %n, %thread, 64; mad.lo.u32 %s, %n, 16, %smem; {read}"""
        yield Case(f"cp.async.mbarrier.arrive{noinc}", body, data, 2048, 128, shared_bytes=2112)


def cases():
    """Return every case of this family."""
    return [*mbarriers(), *named(), *copies()]
