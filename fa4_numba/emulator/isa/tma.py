"""The TMA engine's tensor copies: boxes of tensors in global memory, to and from shared memory."""

import numpy as np

from ...errors import MemoryFault
from ...layout import TensorMapSpec
from ..machine.memory import RANK_SHIFT
from ..ptx.module import Vector
from .bulk_copy import bytes_reduction
from .registry import effect
from .synchronisation import first_address
from .tensor_maps import tensor_map

_ROWS = ("tile::gather4", "tile::scatter4")  # four rows of a matrix, at indices of their own


_KIND = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


def _mode(ins) -> bool:
    """Return whether the copy names four rows (gather4, scatter4) instead of a box."""
    for part in ins.parts:
        if part.startswith("im2col"):
            raise ValueError(f".{part} is not implemented: only tiled copies")
    return any(part in _ROWS for part in ins.parts)


class _Box:
    """The tensor map and coordinates of an instruction, read when it runs."""

    def __init__(self, warp, ins, tensor):
        self.warp, self.ins = warp, ins
        self.rank = int(next(p[0] for p in ins.parts if len(p) == 2 and p[0].isdigit() and p[1] == "d"))
        self.by_rows = _mode(ins)
        self.map_address = first_address(warp, tensor)
        coordinates = tensor.coordinates
        items = coordinates.items if isinstance(coordinates, Vector) else (coordinates,)
        if len(items) != (5 if self.by_rows else self.rank):
            raise ValueError(f"{len(items)} coordinates for {self.rank} dimensions")
        self.coordinates = [warp.scalar(c, np.int32) for c in items]

    def read(self, what) -> tuple[TensorMapSpec, tuple, tuple | None, int]:
        """Return (map, coordinates, rows or None, bytes of the copy, bytes that it covers in shared memory)."""
        spec = tensor_map(self.warp, self.map_address(), what)
        if spec.rank != self.rank:
            raise MemoryFault(f"{what}: the tensor map has rank {spec.rank}, the copy {self.rank}")
        at = tuple(c() for c in self.coordinates)
        if at[0] * spec.element_bytes % 16:
            raise MemoryFault(
                f"{what}: coordinate {at[0]} along dimension 0 is {at[0] * spec.element_bytes} bytes: it must be a "
                "multiple of 16 bytes (a GPU reports an illegal instruction)"
            )
        if not self.by_rows:
            return spec, at, None, spec.box_bytes, spec.rows * spec.row_pitch
        if spec.box[1:] != (1,):
            raise MemoryFault(f"{what}: a copy of four rows needs a box of one row, not {spec.box}")
        return spec, at[:1], at[1:], 4 * spec.row_bytes, 4 * spec.row_pitch


def _check(cta, smem: int, size: int, what) -> None:
    if smem % 128:
        raise MemoryFault(f"{what}: shared address {smem:#x} of a tensor copy must be a multiple of 128")
    cta.check_shared(smem, size, what)


