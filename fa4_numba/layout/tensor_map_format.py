"""The emulator's own format of a tensor map in 128 bytes: every field can be replaced alone, as kernels do."""

import struct

from ..errors import ArrayError
from .swizzle import Swizzle
from .tensor_map import ELEMENT_BYTES, MAX_RANK, TensorMapSpec

MAP_BYTES = 128
_MAGIC = 0x4D414D54  # "TMAM": tells our maps from bytes that are none
# name, struct format of an item, items, what is added to an item when it is stored
_LAYOUT = (
    ("magic", "I", 1, 0),
    ("rank", "B", 1, 0),
    ("elemtype", "B", 1, 0),
    ("swizzle_mode", "B", 1, 0),
    ("fill_mode", "B", 1, 0),
    ("global_address", "Q", 1, 0),
    ("global_dim", "I", MAX_RANK, -1),
    ("global_stride", "Q", MAX_RANK - 1, 0),
    ("box_dim", "H", MAX_RANK, 0),
    ("element_stride", "B", MAX_RANK, -1),
    ("interleave_layout", "B", 1, 0),
    ("swizzle_atomicity", "B", 1, 0),
)
_FORMAT = "<" + "".join(f"{count}{item}" for _, item, count, _ in _LAYOUT)
_SWIZZLES, _FILLS, _DTYPES = tuple(Swizzle), ("zero", "nan"), tuple(ELEMENT_BYTES)
# element types as tensormap.replace numbers them
_NUMBERED = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32")
_NUMBERED += ("float32 with flush to zero", "float64", "bfloat16", "float32", "tf32 with flush to zero")
_NUMBERED += ("packed 4-bit", "padded 4-bit", "padded 6-bit")


def pack(spec: TensorMapSpec) -> bytes:
    """Return the map in 128 bytes."""
    values = {
        "magic": [_MAGIC],
        "rank": [spec.rank],
        "elemtype": [_DTYPES.index(spec.dtype)],
        "swizzle_mode": [_SWIZZLES.index(spec.swizzle)],
        "fill_mode": [_FILLS.index(spec.oob_fill)],
        "global_address": [spec.address],
        "global_dim": spec.shape,
        "global_stride": spec.strides_bytes,
        "box_dim": spec.box,
        "element_stride": spec.element_strides,
    }
    stored = []
    for name, _, count, added in _LAYOUT:
        items = [value + added for value in values.get(name, ())]
        stored += items + [0] * (count - len(items))
    return struct.pack(_FORMAT, *stored).ljust(MAP_BYTES, b"\0")


def unpack(data: bytes) -> TensorMapSpec:
    """Return the map packed in ``data``.

    Raises
    ------
    ArrayError
        For bytes that are no map, or a map that the emulator does not serve; the message says which.
    """
    values, fields = list(struct.unpack_from(_FORMAT, bytes(data))), {}
    for name, _, count, added in _LAYOUT:
        fields[name] = tuple(value - added for value in values[:count])
        del values[:count]
    one = lambda name: fields[name][0]
    rank = one("rank")
    if one("magic") != _MAGIC or not 1 <= rank <= MAX_RANK:
        raise ArrayError("these 128 bytes are no tensor map (was the map's address passed?)")
    if one("interleave_layout"):
        raise ArrayError("the tensor map has an interleaved layout, which the emulator does not serve")
    if one("swizzle_atomicity"):
        raise ArrayError(
            "the tensor map swizzles other pieces than 16 bytes, which the emulator does not serve"
        )
    if (
        one("elemtype") >= len(_DTYPES)
        or one("swizzle_mode") >= len(_SWIZZLES)
        or one("fill_mode") >= len(_FILLS)
    ):
        raise ArrayError(
            f"the tensor map has element type {one('elemtype')}, swizzle mode {one('swizzle_mode')} and fill mode "
            f"{one('fill_mode')}, which are unknown"
        )
    return TensorMapSpec(
        _DTYPES[one("elemtype")],
        one("global_address"),
        fields["global_dim"][:rank],
        fields["global_stride"][: rank - 1],
        fields["box_dim"][:rank],
        _SWIZZLES[one("swizzle_mode")],
        _FILLS[one("fill_mode")],
        fields["element_stride"][:rank],
    )


def replace_field(data: bytearray, field: str, index: int, value: int) -> None:
    """Overwrite one field of a packed map, as ``tensormap.replace`` names and counts it; ``index`` of a dimension."""
    if field == "rank":
        value += 1
    if field == "elemtype":
        if value >= len(_NUMBERED) or _NUMBERED[value] not in _DTYPES:
            raise ArrayError(
                f"tensor map element type {value} ({dict(enumerate(_NUMBERED)).get(value, 'unknown')}) is not served"
            )
        value = _DTYPES.index(_NUMBERED[value])
    at = 0
    for name, item, count, added in _LAYOUT:
        size = struct.calcsize("<" + item)
        if name == field and name != "magic":
            if not 0 <= index < count:
                raise ArrayError(f"tensor map field {field} has {count} items, not {index + 1}")
            struct.pack_into("<" + item, data, at + index * size, value + added & ((1 << 8 * size) - 1))
            struct.pack_into("<I", data, 0, _MAGIC)
            return
        at += size * count
    raise ArrayError(f"a tensor map has no field {field!r}")
