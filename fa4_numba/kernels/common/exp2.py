"""Which exponentials run on the FMA units instead of the special-function unit, and with which polynomial.

A Blackwell SM has 16 exponentials per cycle beside 8192 multiply-adds of the tensor core, so exp2 is the second
bottleneck of attention. Part of them is computed as ``2**floor(x) * p(x - floor(x))`` on the FMA pipes.
"""

from ...reference.tiled import LOWEST as _LOWEST

# 2**23 + 2**22: adding it (rounding down) leaves floor(x) in the low mantissa bits.
FLOOR_MAGIC = 12582912.0
# Minimax approximation of 2**f on [0, 1) with p(0) = 1, constant term first (our own linear program); relative error
# 2.9e-6. Peers take a cubic (8.8e-5), enough for a bf16 P, but the row sum and so the LSE would miss 1e-5.
POLYNOMIAL = (1.0, 0.6930451393127441, 0.24127855896949768, 0.0522453747689724, 0.013425154611468315)
# Below this the result is zero or subnormal anyway; keeps the exponent arithmetic in range.
LOWEST = float(_LOWEST)


def emulated_pairs(columns: int, eighths: int = 1) -> tuple[int, ...]:
    """Return which column pairs (2k, 2k+1) of a score tile are emulated.

    Parameters
    ----------
    columns : int
        Keys per tile (BN).
    eighths : int
        Emulated share in eighths of all columns; 1 gives 16 of 128.

    Returns
    -------
    tuple of int
        Pair indices, spread evenly over the second to the last-but-one eighth of the tile: at the start the
        special-function unit has nothing queued, and the end is what the matrix multiply waits for.
    """
    pairs = columns // 2
    wanted = pairs * eighths // 8
    first, last = pairs // 4, pairs - pairs // 8
    if wanted == 0:
        return ()
    return tuple(first + i * (last - first) // wanted for i in range(wanted))


def emulated_columns(columns: int, eighths: int = 1) -> tuple[int, ...]:
    """Return the emulated columns, as :func:`emulated_pairs` chooses them."""
    return tuple(column for k in emulated_pairs(columns, eighths) for column in (2 * k, 2 * k + 1))
