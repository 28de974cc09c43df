"""Matrix descriptors of tcgen05.mma: where an operand lies in shared memory, and what the instruction computes.

Source: PTX ISA, "Shared memory descriptor" and "Instruction descriptor" of the tcgen05 family.
"""

from dataclasses import dataclass
from enum import Enum

from ..errors import ConfigError
from .swizzle import Swizzle, swizzle_address


class Major(Enum):
    """Which dimension of an operand is contiguous: K (depth) or MN (rows)."""

    K = 0
    MN = 1


_LAYOUT_CODE = {Swizzle.NONE: 0, Swizzle.B128: 2, Swizzle.B64: 4, Swizzle.B32: 6}
_LAYOUT_OF_CODE = {code: swizzle for swizzle, code in _LAYOUT_CODE.items()}
_VERSION_BIT = 1 << 46  # the field 46–47 is 1 on sm_100


def _sixteenths(name: str, value: int) -> int:
    if value % 16 or not 0 <= value < 1 << 18:
        raise ConfigError(f"{name} = {value}: must be a multiple of 16 below {1 << 18} bytes")
    return value >> 4


@dataclass(frozen=True)
class SmemDesc:
    """64-bit descriptor of an operand in shared memory; addresses and offsets in bytes.

    ``leading_bytes`` (LBO) is the pitch between atoms along the contiguous dimension, ``stride_bytes`` (SBO) that
    between groups of 8 rows. K-major swizzled operands ignore LBO.
    """

    start_address: int
    leading_bytes: int
    stride_bytes: int
    swizzle: Swizzle
    base_offset: int = 0
    lbo_mode: int = 0

    def pack(self) -> int:
        """Return the 64-bit value."""
        return (
            _sixteenths("start_address", self.start_address)
            | _sixteenths("leading_bytes", self.leading_bytes) << 16
            | _sixteenths("stride_bytes", self.stride_bytes) << 32
            | _VERSION_BIT
            | (self.base_offset & 7) << 49
            | (self.lbo_mode & 1) << 52
            | _LAYOUT_CODE[self.swizzle] << 61
        )

    @classmethod
    def unpack(cls, value: int) -> "SmemDesc":
        """Return the fields of a 64-bit value; a layout code that sm_100 lacks is a ConfigError."""
        code = value >> 61 & 7
        if code not in _LAYOUT_OF_CODE:
            raise ConfigError(
                f"SMEM descriptor {value:#018x}: layout code {code} is not one of {sorted(_LAYOUT_OF_CODE)}"
            )
        return cls(
            start_address=(value & 0x3FFF) << 4,
            leading_bytes=(value >> 16 & 0x3FFF) << 4,
            stride_bytes=(value >> 32 & 0x3FFF) << 4,
            swizzle=_LAYOUT_OF_CODE[code],
            base_offset=value >> 49 & 7,
            lbo_mode=value >> 52 & 1,
        )

    def explain(self) -> str:
        """Return the fields with their bit positions, one a line."""
        rows = [
            ("0-13", "start address", f"{self.start_address:#x} bytes"),
            ("16-29", "LBO", f"{self.leading_bytes} bytes"),
            ("32-45", "SBO", f"{self.stride_bytes} bytes"),
            ("46-47", "version", "1"),
            ("49-51", "base offset", str(self.base_offset)),
            ("52", "LBO mode", "absolute" if self.lbo_mode else "relative"),
            ("61-63", "layout", f"swizzle {self.swizzle.value}"),
        ]
        return f"SMEM descriptor {self.pack():#018x}\n" + "\n".join(
            f"  {b:>6}  {n:<14} {v}" for b, n, v in rows
        )


