"""Pieces of PTX that every kernel here shares."""

HEADER = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
"""

# Each warp's lane 0 keeps clock and nanoseconds at the start and writes them with those of the end.
STATS_START = """
mov.u32 %st_lane, %laneid;
mov.u64 %st_c0, %clock64;
mov.u64 %st_n0, %globaltimer;
"""
STATS_END = """
mov.u64 %st_c1, %clock64;
mov.u64 %st_n1, %globaltimer;
setp.ne.u32 %st_p, %st_lane, 0;
@%st_p bra STATS_DONE;
ld.param.u64 %st_at, [stats];
mov.u32 %st_a, %nctaid.x;
mov.u32 %st_b, %ctaid.y;
mov.u32 %st_c, %ctaid.x;
mad.lo.u32 %st_c, %st_a, %st_b, %st_c;
mov.u32 %st_a, %ntid.x;
mov.u32 %st_b, %tid.x;
mad.lo.u32 %st_c, %st_a, %st_c, %st_b;
mul.wide.u32 %st_c1x, %st_c, 1;
add.s64 %st_at, %st_at, %st_c1x;
st.global.v2.u64 [%st_at], {%st_c0, %st_c1};
st.global.v2.u64 [%st_at + 16], {%st_n0, %st_n1};
STATS_DONE:
"""
STATS_REGISTERS = """.reg .b32 %st_lane, %st_a, %st_b, %st_c;
.reg .b64 %st_c0, %st_c1, %st_n0, %st_n1, %st_at, %st_c1x; .reg .pred %st_p;"""
STATS_BYTES_PER_WARP = 32


def entry(name: str, params: str, body: str, threads: int) -> str:
    """Return a kernel. ``params`` like "u64 src, u32 n"; tensor maps as "map a"."""
    declared = []
    for param in params.split(","):
        kind, label = param.split()
        declared.append(f".param .align 64 .b8 {label}[128]" if kind == "map" else f".param .{kind} {label}")
    return f".visible .entry {name}({', '.join(declared)})\n.maxntid {threads}, 1, 1\n{{\n{body}\nret;\n}}\n"


def wait(label: str, barrier: str, parity: str) -> str:
    """Spin until the phase of ``parity`` of the mbarrier has completed."""
    return (
        f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %done, [{barrier}], {parity};\n"
        f"@!%done bra {label};\n"
    )
