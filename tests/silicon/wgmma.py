"""wgmma.mma_async: shapes, types, operands in registers and in shared memory, layouts, transposition, sign, scale."""

import numpy as np

from fa4_numba.layout import Major, SmemDesc, Swizzle, operand_byte_address

from .case import Case
from .matrices import (
    DTYPE,
    extreme_values,
    list_of,
    normal_values,
    small_integers,
    special_values,
    wide_values,
)

B_BASE = 32768  # A at 0, B here: both on a kilobyte


def _place(matrix: np.ndarray, base: int, major: Major, swizzle: Swizzle) -> tuple[np.ndarray, tuple]:
    """Return (shared-memory image relative to ``base``, (LBO, SBO)) of an operand (rows, depth)."""
    rows, depth = matrix.shape
    size, span = matrix.itemsize, swizzle.span_bytes
    if major is Major.K:
        lbo, sbo = (rows * 16, 128) if swizzle is Swizzle.NONE else (16, 8 * span)
        address = lambda desc: operand_byte_address(
            desc, major, np.arange(rows)[:, None], np.arange(depth)[None, :] * size
        )
    else:
        chunks = -(-rows * size // span)
        if swizzle is Swizzle.NONE:  # SBO between chunks along MN, LBO between groups of 8 depths
            lbo, sbo = chunks * 128, 128
        else:
            lbo, sbo = 8 * span, chunks * 8 * span
        address = lambda desc: operand_byte_address(
            desc, major, np.arange(rows)[:, None] * size, np.arange(depth)[None, :]
        )
    at = address(SmemDesc(base, lbo, sbo, swizzle)) - base
    image = np.zeros(int(at.max()) + size, np.uint8)
    for byte in range(size):
        image[at + byte] = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, depth, size)[:, :, byte]
    return image, (lbo, sbo)


