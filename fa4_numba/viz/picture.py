"""A matplotlib figure that shows itself in notebooks, with no global pyplot state."""

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure with a PNG representation: the last expression of a notebook cell draws it."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=90)
        return buffer.getvalue()
