"""Matrix fragments and mma.sync."""

from itertools import product

import ml_dtypes
import numpy as np

from .case import Case
from .values import FLOAT, random_bits

_E4M3, _E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
DTYPE = {
    **FLOAT,
    "tf32": np.float32,
    "e4m3": _E4M3,
    "e5m2": _E5M2,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}


def list_of(name: str, count: int) -> str:
    """Return ``{%name0, %name1, …}``."""
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def fragments():
    """ldmatrix, stmatrix, movmatrix, each lane with a row address of its own."""
    tile = random_bits(256, 1).view(np.uint8)
    fill = """.reg .b64 %p; .reg .b32 %s, %t, %r<4>; mad.wide.u32 %p, %thread, 16, %in; mad.lo.u32 %s, %thread, 16, %smem;
ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%p]; st.shared.v4.b32 [%s], {%r0, %r1, %r2, %r3}; bar.sync 0;
mad.wide.u32 %p, %thread, 16, %out;"""
    rows = "mul.lo.u32 %t, %thread, 13; and.b32 %t, %t, 31; mad.lo.u32 %s, %t, 16, %smem;"  # a permutation of the rows
    zero = "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;"
    store = "st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3};"
    for count, trans in product((1, 2, 4), ("", ".trans")):
        load = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {list_of('r', count)}, [%s];"
        body = f"{fill} {rows} {zero} {load} {store}"
        yield Case(f"ldmatrix.x{count}{trans}", body, tile, 512, shared_bytes=512)
        save = f"""{fill} bar.sync 0; {rows} stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%s], {list_of("r", count)};
bar.sync 0; mad.lo.u32 %s, %thread, 16, %smem; ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%s]; {store}"""
        yield Case(f"stmatrix.x{count}{trans}", save, tile, 512, shared_bytes=512)
    move = f"{fill} movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0; {store}"
    yield Case("movmatrix", move, tile, 512, shared_bytes=512)


def small_integers(kind: str, count: int, seed: int, limit: int = 4) -> np.ndarray:
    """Values whose products and sums are exact in every accumulator."""
    values = (random_bits(count, seed) % np.uint64(2 * limit + 1)).astype(np.int64) - (
        0 if kind[0] == "u" else limit
    )
    return values.astype(DTYPE[kind])


def normal_values(kind: str, count: int, seed: int) -> np.ndarray:
    """Values of magnitude about 1, with all mantissa bits in use."""
    bits = random_bits(count, seed)
    values = ((bits >> np.uint64(11)).astype(np.float64) / 2**53 * 2 - 1) * 2
    return values.astype(DTYPE[kind])


def wide_values(kind: str, count: int, seed: int) -> np.ndarray:
    """Values of very different magnitude, 2**-6 to 2**7: what a sum keeps of the small ones shows its order and width."""
    exponent = (random_bits(count, seed + 9) % np.uint64(13)).astype(np.float64) - 6
    return (normal_values(kind, count, seed).astype(np.float64) * 2.0**exponent).astype(DTYPE[kind])


def extreme_values(kind: str, count: int, seed: int) -> np.ndarray:
    """The largest and the smallest normal values, subnormal ones, and 1: sums that overflow, and exponents at the ends."""
    word = np.dtype(f"u{np.dtype(DTYPE[kind]).itemsize}")
    largest, one, normal = {
        "f16": (0x7BFF, 0x3C00, 0x400), "bf16": (0x7F7F, 0x3F80, 0x80), "tf32": (0x7F7FE000, 0x3F800000, 0x800000),
        "f32": (0x7F7FFFFF, 0x3F800000, 0x800000), "e4m3": (0x7E, 0x38, 8), "e5m2": (0x7B, 0x3C, 4),
    }[kind]  # fmt: skip
    choice = np.array([largest, largest - 1, one, one, normal, normal - 1, normal >> 1, 1, 0, 0, 0, 0], word)
    bits = random_bits(count, seed)
    sign = ((bits & np.uint64(1)) << np.uint64(8 * word.itemsize - 1)).astype(word)
    return (choice[(bits >> np.uint64(8)) % np.uint64(len(choice))] | sign).view(DTYPE[kind])


def special_values(kind: str, count: int, seed: int) -> np.ndarray:
    """Mostly zeros, with infinities, NaN and subnormals here and there."""
    dtype = np.dtype(DTYPE[kind])
    values = small_integers(kind, count, seed, 1)
    where = random_bits(count, seed + 1) % np.uint64(61)
    picks = [np.nan, -np.nan] if kind == "e4m3" else [np.inf, -np.inf, np.nan]
    for i, pick in enumerate(picks):
        values[where == i] = pick
    values.view(f"u{dtype.itemsize}")[where == 5] = 1  # the smallest subnormal
    return values


