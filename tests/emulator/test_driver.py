"""The stand-in driver without any library: launches, their files, host arrays, tensor maps in the hardware's bytes."""

import struct

import numpy as np
import pytest

from fa4_numba.emulator import GlobalMemory
from fa4_numba.emulator.driver import DeviceArray, Launch, LaunchLog, emulated_driver
from fa4_numba.emulator.driver.arrays import DeviceMemory
from fa4_numba.emulator.driver.cuda_tensor_map import repack
from fa4_numba.errors import ArrayError, LaunchError
from fa4_numba.layout import Swizzle, TensorMapSpec

PTX = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry add_one(.param .u64 x, .param .u32 n) {
.reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %p<2>;
mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p1, %r1, %r2; @%p1 ret;
ld.param.u64 %rd1, [x]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3; ret; }
"""


def launch(x: np.ndarray, n: int) -> Launch:
    memory = GlobalMemory()
    address = memory.bind(x, "x", writable=True)
    args = (address.to_bytes(8, "little"), n.to_bytes(4, "little"))
    return Launch("add_one", PTX, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, args, memory)


def test_a_saved_launch_runs_again_elsewhere(tmp_path):
    x = np.arange(32, dtype=np.uint32)
    first = launch(x, 20)
    first.save(tmp_path / "launch")
    first.run()
    assert (x == np.arange(32) + (np.arange(32) < 20)).all()
    again = Launch.load(tmp_path / "launch")
    again.run(schedule="late")
    (data,) = again.memory.snapshot().values()
    assert (data.view(np.uint32) == x).all()
    assert again.stats.warp_instructions == first.stats.warp_instructions > 0


def test_the_log_prints_a_table():
    log = LaunchLog([launch(np.zeros(32, np.uint32), 4)])
    assert "add_one" in str(log) and "not run" in str(log)
    log[0].run()
    assert f"{log[0].stats.warp_instructions:,}" in str(log)


def test_a_driver_without_a_library_says_so():
    with pytest.raises(LaunchError, match="import triton or cutlass"), emulated_driver(libraries=[]):
        pass
    with pytest.raises(LaunchError, match="cupy"), emulated_driver(libraries=["cupy"]):
        pass


def test_arrays_keep_their_address():
    memory, x = DeviceMemory(), np.zeros(5, np.float32)
    assert memory.address(DeviceArray(x)) == memory.address(DeviceArray(x))
    assert memory.address(None) == 0 and memory.address(77) == 77
    scratch = memory.scratch(8)
    data, at = memory.memory.find(scratch, scratch + 8, "test")
    assert (data[at : at + 8] == 0xFF).all()
    with pytest.raises(ArrayError, match="DeviceArray"):
        memory.address(x)
    with pytest.raises(ArrayError, match="contiguous"):
        DeviceArray(np.zeros((4, 4))[:, ::2])


def test_hardware_tensor_maps_are_read():
    address, shape, strides, box = 0x7F00_1234_5680, (128, 300, 7), (256, 76800), (64, 128, 1)
    words = [0] * 32
    words[0], words[1] = address & 0xFFFFFFFF, address >> 32
    words[2] = (3 - 1) << 4 | 10 << 7 | 3 << 13
    words[3:5] = [s >> 4 for s in strides]
    words[8:11] = [n - 1 for n in shape]
    data = bytearray(struct.pack("<32I", *words))
    data[55:58] = bytes(n - 1 for n in box)
    spec = TensorMapSpec.unpack(repack(bytes(data)))
    assert spec == TensorMapSpec("bfloat16", address, shape, strides, box, Swizzle.B128)
