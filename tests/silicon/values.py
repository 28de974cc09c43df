"""Operand values: the edges of every type, and reproducible random bits."""

import ml_dtypes
import numpy as np

COUNT = 512  # lanes of a case


def random_bits(count: int, seed: int) -> np.ndarray:
    """Return uint64 words of the splitmix64 generator: the same on every numpy."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            (seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) % (1 << 64)
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _signed_pair(values) -> list:
    return [v for x in values for v in (x, -x)]


_NUMBERS = _signed_pair(
    [
        0.0,
        1.0,
        1.5,
        2.0,
        2.5,
        3.5,
        0.5,
        0.75,
        3.0,
        127.5,
        128.5,
        255.5,
        256.0,
        448.0,
        464.0,
        480.0,
        57344.0,
        61440.0,
    ]
    + [65504.0, 65519.0, 65520.0, 32767.5, 65535.5, 2.0**23 + 1, 2.0**24 - 1, 2.0**31, 2.0**32, 2.0**31 - 128]
    + [2.0**63, 2.0**64, 2.0**-14, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-9, 2.0**-10, 2.0**-16, 2.0**-17]
    + [
        1.0009765625,
        1.00048828125,
        1.00146484375,
        1.00390625,
        1.001953125,
        1.005859375,
        3.14159274,
        1e-20,
        1e20,
    ]
)
_FLOAT_BITS = {  # magnitudes: subnormals, first normal, largest, infinity, quiet and signalling NaN
    "f32": ("u4", [1, 2, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7FFFFFFF]
            + [0x7F800001, 0x7FA12345, 0x3F7FFFFF, 0x3F800001, 0x33800000, 0x33800001, 0x7F000000, 0x477FEFFF]),
    "f16": ("u2", [1, 2, 0x200, 0x3FF, 0x400, 0x401, 0x7BFF, 0x7C00, 0x7E00, 0x7FFF, 0x7C01, 0x7D55, 0x3BFF, 0x3C01]),
    "bf16": ("u2", [1, 2, 0x40, 0x7F, 0x80, 0x81, 0x7F7F, 0x7F80, 0x7FC0, 0x7FFF, 0x7F81, 0x7FA5, 0x3F7F, 0x3F81]),
    "f64": ("u8", [1, 2, 1 << 51, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000]
            + [0x7FFFFFFFFFFFFFFF, 0x7FF0000000000001, 0x7FF4123456789ABC, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001]
            + [0x3FF0000010000000, 0x3FF0000030000000, 0x380FFFFFE0000000, 0x36A0000000000000, 0x3690000000000000]
            + [0x47EFFFFFF0000000, 0x47EFFFFFE0000000, 0x3F10000000000000]),
}  # fmt: skip
FLOAT = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}


def edges(kind: str) -> np.ndarray:
    """Return the interesting values of a PTX type, as unsigned integers of its width."""
    if kind in _FLOAT_BITS:
        word, patterns = _FLOAT_BITS[kind]
        with np.errstate(over="ignore"):
            numbers = np.array(_NUMBERS, np.float64).astype(np.float32).astype(FLOAT[kind]).view(word)
        bits = np.array(patterns, word)
        sign = np.array(1 << 8 * bits.itemsize - 1, word)
        return np.unique(np.concatenate([numbers, bits, bits | sign]))
    width = int(kind[1:])
    values = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        100,
        127,
        128,
        255,
        256,
        0x5555,
        0xAAAA,
        0x1234,
    ]
    values += [
        n for k in (8, 15, 16, 24, 31, 32, 48, 63) if k < width for n in ((1 << k) - 1, 1 << k, (1 << k) + 1)
    ]
    top = (1 << width) - 1
    values += [
        top,
        top - 1,
        top >> 1,
        (top >> 1) - 1,
        (top >> 1) + 1,
        (top >> 1) + 2,
        top - 15,
        top - 127,
        top - 128,
    ]
    return np.unique(np.array([v & top for v in values], f"u{width // 8}"))


def operand(kind: str, seed: int, count: int = COUNT, position: int = 0, of: int = 1) -> np.ndarray:
    """Return ``count`` values of a PTX type: operand ``position`` of ``of``, which are to meet in all combinations."""
    if kind == "pred":
        return (random_bits(count, seed) & np.uint64(1)).astype(np.uint32)
    if kind in ("f16x2", "bf16x2", "u16x2", "s16x2"):
        part = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}[kind]
        halves = [operand(part, seed + 1000 * i, count, position, of) for i in range(2)]
        return (halves[0].astype(np.uint32) | halves[1][::-1].astype(np.uint32) << np.uint32(16)).astype(
            np.uint32
        )
    if kind in ("e4m3x2", "e5m2x2"):
        every = np.arange(count, dtype=np.uint32)
        return (every & 255 | (every * 37 + 11 & 255) << 8).astype(np.uint16)
    kind = {"tf32": "f32"}.get(kind, kind)
    special = edges(kind)
    word = special.dtype
    bits = random_bits(2 * count, 31 * seed + position)
    out = (bits[:count] >> np.uint64(64 - 8 * word.itemsize)).astype(word)
    chosen = special[(bits[count:] >> np.uint64(8)) % np.uint64(len(special))]
    if of == 1:
        out[: min(count, len(special))] = special[:count]
        return out
    pick = np.arange(count) % 4 < 3  # three quarters of the lanes take edges
    out = np.where(pick, chosen, out).astype(word)
    if kind in FLOAT:  # and some take values of like exponent, where rounding and cancellation happen
        like = np.arange(count) % 8 == 7
        near = (1 + (bits[:count] >> np.uint64(40)).astype(np.float64) / 2**24) * np.where(
            bits[:count] & np.uint64(1), 1, -1
        )
        scale = 2.0 ** ((bits[count:] & np.uint64(3)).astype(np.float64) - 1)
        out = np.where(like, (near * scale).astype(FLOAT[kind]).view(word), out).astype(word)
    return out


def operands(kinds, seed: int, count: int = COUNT) -> list[tuple[str, np.ndarray]]:
    """Return (type, values) for each operand of an instruction."""
    return [(kind, operand(kind, seed + 7 * i, count, i, len(kinds))) for i, kind in enumerate(kinds)]
