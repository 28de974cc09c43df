"""The emulator's own format of a tensor map in 128 bytes: every field can be replaced alone, as kernels do."""

import struct

from ..errors import ArrayError
from .swizzle import Swizzle
from .tensor_map import MAX_RANK, TensorMapSpec

MAP_BYTES = 128
_MAGIC = 0x4D414D54  # "TMAM": tells our maps from bytes that are none
# name, struct format of an item, items
_LAYOUT = (
    ("magic", "I", 1),
    ("rank", "B", 1),
    ("elemtype", "B", 1),
    ("swizzle_mode", "B", 1),
    ("fill_mode", "B", 1),
    ("global_address", "Q", 1),
    ("global_dim", "Q", MAX_RANK),
    ("global_stride", "Q", MAX_RANK - 1),
    ("box_dim", "H", MAX_RANK),
    ("element_stride", "B", MAX_RANK),
    ("interleave_layout", "B", 1),
    ("swizzle_atomicity", "B", 1),
)
_FORMAT = "<" + "".join(f"{count}{item}" for _, item, count in _LAYOUT)
_SWIZZLES = tuple(Swizzle)
_FILLS = ("zero", "nan")
# element types as tensormap.replace numbers them; after them those that only numpy names
_DTYPES = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", None, "float64", "bfloat16")
_DTYPES += ("float32", None, None, None, None, "float8_e4m3fn", "float8_e5m2")
_REFUSED = {8: "float32 with flush to zero", 12: "tf32 with flush to zero", 13: "packed 4-bit", 14: "padded 4-bit"}
_REFUSED[15] = "padded 6-bit"


def pack(spec: TensorMapSpec) -> bytes:
    """Return the map in 128 bytes."""
    pad = lambda values, n: tuple(values) + (0,) * (n - len(values))
    data = struct.pack(
        _FORMAT,
        _MAGIC,
        spec.rank - 1,
        _DTYPES.index(spec.dtype),
        _SWIZZLES.index(spec.swizzle),
        _FILLS.index(spec.oob_fill),
        spec.address,
        *pad(spec.shape, MAX_RANK),
        *pad(spec.strides_bytes, MAX_RANK - 1),
        *pad(spec.box, MAX_RANK),
        *pad(spec.element_strides, MAX_RANK),
        0,
        0,
    )
    return data.ljust(MAP_BYTES, b"\0")


def unpack(data: bytes) -> TensorMapSpec:
    """Return the map packed in ``data``.

    Raises
    ------
    ArrayError
        For bytes that are no map, or a map that the emulator does not serve; the message says which.
    """
    values, fields = list(struct.unpack_from(_FORMAT, bytes(data))), {}
    for name, _, count in _LAYOUT:
        fields[name] = values[0] if count == 1 else tuple(values[:count])
        del values[:count]
    rank = fields["rank"] + 1
    if fields["magic"] != _MAGIC or rank > MAX_RANK:
        raise ArrayError("these 128 bytes are no tensor map (was the map's address passed?)")
    if fields["interleave_layout"]:
        raise ArrayError("the tensor map has an interleaved layout, which the emulator does not serve")
    if fields["swizzle_atomicity"]:
        raise ArrayError("the tensor map swizzles other pieces than 16 bytes, which the emulator does not serve")
    kind = fields["elemtype"]
    if kind >= len(_DTYPES) or _DTYPES[kind] is None:
        raise ArrayError(f"tensor map element type {kind} ({_REFUSED.get(kind, 'unknown')}) is not served")
    if fields["swizzle_mode"] >= len(_SWIZZLES) or fields["fill_mode"] >= len(_FILLS):
        raise ArrayError(f"tensor map swizzle mode {fields['swizzle_mode']}, fill mode {fields['fill_mode']}: unknown")
    return TensorMapSpec(
        _DTYPES[kind],
        fields["global_address"],
        fields["global_dim"][:rank],
        fields["global_stride"][: rank - 1],
        fields["box_dim"][:rank],
        _SWIZZLES[fields["swizzle_mode"]],
        _FILLS[fields["fill_mode"]],
        fields["element_stride"][:rank],
    )


def replace_field(data: bytearray, field: str, index: int, value: int) -> None:
    """Overwrite one field of a packed map, as ``tensormap.replace`` names it; ``index`` of a dimension."""
    at = 0
    for name, item, count in _LAYOUT:
        size = struct.calcsize("<" + item)
        if name == field and name != "magic":
            if not 0 <= index < count:
                raise ArrayError(f"tensor map field {field} has {count} items, not {index + 1}")
            struct.pack_into("<" + item, data, at + index * size, value & ((1 << 8 * size) - 1))
            struct.pack_into("<I", data, 0, _MAGIC)
            return
        at += size * count
    raise ArrayError(f"a tensor map has no field {field!r}")
