"""The instruction descriptor of block-scaled matrix multiplies (kinds mxf8f6f4, mxf4, mxf4nvf4)."""

from dataclasses import dataclass

from ..errors import ConfigError
from .descriptors import Major

_TYPES = {
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
_SCALE_TYPES = {"ue4m3": 0, "ue8m0": 1}


@dataclass(frozen=True)
class BlockScaledDesc:
    """32-bit instruction descriptor; D is f32.

    ``a_scale_id`` and ``b_scale_id`` are the byte of a tensor-memory cell from which scale factors are taken.
    Source: PTX ISA, "Instruction descriptor" of the tcgen05 family.
    """

    kind: str
    m: int
    n: int
    a_type: str
    b_type: str
    scale_type: str = "ue8m0"
    a_scale_id: int = 0
    b_scale_id: int = 0
    a_major: Major = Major.K
    b_major: Major = Major.K
    negate_a: bool = False
    negate_b: bool = False
    d_type = "f32"
    saturate = False

    def __post_init__(self):
        types = _TYPES.get(self.kind)
        if types is None:
            raise ConfigError(f"kind = {self.kind!r}: take one of {sorted(_TYPES)}")
        for name, value in (("a_type", self.a_type), ("b_type", self.b_type)):
            if value not in types:
                raise ConfigError(f"{name} = {value!r}: kind {self.kind} takes {sorted(types)}")
        if self.scale_type not in _SCALE_TYPES or (self.scale_type == "ue4m3" and self.kind != "mxf4nvf4"):
            raise ConfigError(
                f"scale_type = {self.scale_type!r}: kind {self.kind} takes ue8m0 (mxf4nvf4: or ue4m3)"
            )
        if self.m not in (128, 256) or self.n % 8 or not 8 <= self.n <= 256:
            raise ConfigError(f"m, n = {self.m}, {self.n}: take m 128 or 256, n a multiple of 8 up to 256")
        for name, value in (("a_scale_id", self.a_scale_id), ("b_scale_id", self.b_scale_id)):
            if not 0 <= value < 4:
                raise ConfigError(f"{name} = {value}: must be 0 to 3")

    def pack(self) -> int:
        """Return the 32-bit value."""
        types = _TYPES[self.kind]
        return (
            self.b_scale_id << 4
            | types[self.a_type] << 7
            | types[self.b_type] << 10
            | int(self.negate_a) << 13
            | int(self.negate_b) << 14
            | self.a_major.value << 15
            | self.b_major.value << 16
            | self.n >> 3 << 17
            | _SCALE_TYPES[self.scale_type] << 23
            | self.m >> 7 << 27
            | self.a_scale_id << 29
        )

    @classmethod
    def unpack(cls, kind: str, value: int) -> "BlockScaledDesc":
        """Return the fields of a 32-bit value under ``kind``."""
        names = {code: name for name, code in _TYPES.get(kind, {}).items()}
        for what, code in (("A", value >> 7 & 7), ("B", value >> 10 & 7)):
            if code not in names:
                raise ConfigError(
                    f"instruction descriptor {value:#010x}: {what} type code {code} is not in kind {kind}"
                )
        if value >> 31:
            raise ConfigError(f"instruction descriptor {value:#010x}: depth 96 (bit 31) is not in sm_100a")
        return cls(
            kind,
            m=(value >> 27 & 3) << 7,
            n=(value >> 17 & 63) << 3,
            a_type=names[value >> 7 & 7],
            b_type=names[value >> 10 & 7],
            scale_type="ue8m0" if value >> 23 & 1 else "ue4m3",
            a_scale_id=value >> 29 & 3,
            b_scale_id=value >> 4 & 3,
            a_major=Major(value >> 15 & 1),
            b_major=Major(value >> 16 & 1),
            negate_a=bool(value >> 13 & 1),
            negate_b=bool(value >> 14 & 1),
        )

    def explain(self) -> str:
        """Return what the instruction computes."""
        return (
            f"instruction descriptor {self.pack():#010x}: D[{self.m}x{self.n}] f32 = A {self.a_type} x B {self.b_type}, "
            f"scaled by {self.scale_type} (ids {self.a_scale_id}, {self.b_scale_id}), kind {self.kind}"
        )
