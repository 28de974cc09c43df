"""The instruction table: every inline-PTX form that fa4_numba's kernels may use, by name."""

from . import arithmetic, memory, synchronisation, tcgen05
from .instruction import Instruction

TABLE: dict[str, Instruction] = {}
for _row in (*arithmetic.ROWS, *synchronisation.ROWS, *memory.ROWS, *tcgen05.ROWS):
    if _row.name in TABLE:
        raise ValueError(f"two rows are named {_row.name}")
    TABLE[_row.name] = _row


def instruction(name: str, **immediates: int) -> Instruction:
    """Return the row ``name`` with its immediates bound.

    Raises
    ------
    KeyError
        If the table has no such row; the message names close ones.
    """
    if name not in TABLE:
        import difflib

        raise KeyError(f"no instruction {name!r}; close names: {difflib.get_close_matches(name, TABLE)}")
    row = TABLE[name]
    return row.bind(**immediates) if immediates or row.immediates else row