_FORMS = [  # shape, d and c, a, b, k, registers of d, a, b, c
    ("m16n8k8", "f16", "f16", 2, 2, 1), ("m16n8k16", "f16", "f16", 2, 4, 2),
    ("m16n8k8", "f32", "f16", 4, 2, 1), ("m16n8k16", "f32", "f16", 4, 4, 2),
    ("m16n8k8", "f32", "bf16", 4, 2, 1), ("m16n8k16", "f32", "bf16", 4, 4, 2),
    ("m16n8k4", "f32", "tf32", 4, 2, 1), ("m16n8k8", "f32", "tf32", 4, 4, 2),
    ("m8n8k4", "f64", "f64", 2, 1, 1), ("m16n8k4", "f64", "f64", 4, 2, 1),
    ("m16n8k8", "f64", "f64", 4, 4, 2), ("m16n8k16", "f64", "f64", 4, 8, 4),
    ("m8n8k16", "s32", "s8", 2, 1, 1), ("m16n8k16", "s32", "s8", 4, 2, 1), ("m16n8k32", "s32", "s8", 4, 4, 2),
    ("m16n8k32", "f32", "e4m3", 4, 4, 2), ("m16n8k32", "f32", "e5m2", 4, 4, 2),
    ("m16n8k32", "f16", "e4m3", 2, 4, 2), ("m16n8k16", "f32", "e4m3", 4, 2, 1),
]  # fmt: skip


def _mma(name, opcode, counts, words, values, **options):
    """Return a case: fragments are loaded word by word, lane after lane; ``words``: bits of (d, a, b) registers."""
    (nd, na, nb), (wd, wa, wb) = counts, words
    at, loads = 0, []
    for letter, count, bits in (("a", na, wa), ("b", nb, wb), ("c", nd, wd)):
        for i in range(count):
            loads.append(
                f"mad.wide.u32 %p, %thread, {bits // 8}, %in; ld.global.b{bits} %{letter}{i}, [%p+{at}];"
            )
            at += 32 * bits // 8
    stores = [
        f"mad.wide.u32 %p, %thread, {wd // 8}, %out; st.global.b{wd} [%p+{i * 32 * wd // 8}], %d{i};"
        for i in range(nd)
    ]
    body = f""".reg .b64 %p; .reg .b{wa} %a<{na}>; .reg .b{wb} %b<{nb}>; .reg .b{wd} %c<{nd}>, %d<{nd}>;
{chr(10).join(loads)}
mma.sync.aligned.{opcode} {list_of("d", nd)}, {list_of("a", na)}, {list_of("b", nb)}, {list_of("c", nd)};
{chr(10).join(stores)}"""
    data = np.concatenate([v.view(np.uint8) for v in values])
    assert data.size == at, (name, data.size, at)
    return Case(name, body, data, nd * 32 * wd // 8, **options)


def mma():
    """mma.sync: sums that are exact, ordinary ones, and ones that show what the tensor core cuts off."""
    for shape, d, a, nd, na, nb in _FORMS:
        pairs = [(a, a)] + ([("u8", "s8"), ("s8", "u8"), ("u8", "u8")] if a == "s8" else [])
        pairs += [("e4m3", "e5m2")] if a == "e4m3" and d == "f32" else []
        word = 64 if a == "f64" else 32
        wd = 64 if d == "f64" else 32
        size = np.dtype(DTYPE[a]).itemsize
        for left, right in pairs:
            opcode = f"{shape}.row.col.{d}.{left}.{right}.{d}"
            counts, words = (nd, na, nb), (wd, word, word)
            numbers = [32 * n * word // 8 // size for n in (na, nb)] + [
                32 * nd * wd // 8 // np.dtype(DTYPE[d]).itemsize
            ]

            def make(maker, numbers=numbers, left=left, right=right, d=d):
                return [maker(kind, n, 5 + i) for i, (kind, n) in enumerate(zip((left, right, d), numbers))]

            yield _mma(f"mma.{opcode} exact", opcode, counts, words, make(small_integers))
            if d == "s32":
                wide = make(lambda kind, n, seed: random_bits(n, seed).astype(np.uint32).astype(DTYPE[kind]))
                for saturate in ("", ".satfinite"):
                    op = opcode.replace(".row.col", f".row.col{saturate}")
                    yield _mma(f"mma.{op} all values", op, counts, words, wide)
                continue
            yield _mma(f"mma.{opcode} close", opcode, counts, words, make(normal_values))
            yield _mma(f"mma.{opcode} wide", opcode, counts, words, make(wide_values))
            yield _mma(f"mma.{opcode} special", opcode, counts, words, make(special_values))
            if d != "f64":
                yield _mma(f"mma.{opcode} extreme", opcode, counts, words, make(extreme_values))


def cases():
    """Return every case of this family."""
    return [*fragments(), *mma()]
