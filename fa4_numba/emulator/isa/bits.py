"""Taking registers apart and putting them together."""

import numpy as np


def join(parts, whole):
    """Return one wider value made of equal parts, the first in the lowest bits."""
    if hasattr(parts[0], "join"):
        return parts[0].join(parts[1:], whole)
    return np.stack(parts, 1).view(whole)[:, 0]


def split(value, part) -> tuple:
    """Return the narrower parts of a value, the lowest bits first."""
    if hasattr(value, "split"):
        return value.split(part)
    columns = np.ascontiguousarray(value).view(part).reshape(len(value), -1)
    return tuple(columns.T)
