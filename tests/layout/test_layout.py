"""Layout functions against slow loops and against published descriptor values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4_numba.errors import ArrayError, ConfigError
from fa4_numba.layout import (
    InstrDesc,
    Major,
    SmemDesc,
    Swizzle,
    TensorMapSpec,
    accumulator_lane,
    bank_conflicts,
    operand_byte_address,
    split_tmem_address,
    swizzle_address,
    tmem_address,
    warp_lanes,
)


@given(st.integers(0, 1 << 18), st.sampled_from(list(Swizzle)))
def test_swizzle_permutes_16_byte_pieces_by_the_row(address, swizzle):
    """By hand: within 8 rows of 128 bytes, piece p of row r goes to p xor (r shifted to the atom's width)."""
    row, piece, byte = address // 128 % 8, address % 128 // 16, address % 16
    pieces = swizzle.span_bytes // 16
    moved = piece ^ (row % pieces if pieces > 1 else 0) if swizzle is not Swizzle.NONE else piece
    assert swizzle_address(address, swizzle) == address // 128 * 128 + moved * 16 + byte
    assert swizzle_address(swizzle_address(address, swizzle), swizzle) == address


PUBLISHED_INSTRUCTIONS = [
    (InstrDesc("f16", 128, 128, "bf16", "bf16"), 0x08200490),
    (InstrDesc("f16", 128, 128, "bf16", "bf16", b_major=Major.MN), 0x08210490),
    (InstrDesc("f16", 128, 64, "bf16", "bf16", b_major=Major.MN), 0x08110490),
    (InstrDesc("f16", 128, 192, "bf16", "bf16"), 0x08300490),
    (InstrDesc("f16", 128, 256, "bf16", "bf16"), 0x08400490),
    (InstrDesc("f16", 256, 128, "bf16", "bf16"), 0x10200490),
    (InstrDesc("f16", 256, 128, "bf16", "bf16", b_major=Major.MN), 0x10210490),
    (InstrDesc("f16", 64, 256, "bf16", "bf16"), 0x04400490),
    (InstrDesc("f16", 32, 256, "bf16", "bf16"), 0x02400490),
    (InstrDesc("f16", 128, 128, "f16", "f16"), 0x08200010),
    (InstrDesc("f8f6f4", 128, 128, "e4m3", "e4m3"), 0x08200010),
    (InstrDesc("f8f6f4", 128, 128, "e5m2", "e5m2"), 0x08200490),
]


@pytest.mark.parametrize("desc, value", PUBLISHED_INSTRUCTIONS)
def test_instruction_descriptors(desc, value):
    assert desc.pack() == value
    assert InstrDesc.unpack(desc.kind, value) == desc
    assert f"{value:#010x}" in desc.explain()


def test_smem_descriptors():
    assert SmemDesc(0, 0, 1024, Swizzle.B128).pack() == 0x4000_4040_0000_0000
    assert SmemDesc(0, 128 * 128, 1024, Swizzle.B128).pack() == 0x4000_4040_0400_0000
    desc = SmemDesc(0x12340, 4096, 512, Swizzle.B64, base_offset=3, lbo_mode=1)
    assert SmemDesc.unpack(desc.pack()) == desc
    assert "swizzle 64B" in desc.explain()
    with pytest.raises(ConfigError, match="multiple of 16"):
        SmemDesc(8, 0, 1024, Swizzle.B128).pack()


@pytest.mark.parametrize("swizzle", [Swizzle.B128, Swizzle.B64, Swizzle.B32])
@pytest.mark.parametrize("rows", [8, 64, 128])
def test_k_major_operand_is_what_tma_writes(swizzle, rows):
    """A dense box of rows x span bytes, swizzled by TMA, is read back element by element by the descriptor."""
    span, base = swizzle.span_bytes, 4096
    desc = SmemDesc(base, 0, 8 * span, swizzle)
    for row in range(rows):
        for k_byte in range(0, span, 2):
            linear = base + row * span + k_byte
            assert operand_byte_address(desc, Major.K, row, k_byte) == swizzle_address(linear, swizzle)


@pytest.mark.parametrize("swizzle", [Swizzle.B128, Swizzle.B64, Swizzle.B32])
def test_mn_major_operand_is_what_tma_writes(swizzle):
    """V: chunks of span bytes of the head dimension, each a box of keys x span."""
    span, keys, base = swizzle.span_bytes, 32, 8192
    desc = SmemDesc(base, keys * span, 8 * span, swizzle)
    for key in range(keys):
        for mn_byte in range(0, 3 * span, 2):
            chunk, inside = divmod(mn_byte, span)
            linear = base + chunk * keys * span + key * span + inside
            assert operand_byte_address(desc, Major.MN, mn_byte, key) == swizzle_address(linear, swizzle)


def slow_box(tensor, start, box):
    out = np.zeros(box[::-1], tensor.dtype)
    for index in np.ndindex(*out.shape):
        at = tuple(i + s for i, s in zip(index, start[::-1]))
        if all(0 <= a < n for a, n in zip(at, tensor.shape)):
            out[index] = tensor[at]
    return out


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(-3, 9)), min_size=0, max_size=3),
    st.integers(1, 40),
    st.integers(-8, 40),
)
def test_box_rows_against_a_loop(outer, inner, start0):
    shape = (inner, *(n for n, _, _ in outer))
    box = (8, *(b for _, b, _ in outer))
    start = (start0, *(s for _, _, s in outer))
    row_elems = -(-inner // 8) * 8
    tensor = np.arange(int(np.prod(shape[1:], dtype=int)) * row_elems, dtype=np.uint16).reshape(
        *shape[:0:-1], row_elems
    )
    strides = tuple(tensor.strides[::-1][1:])
    spec = TensorMapSpec("uint16", 0, shape, strides, box)
    offsets, first, last = spec.box_rows(start)
    got = np.zeros((len(offsets), 8), np.uint16)
    flat = tensor.reshape(-1).view(np.uint8)
    for row, offset in enumerate(offsets):
        if offset >= 0:
            for c in range(first, last):
                at = offset + 2 * (start0 + c)
                got[row, c] = flat[at : at + 2].view(np.uint16)[0]
    want = slow_box(tensor[..., :inner], start, box).reshape(len(offsets), 8)
    assert (got == want).all()


def test_tensor_map_round_trip_and_errors():
    spec = TensorMapSpec("bfloat16", 4096, (128, 7, 3), (256, 2048), (64, 128, 1), Swizzle.B128)
    assert TensorMapSpec.unpack(spec.pack()) == spec
    assert len(spec.pack()) == 128 and spec.box_bytes == 64 * 128 * 2
    assert spec.with_address(8192).address == 8192
    for change, message in [
        ({"address": 8}, "multiple of 16"),
        ({"box": (128, 8, 1)}, "span"),
        ({"box": (64, 300, 1)}, "1 to 256"),
        ({"strides_bytes": (250, 2048)}, "stride 1"),
        ({"shape": (128, 0, 3)}, "dimension 1"),
        ({"dtype": "complex64"}, "dtype"),
        ({"shape": (1,) * 6}, "rank 6"),
    ]:
        arguments = {
            "dtype": "bfloat16",
            "address": 0,
            "shape": (128, 7, 3),
            "strides_bytes": (256, 2048),
            "box": (64, 8, 1),
            "swizzle": Swizzle.B128,
        }
        with pytest.raises(ArrayError, match=message):
            TensorMapSpec(**(arguments | change))
    with pytest.raises(ArrayError, match="no tensor map"):
        TensorMapSpec.unpack(bytes(128))


def test_tensor_memory():
    assert tmem_address(96, 256) == 96 << 16 | 256
    assert split_tmem_address(tmem_address(5, 7)) == (5, 7)
    with pytest.raises(ConfigError):
        tmem_address(128, 0)
    assert list(warp_lanes(6)) == list(range(64, 96))
    assert [accumulator_lane(64, r) for r in (0, 15, 16, 63)] == [0, 15, 32, 111]
    assert accumulator_lane(128, 77) == 77


@given(st.lists(st.integers(0, 511), min_size=32, max_size=32))
def test_bank_conflicts_against_counting(words):
    per_bank = {}
    for word in words:
        per_bank.setdefault(word % 32, set()).add(word)
    assert bank_conflicts([4 * w for w in words]) == max(map(len, per_bank.values()))


def test_swizzle_removes_the_conflicts_of_a_column():
    rows = np.arange(8) * 128
    assert bank_conflicts(rows, 16) == 8
    assert bank_conflicts([swizzle_address(int(r), Swizzle.B128) for r in rows], 16) == 1
