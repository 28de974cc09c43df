"""Block scaling: kinds mxf8f6f4, mxf4 and mxf4nvf4 multiply A and B by scale factors that lie in tensor memory."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ...errors import Hazard
from ...layout import BlockScaledDesc, split_tmem_address

BLOCK_SCALED_KINDS = ("mxf8f6f4", "mxf4", "mxf4nvf4")
_DEPTH = {"mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}  # elements along K of one multiply
_FACTORS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_DEFAULT = {"mxf8f6f4": 1, "mxf4": 2}


@dataclass(frozen=True)
class ScaleFormat:
    """Scale factors of a multiply: how many a row, where in a cell those of A and B start, and their type."""

    factors: int
    a_byte: int
    b_byte: int
    dtype: object


def block_scaled(kind: str, bits: int, vector: str | None) -> tuple[BlockScaledDesc, ScaleFormat]:
    """Return what the instruction descriptor and the opcode's ``.scale_vec`` (or ``.block``) say."""
    desc = BlockScaledDesc.unpack(kind, bits)
    depth = _DEPTH[kind]
    factors = {"block16": depth // 16, "block32": depth // 32, None: _DEFAULT.get(kind)}.get(
        vector, _FACTORS.get(vector)
    )
    allowed = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}[kind]
    if factors not in allowed:
        raise ValueError(f"{vector} with kind {kind}: {' or '.join(map(str, allowed))} factors a row")
    dtype = ml_dtypes.float8_e8m0fnu if desc.scale_type == "ue8m0" else ml_dtypes.float8_e4m3fn
    return desc, ScaleFormat(factors, desc.a_scale_id, desc.b_scale_id, np.dtype(dtype))


class Scales:
    """Reads the scale factors of A and B and applies them.

    Row r's factors lie in lane r % 32 (and again in every 32 lanes: of these copies the first is read), in column
    r / 32, from the byte that the descriptor's scale id names.
    """

    def __init__(self, form: ScaleFormat, multiply):
        self.form, self.multiply = form, multiply
        if form.a_byte % form.factors or form.b_byte % form.factors:
            raise Hazard(f"scale ids {form.a_byte} and {form.b_byte}: must be multiples of {form.factors}")

    def apply(self, ctas: list, operands: list, lefts: list, rights: list) -> None:
        """Replace A and B by their scaled values: exact, unless they leave the range of f32."""
        rows, n = self.multiply.path.rows, self.multiply.desc.n
        for i, cta in enumerate(ctas):
            a = [self._read(cta, o[3], 0, rows, self.form.a_byte, o[2]) for o in operands]
            lefts[i] = self._scaled(lefts[i], np.concatenate(a, 1))
        # each CTA holds the factors of all columns of B; the first one's are read
        b = np.concatenate([self._factors_of_b(ctas[0], o[4], n, o[2]) for o in operands], 1)
        for i, part in enumerate(np.split(b, len(ctas))):
            rights[i] = self._scaled(rights[i], part)

    def _factors_of_b(self, cta, address: int, n: int, what) -> np.ndarray:
        """Where D's columns are split over lanes, so are their factors."""
        parts = self.multiply.path.parts
        read = lambda part: self._read(cta, address, part * 128 // parts, n // parts, self.form.b_byte, what)
        return np.concatenate([read(part) for part in range(parts)])

    def _scaled(self, matrix: np.ndarray, factors: np.ndarray) -> np.ndarray:
        rows, count = factors.shape
        copies = len(matrix) // rows  # A in tensor memory, once for every part of the lanes
        factors = np.tile(factors, (copies, 1))[:, :, None]
        return (matrix.reshape(len(matrix), count, -1) * factors).reshape(matrix.shape)

    def _read(self, cta, address: int, first: int, rows: int, byte: int, what) -> np.ndarray:
        """Return the factors of one multiply: f32 (rows, factors)."""
        lane, col = split_tmem_address(address)
        lane, columns = lane + first, -(-rows // 32)
        cta.touch_tmem(slice(lane, lane + 32), col, columns, what)
        cells = np.ascontiguousarray(cta.tmem[lane : lane + 32, col : col + columns].T)
        factors = cells.view(np.uint8).reshape(32 * columns, 4)[:rows, byte : byte + self.form.factors]
        return np.ascontiguousarray(factors).view(self.form.dtype).astype(np.float32)
