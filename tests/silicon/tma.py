"""TMA: loads, stores and reductions of boxes in 1 to 5 dimensions, swizzled, partly outside; bulk copies without a map."""

from itertools import product

import numpy as np

from fa4_numba.layout import Swizzle, TensorMapSpec

from .case import BITS, Case
from .values import operand, random_bits

SHAPES = {1: (200,), 2: (72, 10), 3: (40, 6, 5), 4: (24, 5, 4, 3), 5: (16, 3, 4, 2, 3)}
BOXES = {1: (64,), 2: (32, 8), 3: (16, 4, 3), 4: (16, 2, 3, 2), 5: (16, 2, 2, 2, 2)}
STARTS = {  # inside, over the end, before the beginning, outside
    1: [(8,), (160,), (-24,), (4096,)],
    2: [(8, 1), (48, 5), (-8, -3), (8, 64)],
    3: [(8, 1, 1), (32, 3, 3), (-8, -1, -2), (0, 0, 9)],
    4: [(8, 1, 0, 1), (16, 4, 2, 2), (-8, -1, -1, -1), (0, 0, -7, 0)],
    5: [(0, 1, 1, 0, 1), (8, 2, 3, 1, 2), (-8, -1, -1, -1, -1), (0, 0, 0, 0, 3)],
}
BARRIER = 16384  # its offset in shared memory