def _registers_of(matrix: np.ndarray) -> np.ndarray:
    """Return A (64, depth) as the four 32-bit registers of each of 128 threads: (4, 128)."""
    words = np.ascontiguousarray(matrix).view(np.uint32)  # (64, depth·size/4 = 8)
    thread = np.arange(128)
    row, column = thread // 32 * 16 + thread % 32 // 4, thread % 4
    return np.stack([words[row + 8 * (i % 2), column + 4 * (i // 2)] for i in range(4)])


def _wgmma(
    name, n, a_kind, b_kind, d_kind, make, *, source="SS", swizzle=Swizzle.B128, a_major=Major.K, b_major=Major.K,
    signs=(1, 1), scale=1, steps=1,
):  # fmt: skip
    """Return a case: D starts as C, then ``steps`` multiplies of the same operands are committed and waited for."""
    size = np.dtype(DTYPE[a_kind]).itemsize
    depth = 32 // size
    a, b = make(a_kind, 64 * depth, 3).reshape(64, depth), make(b_kind, n * depth, 4).reshape(n, depth)
    b_image, b_pitch = _place(b, B_BASE, b_major, swizzle)
    image = np.zeros(B_BASE + -(-b_image.size // 16) * 16, np.uint8)
    image[B_BASE : B_BASE + b_image.size] = b_image
    a_pitch = (16, 16)
    if source == "SS":
        a_image, a_pitch = _place(a, 0, a_major, swizzle)
        image[: a_image.size] = a_image
    registers = n // 2 if d_kind != "f16" else n // 4
    c = make(d_kind, 64 * n, 5)
    a_words = _registers_of(a)
    data = np.concatenate([image, c.view(np.uint8), a_words.reshape(-1).view(np.uint8)])
    d_at, a_at = image.size, image.size + c.nbytes
    descriptor = lambda base, pitch: SmemDesc(base, *pitch, swizzle).pack() & ~(3 << 46)
    d = list_of("d", registers)
    left = list_of("a", 4) if source == "RS" else "%da"
    floats = d_kind != "s32"
    immediates = f", {signs[0]}, {signs[1]}" if floats else ""
    if size == 2:
        immediates += f", {b_major.value}" if source == "RS" else f", {a_major.value}, {b_major.value}"
    k = depth
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d_kind}.{a_kind}.{b_kind}"
    multiply = f"{opcode} {d}, {left}, %db, %scale{immediates};\n"
    body = f""".reg .b64 %p, %q, %da, %db, %base; .reg .b32 %i, %s, %r<4>, %d<{registers}>, %a<4>; .reg .pred %more, %scale;
mov.u32 %i, %thread;
FILL: shl.b32 %s, %i, 4; cvt.u64.u32 %p, %s; add.s64 %p, %in, %p; add.s32 %s, %s, %smem;
ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%p]; st.shared.v4.b32 [%s], {{%r0, %r1, %r2, %r3}};
add.s32 %i, %i, 128; setp.lt.u32 %more, %i, {image.size // 16}; @%more bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
mad.wide.u32 %p, %thread, 4, %in; mad.wide.u32 %q, %thread, 4, %out;
{" ".join(f"ld.global.b32 %d{i}, [%p+{d_at + 512 * i}];" for i in range(registers))}
{" ".join(f"ld.global.b32 %a{i}, [%p+{a_at + 512 * i}];" for i in range(4))}
cvt.u64.u32 %base, %smem; shr.u64 %base, %base, 4;
add.s64 %da, %base, {descriptor(0, a_pitch)}; add.s64 %db, %base, {descriptor(B_BASE, b_pitch)};
setp.ne.u32 %scale, {scale}, 0;
wgmma.fence.sync.aligned;
{multiply * steps}wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
{" ".join(f"st.global.b32 [%q+{512 * i}], %d{i};" for i in range(registers))}"""
    return Case(name, body, data, 512 * registers, 128, shared_bytes=image.size)


_TYPES = [  # d, a, b
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e4m3"), ("f32", "e4m3", "e5m2"), ("f32", "e5m2", "e5m2"), ("f16", "e4m3", "e4m3"),
    ("s32", "s8", "s8"), ("s32", "u8", "s8"), ("s32", "u8", "u8"),
]  # fmt: skip


def cases():
    """Return every case of this family."""
    out = []
    for d, a, b in _TYPES:
        for n in (8, 16, 64) if d != "f32" or a != "bf16" else range(8, 257, 8):
            for source in ("SS", "RS"):
                if d == "s32" and n % 16 and n != 8:
                    continue
                name = f"wgmma.n{n}.{d}.{a}.{b} {source}"
                out.append(_wgmma(name, n, a, b, d, small_integers, source=source))
        name = f"wgmma.{d}.{a}.{b}"
        if d == "s32":
            full = lambda kind, count, seed: small_integers(kind, count, seed, 127)
            out.append(_wgmma(f"{name} large values", 32, a, b, d, full))
            continue
        out.append(_wgmma(f"{name} close", 32, a, b, d, normal_values, steps=4))
        out.append(_wgmma(f"{name} wide", 32, a, b, d, wide_values))
        out.append(_wgmma(f"{name} extreme", 32, a, b, d, extreme_values))
        out.append(_wgmma(f"{name} special", 16, a, b, d, special_values))
        out.append(_wgmma(f"{name} scale-d 0", 16, a, b, d, small_integers, scale=0))
        for signs in ((-1, 1), (1, -1), (-1, -1)):
            for source in ("SS", "RS"):
                out.append(
                    _wgmma(
                        f"{name} signs {signs} {source}",
                        16,
                        a,
                        b,
                        d,
                        small_integers,
                        signs=signs,
                        source=source,
                    )
                )
    for swizzle in Swizzle:
        for a, d in (("bf16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("s8", "s32")):
            out.append(
                _wgmma(f"wgmma.{a} {swizzle.value} K-major", 64, a, a, d, small_integers, swizzle=swizzle)
            )
        for a_major, b_major in ((Major.MN, Major.K), (Major.K, Major.MN), (Major.MN, Major.MN)):
            name = f"wgmma.f16 {swizzle.value} A {a_major.name}-major B {b_major.name}-major"
            options = {"swizzle": swizzle, "a_major": a_major, "b_major": b_major}
            out.append(_wgmma(name, 128, "f16", "f16", "f32", small_integers, **options))
        name = f"wgmma.bf16 {swizzle.value} RS B MN-major"
        out.append(
            _wgmma(
                name,
                64,
                "bf16",
                "bf16",
                "f32",
                small_integers,
                source="RS",
                swizzle=swizzle,
                b_major=Major.MN,
            )
        )
    return out
