"""Operands and results of a case's lanes, read from its kernel: what a message about a mismatch shows."""

import re

import numpy as np

from .case import Case


def _columns(pattern: str, case: Case, data: np.ndarray) -> dict[str, np.ndarray]:
    found = [(m["name"], int(m["at"])) for m in re.finditer(pattern, case.body)]
    ends = [at for _, at in found[1:]] + [data.size]
    lanes = case.threads * case.grid
    columns = {}
    for (name, at), end in zip(found, ends):
        size = (end - at) // lanes
        if size in (1, 2, 4, 8) and end - at == size * lanes:
            columns[name] = data[at:end].view(f"u{size}")
    return columns


def explain(case: Case, emulated: np.ndarray, silicon: np.ndarray, rows: int = 4) -> str:
    """Return the first lanes that differ: operands, what the GPU answered, what the emulator did."""
    sources = _columns(r"ld\.global\.\w+ %(?P<name>\w+), \[%p\+(?P<at>\d+)\];", case, case.data)
    pattern = r"st\.global\.\w+ \[%p\+(?P<at>\d+)\], %(?P<name>\w+);"
    want, got = (_columns(pattern, case, data) for data in (silicon, emulated))
    differ = np.zeros(case.threads * case.grid, bool)
    for name in want:
        differ |= want[name] != got[name]
    text = lambda columns, i: " ".join(f"{n}={c[i]:0{2 * c.itemsize}x}" for n, c in columns.items())
    lanes = np.flatnonzero(differ)[:rows]
    lines = [f"  lane {i}: {text(sources, i)} -> GPU {text(want, i)}, emulator {text(got, i)}" for i in lanes]
    if not lines:
        at = np.flatnonzero(emulated != silicon)[:rows]
        lines = [f"  byte {i}: GPU {silicon[i]:02x}, emulator {emulated[i]:02x}" for i in at]
    return "\n".join(lines)