@effect("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
def tensor_copy(warp, ins):
    """Copy one box: global → shared (completing bytes on an mbarrier), or shared → global (in a bulk group).

    ``cp.reduce`` combines a box in shared memory with global memory.
    """
    loads = next(p for p in ins.parts if p.startswith(("global", "shared"))).startswith("shared")
    return _load(warp, ins) if loads else _store(warp, ins)


def _load(warp, ins):
    """Global → shared, of this CTA or another, or with ``.multicast`` of several at the same offset.

    The mbarrier is that of the same CTA as the destination. With ``.cta_group::2`` it may be the pair's other CTA's:
    a multicast then signals, for every destination, the CTA of its pair whose rank's parity the mbarrier has.
    """
    destination, bar = first_address(warp, ins.args[0]), first_address(warp, ins.args[2])
    box, cta = _Box(warp, ins, ins.args[1]), warp.cta
    multicast, pairs = "multicast::cluster" in ins.parts, "cta_group::2" in ins.parts
    mask = warp.scalar(ins.args[3], np.uint16) if multicast else None

    def run():
        what = warp.where(ins)
        spec, start, rows, size, room = box.read(what)
        owner, smem = cta.reach(destination(), what)
        if mask is None:
            targets = [(owner, cta.mbarrier(bar(), what))]
        else:
            targets = _multicast(cta, mask(), bar(), pairs, what)
        for target, barrier in targets:
            _check(target, smem, room, what)
            box_in = (spec, smem, start, rows)
            _issue_load(cta, target, barrier, box_in, (size, room), what, warp.where(ins, "TMA load of "))

    return run


def _multicast(cta, mask: int, bar: int, pairs: bool, what) -> list:
    """Return (CTA, its mbarrier) for every CTA in the mask."""
    bar_cta, offset = cta.reach(bar, what)
    targets = []
    for rank in cta.ranks_of(mask, what):
        signalled = rank & ~1 | bar_cta.rank & 1 if pairs else rank
        targets.append((cta.cluster.ctas[rank], cta.mbarrier(signalled << RANK_SHIFT | offset, what)))
    return targets


def _issue_load(cta, target, barrier, box: tuple, sizes: tuple, what, who) -> None:
    size, room = sizes

    def land():
        target.touch_shared(box[1], room, what, write=True)
        copy_in(target, *box, what)
        barrier.land(size, who)
        target.event("TMA", f"load {barrier.name}")

    cta.issue(("tma", id(land)), land, f"TMA load to {barrier.name}", size)


def _store(warp, ins):
    """Shared → global: what lies outside of the tensor is not written."""
    reduces = ins.parts[1] == "reduce"
    box, source, cta = _Box(warp, ins, ins.args[0]), first_address(warp, ins.args[1]), warp.cta

    def run():
        what = warp.where(ins)
        spec, start, rows, size, room = box.read(what)
        smem = cta.own(source(), what)
        _check(cta, smem, room, what)
        combine = bytes_reduction(ins, _KIND[spec.dtype]) if reduces else None
        groups = warp.bulk_groups
        group = groups.begin()

        def land():
            cta.touch_shared(smem, room, what)
            copy_out(cta, spec, smem, start, rows, what, combine)
            groups.end(group)
            cta.event("TMA", "store")

        cta.issue(("tma store", id(land)), land, "TMA store", size)

    return run


@effect("cp.async.bulk.prefetch.tensor")
def prefetch_box(warp, ins):
    """Bring a box into the L2 cache: nothing that a program can see, but the map must be one."""
    box = _Box(warp, ins, ins.args[0])

    def run():
        box.read(warp.where(ins))

    return run


def _global_rows(cta, spec: TensorMapSpec, start: tuple, rows, what, write: bool):
    """Return (bytes, row offsets in them, which rows are inside, first and last byte of a row), or None: all outside."""
    offsets, first, last = spec.box_rows(start, rows)
    size, inside = spec.element_bytes, offsets >= 0
    if first >= last or not inside.any():
        return None
    begin, chosen = spec.address + (start[0] + first) * size, offsets[inside]
    low, high = begin + int(chosen.min()), begin + int(chosen.max()) + (last - first) * size
    data, base = cta.machine.memory.find(low, high, what, write=write)
    return data, chosen + (begin - low) + base, inside, first * size, last * size


def _whole(cta, spec: TensorMapSpec, start: tuple, rows, what, write: bool) -> np.ndarray | None:
    """Return a view of the box's bytes if all of it lies in the tensor."""
    place = spec.whole(start) if rows is None else None
    if place is None:
        return None
    low = spec.address + place[0]
    return spec.box_view(*cta.machine.memory.find(low, low + place[1], what, write=write))


def copy_in(cta, spec: TensorMapSpec, smem: int, start: tuple, rows, what) -> None:
    """Global box → shared memory, swizzled; what lies outside of the tensor is filled."""
    pieces = spec.smem_pieces(smem, None if rows is None else len(rows))
    box = _whole(cta, spec, start, rows, what, False)
    if box is None:
        box = np.empty((len(pieces), spec.row_bytes), np.uint8)
        box.reshape(-1, spec.element_bytes)[...] = spec.fill
        found = _global_rows(cta, spec, start, rows, what, False)
        if found is not None:
            data, offsets, inside, first, last = found
            box[inside, first:last] = data[offsets[:, None] + np.arange(last - first)]
    cta.shared128[pieces >> 4] = np.ascontiguousarray(box).view(np.complex128).reshape(pieces.shape)


def copy_out(cta, spec: TensorMapSpec, smem: int, start: tuple, rows, what, combine=None) -> None:
    """Shared memory → global box; ``combine(old bytes, new bytes)`` gives what is written, default: the new."""
    pieces = spec.smem_pieces(smem, None if rows is None else len(rows))
    box = cta.shared128[pieces >> 4].view(np.uint8)
    target = _whole(cta, spec, start, rows, what, True)
    if target is not None:
        new = box.reshape(target.shape)
        target[...] = new if combine is None else combine(np.ascontiguousarray(target), new)
        return
    found = _global_rows(cta, spec, start, rows, what, True)
    if found is not None:
        data, offsets, inside, first, last = found
        at, new = offsets[:, None] + np.arange(last - first), box[inside, first:last]
        data[at] = new if combine is None else combine(data[at], new)
