"""Shared-memory swizzles: which address bits are XORed so that a column of a tile spreads over all banks."""

from enum import Enum

from ..errors import ConfigError


class Swizzle(Enum):
    """Swizzle mode of a TMA box or an MMA operand; the value is the name used in configs.

    ``span_bytes`` is the width of a row of the atom; an atom is 8 rows. Within it, 16-byte pieces are permuted: the
    piece index is XORed with the row index (both taken from the *absolute* shared-memory address).
    """

    NONE = "NONE"
    B32 = "32B"
    B64 = "64B"
    B128 = "128B"

    @property
    def span_bytes(self) -> int:
        return {"NONE": 16, "32B": 32, "64B": 64, "128B": 128}[self.value]

    @property
    def xor_bits(self) -> int:
        """How many address bits (from bit 4 up) are changed."""
        return {"NONE": 0, "32B": 1, "64B": 2, "128B": 3}[self.value]

    @classmethod
    def parse(cls, name) -> "Swizzle":
        """Return the mode for "128B", "64B", "32B" or "NONE"."""
        try:
            return name if isinstance(name, cls) else cls(str(name).upper())
        except ValueError as error:
            raise ConfigError(f"swizzle {name!r}: take one of {[m.value for m in cls]}") from error


def swizzle_address(address, swizzle: Swizzle):
    """Return where the byte at linear ``address`` (int or integer array) lies under ``swizzle``.

    128B: bits 4–6 ^= bits 7–9; 64B: bits 4–5 ^= bits 7–8; 32B: bit 4 ^= bit 7. It is its own inverse.
    """
    mask = (1 << swizzle.xor_bits) - 1
    return address ^ (((address >> 7) & mask) << 4)
