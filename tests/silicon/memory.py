"""Loads, stores and atomics of threads, in every state space."""

from itertools import product

import numpy as np

from .case import BITS, Case, lanes
from .values import operand

COUNT = 128
_VECTORS = {"v2": "{%r0, %r1}", "v4": "{%r0, %r1, %r2, %r3}", "": "%r0"}


def _raw(seed: int, size: int) -> np.ndarray:
    return operand("b64", seed, size // 8).view(np.uint8)


def transfers():
    """Copies in → (shared or local memory) → out, by every width and vector, narrow types extended."""
    for space, vector, kind in product(
        ("global", "shared", "local", "generic"),
        _VECTORS,
        ("b8", "s8", "u16", "s16", "b32", "f32", "b64", "f64"),
    ):
        count = int(vector[1:] or 1)
        size = BITS[kind] // 8 * count
        if size > 16:
            continue
        wide = 64 if BITS[kind] == 64 else 32
        dot = f".{vector}" if vector else ""
        registers = _VECTORS[vector]
        register_kind = "f" if kind[0] == "f" else "b"
        stores = " ".join(f"st.global.b{wide} [%q+{i * wide // 8}], %r{i};" for i in range(count))
        through = {
            "global": ("", f"ld.global{dot}.{kind} {registers}, [%p];"),
            "generic": ("", f"cvta.global.u64 %p, %p; ld{dot}.{kind} {registers}, [%p];"),
            "shared": (
                f"mad.lo.u32 %s, %thread, {size}, %smem;",
                f"ld.global{dot}.{kind} {registers}, [%p]; st.shared{dot}.{kind} [%s], {registers};"
                f" bar.sync 0; xor.b32 %s, %s, {size}; ld.shared{dot}.{kind} {registers}, [%s];",
            ),
            "local": (
                ".local .align 16 .b8 mine[64]; mov.u32 %s, mine;",
                f"ld.global{dot}.{kind} {registers}, [%p]; st.local{dot}.{kind} [%s+16], {registers};"
                f" ld.local{dot}.{kind} {registers}, [%s+16];",
            ),
        }[space]
        body = f""".reg .b64 %p, %q; .reg .b32 %s; .reg .{register_kind}{wide} %r<4>; {through[0]}
mad.wide.u32 %p, %gid, {size}, %in; mad.wide.u32 %q, %gid, {count * wide // 8}, %out;
{through[1]} {stores}"""
        yield Case(
            f"ld/st.{space}{dot}.{kind}",
            body,
            _raw(1, COUNT * size),
            COUNT * count * wide // 8,
            COUNT,
            shared_bytes=4096,
        )


def modifiers():
    """Cache and ordering modifiers change no value."""
    loads = (
        "ld.volatile.global",
        "ld.relaxed.gpu.global",
        "ld.acquire.sys.global",
        "ld.global.nc",
        "ld.global.ca",
    )
    loads += (
        "ld.global.L1::no_allocate",
        "ld.global.nc.L1::evict_last.L2::128B",
        "ld.weak.global.cg",
        "ldu.global",
    )
    for load in loads:
        yield lanes(
            load,
            f"mad.wide.u32 %p, %gid, 4, %in; {load}.b32 %x, [%p];",
            ["b32"],
            [("b32", operand("b32", 2, COUNT))],
        )
    for store in (
        "st.volatile.global",
        "st.relaxed.cluster.global",
        "st.release.gpu.global",
        "st.global.wt",
        "st.weak.global.cs",
    ):
        text = f"mad.wide.u32 %p, %gid, 4, %out; {store}.b32 [%p], %a; mov.b32 %x, %a;"
        yield lanes(store, text, ["b32"], [("b32", operand("b32", 3, COUNT))])


def _atomic_types(op):
    return {
        "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
        "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
        "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
        "exch": ("b32", "b64"), "inc": ("u32",), "dec": ("u32",), "cas": ("b16", "b32", "b64"),
    }[op]  # fmt: skip


def atomics():
    """atom and red on global and shared memory, one location per lane: old value and new value."""
    for op, space in product(
        ("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"), ("global", "shared")
    ):
        for kind in _atomic_types(op):
            bits = BITS[kind]
            half = ".noftz" if kind in ("f16", "bf16", "f16x2", "bf16x2") else ""
            extra = ", %c" if op == "cas" else ""
            values = [(kind, operand(kind, 4 + i, 256, i, 3)) for i in range(3 if op == "cas" else 2)]
            if op == "cas":  # every other lane finds what it expects
                values[1] = (
                    kind,
                    np.where(np.arange(256) % 2, values[0][1], values[1][1]).astype(values[1][1].dtype),
                )
            address = {
                "global": f"mad.wide.u32 %m, %gid, {bits // 8}, %out; add.s64 %m, %m, {3 * 256 * bits // 8};",
                "shared": f"mad.lo.u32 %s, %thread, {bits // 8}, %smem; cvt.u64.u32 %m, %s;",
            }[space]
            form = f"atom.relaxed.gpu.{space}.{op}{half}.{kind} %x, [%m], %b{extra};"
            text = f""".reg .b64 %m; .reg .b32 %s; {address} st.{space}.b{bits} [%m], %a;
{form} ld.{space}.b{bits} %y, [%m]; mov.b{bits} %z, %b;"""
            case = lanes(f"atom.{space}.{op}.{kind}", text, [kind] * 3, values, shared_bytes=4096)
            yield Case(**{**case.__dict__, "out_bytes": case.out_bytes + 256 * bits // 8})
            if op not in ("exch", "cas"):
                text = text.replace(
                    form, f"red.relaxed.gpu.{space}.{op}{half}.{kind} [%m], %b; mov.b{bits} %x, %a;"
                )
                case = lanes(f"red.{space}.{op}.{kind}", text, [kind] * 3, values, shared_bytes=4096)
                yield Case(**{**case.__dict__, "out_bytes": case.out_bytes + 256 * bits // 8})


def contended():
    """Many lanes on one location: only the final value is defined, and integer sums do not depend on the order."""
    for op, kind in product(("add", "min", "max", "and", "or", "xor"), ("u32", "u64")):
        ptx_kind = f"b{kind[1:]}" if op in ("and", "or", "xor") else kind
        text = f"""mov.u64 %x, 0; .reg .pred %first; setp.eq.u32 %first, %thread, 0; .reg .b{kind[1:]} %v; cvt.{kind}.u64 %v, %a;
@%first st.shared.u64 [%smem], 0xff; bar.sync 0; red.shared.{op}.{ptx_kind} [%smem], %v; bar.sync 0; ld.shared.u64 %x, [%smem];"""
        yield lanes(
            f"red.shared.{op}.{kind} contended",
            text,
            ["u64"],
            [("u64", operand("u64", 8, 128))],
            shared_bytes=64,
        )


def vectors():
    """atom and red on vectors in global memory (sm_90)."""
    for kind, count in [
        ("f32", 2),
        ("f32", 4),
        ("f16x2", 2),
        ("f16x2", 4),
        ("bf16x2", 2),
        ("bf16x2", 4),
        ("f16", 8),
        ("bf16", 4),
    ]:
        bits, ops = BITS[kind], ("add",) if kind == "f32" else ("add", "min", "max")
        size = count * bits // 8
        registers = ["{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}" for name in "abx"]
        half = "" if kind == "f32" else ".noftz"
        vector, width = (f".v{size // 4}", 32) if size <= 16 else ("", 0)
        words = "{" + ", ".join(f"%w{i}" for i in range(size // 4)) + "}"
        raw = [operand(kind, 3 + i, 128 * count, i, 2) for i in range(2)]
        for op, form in product(ops, ("atom", "red")):
            old = f"{registers[2]}, " if form == "atom" else ""
            parts = 32 // bits
            split = lambda name, count=count, parts=parts: " ".join(  # noqa: E731
                f"mov.b32 {{%{name}{2 * i}, %{name}{2 * i + 1}}}, %w{i};"
                if parts == 2
                else f"mov.b32 %{name}{i}, %w{i};"
                for i in range(count // parts)
            )
            join = " ".join(
                f"mov.b32 %w{i}, {{%x{2 * i}, %x{2 * i + 1}}};" if parts == 2 else f"mov.b32 %w{i}, %x{i};"
                for i in range(count // parts)
            )
            body = f""".reg .b64 %p, %q; .reg .b32 %w<4>; .reg .b{bits} %a<8>, %b<8>, %x<8>;
mad.wide.u32 %p, %gid, {size}, %in; mad.wide.u32 %q, %gid, {size}, %out;
ld.global{vector}.b32 {words}, [%p]; st.global{vector}.b32 [%q], {words}; {split("x")}
ld.global{vector}.b32 {words}, [%p+{128 * size}]; {split("b")}
{form}.global.{op}{half}.v{count}.{kind} {old}[%q], {registers[1]};
{join} st.global{vector}.b32 [%q+{128 * size}], {words};"""
            data = np.concatenate([x.view(np.uint8) for x in raw])
            yield Case(f"{form}.{op}.v{count}.{kind}", body, data, 2 * 128 * size, 128)


def cases():
    """Return every case of this family."""
    return [*transfers(), *modifiers(), *atomics(), *contended(), *vectors()]
