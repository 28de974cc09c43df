"""The TMA engine: tensor copies between global and shared memory, and bulk groups."""

import numpy as np

from ...errors import ArrayError, MemoryFault
from ...layout import TensorMapSpec
from ..machine.memory import PARAM_WINDOW
from ..machine.waiting import BulkWait
from .registry import effect
from .synchronisation import first_address


def _tensor_map(warp, address: int, what: str) -> TensorMapSpec:
    """Read the tensor map at a generic address: a kernel parameter, or global memory."""
    machine = warp.cta.machine
    if PARAM_WINDOW <= address < PARAM_WINDOW + (1 << 16):
        data = machine.param_bytes[address - PARAM_WINDOW :][:128]
    else:
        data, offset = machine.memory.find(address, address + 128, what)
        data = data[offset : offset + 128]
    key = data.tobytes()
    if key not in machine.tensor_maps:
        try:
            machine.tensor_maps[key] = TensorMapSpec.unpack(key)
        except ArrayError as error:
            raise MemoryFault(f"{what}: {error}") from error
    return machine.tensor_maps[key]


@effect("cp.async.bulk.tensor")
def tensor_copy(warp, ins):
    """Copy one box: global → shared (completing bytes on an mbarrier), or shared → global (in a bulk group)."""
    if "tile" not in ins.parts and any("im2col" in p for p in ins.parts):
        raise ValueError("only tiled mode")
    for modifier in ("multicast::cluster", "cta_group::2", "tile::gather4", "tile::scatter4"):
        if modifier in ins.parts:
            raise ValueError(f".{modifier} is not implemented yet")
    rank = int(ins.parts[4][0])
    loads = ins.parts[5].startswith("shared")
    return _load(warp, ins, rank) if loads else _store(warp, ins, rank)


def _copy_operands(warp, ins, rank: int, smem_operand, tensor):
    """Return a function that reads a copy's operands: (place, tensor map, CTA, shared offset, coordinates), checked."""
    smem, map_address = first_address(warp, smem_operand), first_address(warp, tensor)
    coordinates = [warp.scalar(c, np.int32) for c in tensor.coordinates.items]

    def read():
        what = warp.where(ins)
        spec = _tensor_map(warp, map_address(), what)
        owner, at = warp.cta.reach(smem(), what)
        _check(owner, spec, rank, at, what)
        return what, spec, owner, at, tuple(c() for c in coordinates)

    return read


def _load(warp, ins, rank: int):
    destination, tensor, bar = ins.args[0], ins.args[1], ins.args[2]
    read, bar_address = _copy_operands(warp, ins, rank, destination, tensor), first_address(warp, bar)
    cta = warp.cta

    def run():
        what, spec, owner, at, start = read()
        barrier = cta.mbarrier(bar_address(), what)

        def land():
            copy_in(owner, spec, at, start, what)
            barrier.land(spec.box_bytes, warp.where(ins, "TMA load of "))
            cta.event("TMA", f"load {barrier.name}")

        cta.issue(("tma", id(land)), land, f"TMA load to {barrier.name}")

    return run


def _check(cta, spec: TensorMapSpec, rank: int, smem: int, what: str):
    if spec.rank != rank:
        raise MemoryFault(f"{what}: the tensor map has rank {spec.rank}, the copy {rank}")
    if smem % 128:
        raise MemoryFault(f"{what}: shared address {smem:#x} of a tensor copy must be a multiple of 128")
    cta.touch_shared(smem, spec.box_bytes, what)


def _global_rows(cta, spec: TensorMapSpec, coordinates, what: str, write: bool):
    """Return (bytes, row offsets or −1, first byte, last byte, byte offset of the row start in the row)."""
    offsets, first, last = spec.box_rows(coordinates)
    size = spec.element_bytes
    inside = offsets >= 0
    if first >= last or not inside.any():
        return None
    start = spec.address + (coordinates[0] + first) * size
    low, high = start + int(offsets[inside].min()), start + int(offsets[inside].max()) + (last - first) * size
    data, base = cta.machine.memory.find(low, high, what, write=write)
    return data, offsets + (start - low) + base, inside, first * size, last * size


def copy_in(cta, spec: TensorMapSpec, smem: int, coordinates, what: str) -> None:
    """Global box → shared memory: dense, swizzled, zeros outside of the tensor."""
    pieces = spec.smem_pieces(smem)
    row_bytes = spec.box[0] * spec.element_bytes
    box = np.zeros((len(pieces), row_bytes), np.uint8)
    found = _global_rows(cta, spec, coordinates, what, False)
    if found is not None:
        data, offsets, inside, first, last = found
        box[inside, first:last] = data[offsets[inside][:, None] + np.arange(last - first)]
    cta.shared16[pieces >> 4] = box.view(np.uint64).reshape(*pieces.shape, 2)


def copy_out(cta, spec: TensorMapSpec, smem: int, coordinates, what: str) -> None:
    """Shared memory → global box; what lies outside of the tensor is not written."""
    pieces = spec.smem_pieces(smem)
    box = cta.shared16[pieces >> 4].view(np.uint8).reshape(len(pieces), -1)
    found = _global_rows(cta, spec, coordinates, what, True)
    if found is not None:
        data, offsets, inside, first, last = found
        data[offsets[inside][:, None] + np.arange(last - first)] = box[inside, first:last]


def _store(warp, ins, rank: int):
    tensor, source = ins.args[0], ins.args[1]
    read = _copy_operands(warp, ins, rank, source, tensor)
    cta = warp.cta

    def run():
        what, spec, _, at, start = read()
        group = current_group(warp)
        group["open"] += 1

        def land():
            copy_out(cta, spec, at, start, what)
            group["open"] -= 1
            cta.event("TMA", "store")

        cta.issue(("tma store", id(land)), land, "TMA store")

    return run


def current_group(warp) -> dict:
    """Return the bulk group that the warp's copies join until it commits."""
    if not warp.bulk_groups or warp.bulk_groups[-1]["committed"]:
        warp.bulk_groups.append({"open": 0, "committed": False})
    return warp.bulk_groups[-1]


@effect("cp.async.bulk.commit_group")
def commit_group(warp, ins):
    """Close the current bulk group."""

    def run():
        current_group(warp)["committed"] = True

    return run


@effect("cp.async.bulk.wait_group")
def wait_group(warp, ins):
    """Wait until at most n groups are incomplete (``.read``: have not read their source yet; here the same)."""
    allowed = int(ins.args[0].value)

    def run():
        wait = BulkWait(warp, allowed)
        return None if wait.ready() else wait

    return run
