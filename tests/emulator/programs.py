"""Small PTX programs for the tests."""

import numpy as np

from fa4_numba.emulator import GlobalMemory, Machine

HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def lanewise(body: str, registers: str = "") -> str:
    """Return a kernel in which each of 32 lanes loads a, b, c (64 bits each), runs ``body``, and stores d."""
    return f"""{HEADER}
.visible .entry k(.param .u64 src, .param .u64 dst) {{
.reg .b32 %r<8>; .reg .b64 %rd<16>; .reg .f32 %f<8>; .reg .pred %p<4>; .reg .b16 %h<4>; {registers}
ld.param.u64 %rd1, [src]; ld.param.u64 %rd2, [dst];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 24; add.s64 %rd1, %rd1, %rd3;
mul.wide.u32 %rd3, %r1, 8; add.s64 %rd2, %rd2, %rd3;
.reg .b64 %a, %b, %c, %d; .reg .b32 %a32, %b32, %c32, %d32, %hi;
ld.global.b64 %a, [%rd1]; ld.global.b64 %b, [%rd1+8]; ld.global.b64 %c, [%rd1+16];
mov.b64 {{%a32, %hi}}, %a; mov.b64 {{%b32, %hi}}, %b; mov.b64 {{%c32, %hi}}, %c;
mov.u64 %d, 0; mov.u32 %d32, 0;
{body}
st.global.b64 [%rd2], %d;
ret;
}}"""


def run_lanewise(body: str, a, b=None, c=None, *, wide=False, registers=""):
    """Run ``body`` on 32 values per operand; return d (its low word unless ``wide``) as the dtype of ``a``."""
    dtype = np.asarray(a).dtype
    operands = [np.asarray(x if x is not None else np.zeros(32), dtype) for x in (a, b, c)]
    source = np.zeros((32, 3), np.uint64)
    for i, x in enumerate(operands):
        source[:, i] = x.view(f"u{dtype.itemsize}")
    out = np.zeros(32, np.uint64)
    memory = GlobalMemory()
    args = (memory.bind(source, "source"), memory.bind(out, "out", writable=True))
    body = body if wide else body + " cvt.u64.u32 %d, %d32;"
    Machine(lanewise(body, registers), (1, 1, 1), (32, 1, 1), args, memory).run()
    return out if wide else out.astype(np.uint32).view(np.uint32 if dtype.itemsize != 4 else dtype)