def spec(dtype: str, shape, box, swizzle=Swizzle.NONE, address=0) -> TensorMapSpec:
    """Return the map of a packed array whose rows are padded to 16 bytes."""
    size = np.dtype(getattr(np, dtype, "u2")).itemsize if dtype != "bfloat16" else 2
    pitch, strides = -(-shape[0] * size // 16) * 16, []
    for n in shape[1:]:
        strides.append(pitch)
        pitch *= n
    return TensorMapSpec(dtype, address, tuple(shape), tuple(strides), tuple(box), swizzle)


def array_bytes(tensor: TensorMapSpec) -> int:
    """Return how many bytes the array covers."""
    pitches = (*tensor.strides_bytes, tensor.strides_bytes[-1] * tensor.shape[-1] if tensor.rank > 1 else 0)
    return pitches[-1] if tensor.rank > 1 else -(-tensor.shape[0] * tensor.element_bytes // 16) * 16


SETUP = f""".reg .b64 %p, %q, %m; .reg .b32 %i, %s, %bar, %r<4>; .reg .pred %lead, %more, %done;
setp.eq.u32 %lead, %thread, 0; add.s32 %bar, %smem, {BARRIER}; mov.b64 %m, map0; cvta.param.u64 %m, %m;
@%lead mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra WAIT;"


def fill(size: int, byte: int = 0x77) -> str:
    """Return PTX that fills the first bytes of shared memory (they would be whatever the last kernel left)."""
    word = byte * 0x01010101
    return f"""mov.u32 %i, %thread;
FILL: shl.b32 %s, %i, 2; add.s32 %s, %s, %smem; st.shared.b32 [%s], {word};
add.s32 %i, %i, %threads; setp.lt.u32 %more, %i, {size // 4}; @%more bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;"""


def dump(size: int, at: str = "0") -> str:
    """Return PTX that copies shared memory to the output."""
    return f"""mov.u32 %i, %thread;
DUMP: shl.b32 %s, %i, 2; cvt.u64.u32 %p, %s; add.s64 %p, %out, %p; add.s32 %s, %s, %smem; add.s32 %s, %s, {at};
ld.shared.b32 %r0, [%s]; st.global.b32 [%p], %r0;
add.s32 %i, %i, %threads; setp.lt.u32 %more, %i, {size // 4}; @%more bra DUMP;"""


def copy_to_shared(size: int) -> str:
    """Return PTX that copies the input to shared memory."""
    return f"""mov.u32 %i, %thread;
PUT: shl.b32 %s, %i, 2; cvt.u64.u32 %p, %s; add.s64 %p, %in, %p; add.s32 %s, %s, %smem;
ld.global.b32 %r0, [%p]; st.shared.b32 [%s], %r0;
add.s32 %i, %i, %threads; setp.lt.u32 %more, %i, {size // 4}; @%more bra PUT;
fence.proxy.async.shared::cta; bar.sync 0;"""


def _load(name: str, tensor: TensorMapSpec, start, where: int = 0) -> Case:
    coordinates = ", ".join(map(str, start))
    size = tensor.box_bytes
    data = random_bits(array_bytes(tensor) // 8, 3).view(np.uint8)
    body = f"""{SETUP} {fill(where + size)}
@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {size}; add.s32 %s, %smem, {where};
@%lead cp.async.bulk.tensor.{tensor.rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%m, {{{coordinates}}}], [%bar];
{WAIT} {dump(where + size)}"""
    return Case(name, body, data, where + size, shared_bytes=BARRIER + 64, maps=(("in", tensor),))


def loads():
    """Every rank and place; every element size; every swizzle with boxes narrower than and as wide as its span."""
    for rank, box in BOXES.items():
        for start in STARTS[rank]:
            yield _load(f"tma load {rank}d at {start}", spec("uint16", SHAPES[rank], box), start)
    for dtype in ("uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"):
        tensor = spec(dtype, (72, 10), (32, 8))
        before = -16 // tensor.element_bytes  # a copy starts at a multiple of 16 bytes
        yield _load(f"tma load 2d {dtype}", tensor, (before, 4))
    for swizzle, width in product(Swizzle, (16, 32, 64, 128)):
        if swizzle is not Swizzle.NONE and width > swizzle.span_bytes:
            continue
        for start, where in (((8, 1), 0), ((64, -3), 0), ((0, 0), 128), ((0, 0), 1024 + 512)):
            tensor = spec("uint16", (72, 40), (width // 2, 24), swizzle)
            yield _load(
                f"tma load {swizzle.value} box of {width} bytes at {start} to {where}", tensor, start, where
            )
    for swizzle in Swizzle:
        width = swizzle.span_bytes // 2
        yield _load(
            f"tma load 3d {swizzle.value}", spec("uint16", (72, 7, 5), (width, 5, 3), swizzle), (8, 4, -1)
        )
        yield _load(
            f"tma load 5d {swizzle.value}",
            spec("uint16", (72, 3, 3, 3, 3), (width, 2, 2, 2, 2), swizzle),
            (8, -1, 2, 1, 2),
        )


def _store(name: str, tensor: TensorMapSpec, start, operation: str = "", values=None, initial=None) -> Case:
    """A store or reduction of a box; the array is the output, its first contents come from the input."""
    size, total = tensor.box_bytes, array_bytes(tensor)
    coordinates = ", ".join(map(str, start))
    box = random_bits(-(-size // 8), 5).view(np.uint8)[:size] if values is None else values.view(np.uint8)
    first = np.full(total, 0x33, np.uint8) if initial is None else np.resize(initial.view(np.uint8), total)
    copy = "cp.async.bulk.tensor" if not operation else "cp.reduce.async.bulk.tensor"
    reduce = f".{operation}" if operation else ""
    body = f"""{SETUP} {copy_to_shared(size)} mov.u32 %i, %thread;
FIRST: mad.wide.u32 %p, %i, 4, %in; mad.wide.u32 %q, %i, 4, %out; ld.global.b32 %r0, [%p+{size}]; st.global.b32 [%q], %r0;
add.s32 %i, %i, %threads; setp.lt.u32 %more, %i, {total // 4}; @%more bra FIRST;
fence.proxy.async; bar.sync 0;
@!%lead bra END;
{copy}.{tensor.rank}d.global.shared::cta{reduce}.tile.bulk_group [%m, {{{coordinates}}}], [%smem];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
    return Case(
        name, body, np.concatenate([box, first]), total, shared_bytes=BARRIER + 64, maps=(("out", tensor),)
    )


def stores():
    """Stores and reductions."""
    for rank, box in BOXES.items():
        for start in STARTS[rank]:
            if min(start) < 0:  # an illegal instruction on the H200, though loads may begin before the tensor
                continue
            yield _store(f"tma store {rank}d at {start}", spec("uint16", SHAPES[rank], box), start)
    for swizzle in Swizzle:
        width = swizzle.span_bytes // 2
        for start in ((8, 1), (64, 30)):
            yield _store(
                f"tma store {swizzle.value} at {start}", spec("uint16", (72, 40), (width, 24), swizzle), start
            )
    dtypes = {
        "uint32": "u32",
        "int32": "s32",
        "uint64": "u64",
        "float16": "f16",
        "bfloat16": "bf16",
        "float32": "f32",
    }
    for dtype, operation in product(dtypes, ("add", "min", "max", "inc", "dec", "and", "or", "xor")):
        kind = dtypes[dtype]
        floats = kind in ("f16", "bf16", "f32")
        if (floats and operation not in ("add", "min", "max")) or (kind == "f32" and operation != "add"):
            continue
        if operation in ("inc", "dec") and kind != "u32":
            continue
        if operation in ("and", "or", "xor") and kind == "s32":
            continue
        tensor = spec(dtype, (40, 10), (16, 8))
        box, first = (operand(kind, 6 + i, 512, i, 2)[: 128 if i == 0 else 512] for i in range(2))
        yield _store(f"tma reduce {operation} {dtype}", tensor, (32, 4), operation, box, first)


def bulk():
    """cp.async.bulk and cp.reduce.async.bulk of contiguous bytes, and prefetches."""
    data = random_bits(512, 7).view(np.uint8)
    for size, at in ((16, 0), (1024, 16), (4096 - 16, 0)):
        body = f"""{SETUP.replace(" mov.b64 %m, map0; cvta.param.u64 %m, %m;", "")} {fill(4096)} add.s32 %s, %smem, {at}; add.s64 %p, %in, {at};
@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {size};
@%lead cp.async.bulk.prefetch.L2.global [%p], {size};
@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p], {size}, [%bar];
{WAIT} {dump(4096)}"""
        yield Case(f"bulk load of {size} bytes to {at}", body, data, 4096, shared_bytes=BARRIER + 64)
        body = f"""{SETUP.replace(" mov.b64 %m, map0; cvta.param.u64 %m, %m;", "")} {copy_to_shared(4096)} add.s32 %s, %smem, {at}; add.s64 %p, %out, {at};
@!%lead bra END;
cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], {size};
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; END:"""
        yield Case(f"bulk store of {size} bytes to {at}", body, data, 4096, shared_bytes=BARRIER + 64)
    groups = f"""{SETUP.replace(" mov.b64 %m, map0; cvta.param.u64 %m, %m;", "")} {copy_to_shared(4096)}
@!%lead bra END;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%smem], 1024; cp.async.bulk.commit_group;
add.s64 %p, %out, 1024; cp.async.bulk.global.shared::cta.bulk_group [%p], [%smem], 512; cp.async.bulk.commit_group;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 1; cp.async.bulk.wait_group 0; END:"""
    yield Case("bulk groups, one empty", groups, data, 1536, shared_bytes=BARRIER + 64)
    kinds = [("add", k) for k in ("u32", "s32", "u64", "f32", "f64", "f16", "bf16")] + [
        ("inc", "u32"),
        ("dec", "u32"),
    ]
    kinds += [(op, k) for op in ("min", "max") for k in ("u32", "s32", "u64", "s64", "f16", "bf16")]
    kinds += [(op, k) for op in ("and", "or", "xor") for k in ("b32", "b64")]
    for operation, kind in kinds:
        count = 2048 * 8 // BITS[kind]
        values = [operand(kind, 8 + i, count, i, 2) for i in range(2)]
        noftz = ".noftz" if kind in ("f16", "bf16") and operation == "add" else ""
        body = f"""{SETUP.replace(" mov.b64 %m, map0; cvta.param.u64 %m, %m;", "")} {copy_to_shared(2048)} mov.u32 %i, %thread;
FIRST: mad.wide.u32 %p, %i, 4, %in; mad.wide.u32 %q, %i, 4, %out; ld.global.b32 %r0, [%p+2048]; st.global.b32 [%q], %r0;
add.s32 %i, %i, %threads; setp.lt.u32 %more, %i, 512; @%more bra FIRST;
fence.proxy.async; bar.sync 0;
@!%lead bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{kind} [%out], [%smem], 2048;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
        raw = np.concatenate([v.view(np.uint8) for v in values])
        yield Case(f"bulk reduce {operation}.{kind}", body, raw, 2048, shared_bytes=BARRIER + 64)


def cases():
    """Return every case of this family."""
    return [*loads(), *stores(), *bulk()]