def operand_byte_address(desc: SmemDesc, major: Major, mn, k_byte):
    """Return the shared-memory byte address of element (mn, k) of an MMA operand.

    Parameters
    ----------
    desc : SmemDesc
    major : Major
    mn : int or integer array
        Row of A, column of B. For MN-major, in bytes (element index · element size).
    k_byte : int or integer array
        Depth; in bytes for K-major, in elements for MN-major.

    Notes
    -----
    K-major: rows of ``span`` bytes, 8 to a group, groups SBO apart; further spans of depth follow LBO apart (only
    without swizzle, where a span is 16 bytes; a swizzled operand is one span deep). MN-major: chunks of ``span``
    bytes along MN, LBO apart, 8 depths to a group, groups SBO apart; without swizzle LBO and SBO swap roles.
    """
    span = desc.swizzle.span_bytes
    if major is Major.K:
        row, column = mn, k_byte
        spans = column // span
        offset = row % 8 * span + row // 8 * desc.stride_bytes + column % span + spans * desc.leading_bytes
    else:
        chunk_pitch, group_pitch = desc.leading_bytes, desc.stride_bytes
        if desc.swizzle is Swizzle.NONE:
            chunk_pitch, group_pitch = group_pitch, chunk_pitch
        offset = mn // span * chunk_pitch + k_byte // 8 * group_pitch + k_byte % 8 * span + mn % span
    return swizzle_address(desc.start_address + offset, desc.swizzle)


_A_TYPES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
}
_D_TYPES = {"f16": 0, "f32": 1, "s32": 2}


@dataclass(frozen=True)
class InstrDesc:
    """32-bit instruction descriptor for the kinds f16, tf32, f8f6f4 and i8.

    ``kind`` is the instruction's ``.kind``; the same type codes mean different types under different kinds.
    """

    kind: str
    m: int
    n: int
    a_type: str
    b_type: str
    d_type: str = "f32"
    a_major: Major = Major.K
    b_major: Major = Major.K
    negate_a: bool = False
    negate_b: bool = False
    saturate: bool = False

    def __post_init__(self):
        types = _A_TYPES.get(self.kind)
        if types is None:
            raise ConfigError(f"kind = {self.kind!r}: take one of {sorted(_A_TYPES)}")
        for name, value in (("a_type", self.a_type), ("b_type", self.b_type)):
            if value not in types:
                raise ConfigError(f"{name} = {value!r}: kind {self.kind} takes {sorted(types)}")
        if self.d_type not in _D_TYPES:
            raise ConfigError(f"d_type = {self.d_type!r}: take one of {sorted(_D_TYPES)}")
        if self.n % 8 or not 8 <= self.n <= 256:
            raise ConfigError(f"n = {self.n}: must be a multiple of 8, at most 256")
        if self.m not in (32, 64, 128, 256):
            raise ConfigError(f"m = {self.m}: take 32 (.ws), 64, 128, or 256 (CTA pair)")

    def pack(self) -> int:
        """Return the 32-bit value."""
        types = _A_TYPES[self.kind]
        return (
            int(self.saturate) << 3
            | _D_TYPES[self.d_type] << 4
            | types[self.a_type] << 7
            | types[self.b_type] << 10
            | int(self.negate_a) << 13
            | int(self.negate_b) << 14
            | self.a_major.value << 15
            | self.b_major.value << 16
            | self.n >> 3 << 17
            | self.m >> 4 << 24
        )

    @classmethod
    def unpack(cls, kind: str, value: int) -> "InstrDesc":
        """Return the fields of a 32-bit value under ``kind``."""

        def name(table, code, what):
            for key, number in table.items():
                if number == code:
                    return key
            raise ConfigError(
                f"instruction descriptor {value:#010x}: {what} code {code} is not in kind {kind}"
            )

        types = _A_TYPES.get(kind)
        if types is None:
            raise ConfigError(f"kind = {kind!r}: take one of {sorted(_A_TYPES)}")
        return cls(
            kind,
            m=(value >> 24 & 31) << 4,
            n=(value >> 17 & 63) << 3,
            a_type=name(types, value >> 7 & 7, "A type"),
            b_type=name(types, value >> 10 & 7, "B type"),
            d_type=name(_D_TYPES, value >> 4 & 3, "D type"),
            a_major=Major(value >> 15 & 1),
            b_major=Major(value >> 16 & 1),
            negate_a=bool(value >> 13 & 1),
            negate_b=bool(value >> 14 & 1),
            saturate=bool(value >> 3 & 1),
        )

    def explain(self) -> str:
        """Return what the instruction computes."""
        return (
            f"instruction descriptor {self.pack():#010x}: D[{self.m}x{self.n}] {self.d_type} = "
            f"A {self.a_type} ({self.a_major.name}-major) x B {self.b_type} ({self.b_major.name}-major), kind {self.kind}"
        )
