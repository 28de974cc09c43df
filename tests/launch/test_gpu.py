"""The parts of the launch path that any Hopper or Blackwell GPU can run (``pytest -m gpu``).

A TMA copy into shared memory, dumped byte by byte, must equal what ``layout`` says and what the emulator does.
"""

import numpy as np
import pytest

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.launch.plan import LaunchPlan
from fa4_numba.layout import Swizzle, TensorMapSpec

ROWS, BOX_ROWS, SHARED = 20, 16, 8192

# Loads a box at (8, 12) with TMA, then copies the box's bytes of shared memory, as they lie, to `out`.
PTX = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry dump(.param .align 64 .b8 source[128], .param .u64 out, .param .u32 bytes) .maxntid 32 {
.reg .b32 %r<10>; .reg .b64 %rd<6>; .reg .pred %p<4>;
mov.u32 %r1, smem; add.s32 %r2, %r1, 4096; mov.u32 %r3, %tid.x; ld.param.u32 %r4, [bytes];
setp.ne.s32 %p1, %r3, 0; @%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r4;
mov.b64 %rd1, source; cvta.param.u64 %rd1, %rd1;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {8, 12}], [%r2];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
ld.param.u64 %rd2, [out]; shl.b32 %r5, %r3, 2;
LOOP: setp.ge.u32 %p3, %r5, %r4; @%p3 bra END;
add.s32 %r6, %r1, %r5; ld.shared.b32 %r7, [%r6];
cvt.u64.u32 %rd3, %r5; add.s64 %rd3, %rd2, %rd3; st.global.b32 [%rd3], %r7;
add.s32 %r5, %r5, 128; bra LOOP;
END: ret;
}
"""


def problem(swizzle):
    source = np.arange(1, ROWS * 64 + 1, dtype=np.uint16).reshape(ROWS, 64)
    width = swizzle.span_bytes // 2
    spec = TensorMapSpec("uint16", 0, (64, ROWS), (128,), (width, BOX_ROWS), swizzle)
    box = np.zeros((BOX_ROWS, width), np.uint16)
    inside = source[12:, 8 : 8 + width]
    box[: inside.shape[0], : inside.shape[1]] = inside
    expected = np.zeros(spec.box_bytes, np.uint8)
    pieces = spec.smem_pieces(1024) - 1024
    expected.view(np.uint64).reshape(-1, 2)[pieces >> 4] = box.view(np.uint64).reshape(*pieces.shape, 2)
    return source, spec, expected


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_emulated_copy_equals_layout(swizzle):
    source, spec, expected = problem(swizzle)
    memory, out = GlobalMemory(), np.zeros(spec.box_bytes, np.uint8)
    args = (
        spec.with_address(memory.bind(source, "source")),
        memory.bind(out, "out", writable=True),
        spec.box_bytes,
    )
    Machine(PTX, (1, 1, 1), (32, 1, 1), args, memory, SHARED).run()
    assert (out == expected).all()


@pytest.mark.gpu
@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_gpu_copy_equals_layout(swizzle):
    from fa4_numba.launch.driver import DeviceArray, launch, load_function
    from fa4_numba.toolchain import assemble

    source, spec, expected = problem(swizzle)
    cubin, _ = assemble(PTX, "sm_90a")
    device_source, out = DeviceArray(source), np.zeros(spec.box_bytes, np.uint8)
    device_out = DeviceArray(out)
    args = (spec.with_address(device_source.address), device_out.address, spec.box_bytes)
    launch(load_function(cubin, "dump", SHARED), LaunchPlan((1, 1, 1), (32, 1, 1), SHARED, args))
    device_out.download(out)
    assert (out == expected).all(), np.flatnonzero(out != expected)[:10]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_device_arrays_are_used_in_place(dtype):
    """A strided torch tensor goes to TMA by its own pointer and strides, on torch's stream."""
    torch = pytest.importorskip("torch")
    from fa4_numba.api.device_arrays import current_stream, empty_like_kind, operand, view_of
    from fa4_numba.launch.driver import launch, load_function
    from fa4_numba.toolchain import assemble

    tensor = (
        torch.arange(ROWS * 2 * 128, device="cuda")
        .to(getattr(torch, dtype))
        .reshape(1, ROWS, 2, 128)[..., :64]
    )
    view = operand("q", view_of("q", tensor[:, :, 1:]), "bshd")
    assert view.strides_bytes[1] == 2 * 128 * 2 and view.shape == (1, ROWS, 1, 64) and view.dtype == dtype
    spec = TensorMapSpec(
        dtype, view.address, (64, ROWS), (view.strides_bytes[1],), (64, BOX_ROWS), Swizzle.NONE
    )
    out = empty_like_kind(tensor, (BOX_ROWS, 64), None)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        handle = current_stream(tensor)
        assert handle == stream.cuda_stream
        cubin, _ = assemble(PTX, "sm_90a")
        args = (spec, view_of("out", out).address, spec.box_bytes)
        launch(load_function(cubin, "dump", SHARED), LaunchPlan((1, 1, 1), (32, 1, 1), SHARED, args), handle)
    stream.synchronize()
    want = torch.zeros_like(out)
    want[: ROWS - 12, : 64 - 8] = tensor[0, 12:, 1, 8:]
    assert torch.equal(out, want)


@pytest.mark.gpu
def test_device_arrays_need_a_blackwell_gpu():
    torch = pytest.importorskip("torch")
    import fa4_numba as fa4
    from fa4_numba.errors import ArrayError, BackendError, UnsupportedError

    if torch.cuda.get_device_capability()[0] == 10:
        pytest.skip("this is a Blackwell GPU")
    q = torch.zeros(1, 8, 1, 64, device="cuda", dtype=torch.bfloat16)
    with pytest.raises(BackendError, match="needs a Blackwell"):
        fa4.attention(q, q, q)
    with pytest.raises(UnsupportedError, match="host arrays"):
        fa4.attention(q, q, q, backend="reference")
    with pytest.raises(ArrayError, match="k is not on the GPU"):
        fa4.attention(q, q.cpu(), q)
    assert fa4.attention(*(x.cpu() for x in (q, q, q))).dtype == torch.bfloat16
