"""The timeline of one CTA: what each warp and unit does, in the order of execution."""

from pathlib import Path

from matplotlib.figure import Figure

from .picture import Picture

WAITING = ("wait S", "wait", "done")
COLORS = {
    "rescale O": "#eeca3b",
    "write O": "#72b7b2",
    "wait S": "#d3d3d3",
    "softmax": "#4c78a8",
    "Q K": "#f58518",
    "P V": "#54a24b",
    "load": "#e45756",
    "store": "#b279a2",
}


def draw_timeline(events, cta=None, figure: Figure | None = None) -> Figure:
    """Draw the events of one CTA (default: the first).

    The horizontal axis counts executed warp-instructions: an order, not a time.
    """
    figure = figure or Picture(figsize=(12, 4.5), layout="constrained")
    axes = figure.subplots()
    cta = cta if cta is not None else (events[0].cta if events else None)
    chosen = [event for event in events if event.cta == cta]
    rows = sorted({event.who for event in chosen}, key=lambda who: (who in ("MMA", "TMA"), who))
    end = max((event.at for event in chosen), default=1)
    start = min((event.at for event in chosen), default=0)
    for i, who in enumerate(rows):
        own = [event for event in chosen if event.who == who]
        for event, following in zip(own, [*own[1:], None]):
            color = next((c for name, c in COLORS.items() if event.what.startswith(name)), "#888888")
            if who in ("MMA", "TMA"):
                axes.plot([event.at], [i], "|", ms=12, color=color)
            elif event.what not in WAITING:
                until = following.at if following else end
                axes.barh(i, until - event.at, left=event.at, height=0.6, color=color)
    axes.set(
        yticks=range(len(rows)),
        yticklabels=rows,
        xlim=(start, end),
        xlabel="executed warp-instructions of all warps",
    )
    axes.invert_yaxis()
    axes.set_title(
        f"CTA {cta}: blue softmax at work, yellow rescaling, gaps waiting; ticks: orange Q Kᵀ, green P V, red TMA loads"
    )
    return figure


def save_timeline(events, path, cta=None) -> Path:
    """Write the timeline to ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_timeline(events, cta).savefig(path, dpi=110)
    return path


def draw_model_timeline(
    timing, start: float = 0.0, until: float | None = None, figure: Figure | None = None
) -> Figure:
    """Draw a cluster in the timing model's cycles: a row per role (its first warp) and unit; waits in red, labelled.

    ``timing``: a machine's, run with ``schedule="model"``; ``start`` and ``until`` cut out a part.
    """
    record = timing.last
    until = until or record.cycles
    figure = figure or Picture(figsize=(13, 5), layout="constrained")
    axes = figure.subplots()
    first = {}
    for warp, role in record.roles.items():
        first.setdefault(role, warp)
    units = sorted({unit.unit for unit in record.units})
    rows = [*first, *units]
    seen = lambda part: part.until > start and part.start < until
    for i, warp in enumerate(first.values()):
        runs = [(p.start, p.until - p.start) for p in record.slices if p.warp is warp and seen(p)]
        axes.broken_barh(runs, (i - 0.3, 0.6), facecolors=COLORS["softmax"])
        for wait in record.waits:
            if wait.warp is warp and seen(wait):
                axes.broken_barh(
                    [(wait.start, wait.until - wait.start)], (i - 0.3, 0.6), facecolors="#f2b8b5"
                )
                if wait.until - wait.start > (until - start) / 25:
                    middle = (max(wait.start, start) + min(wait.until, until)) / 2
                    axes.text(middle, i, wait.what, ha="center", va="center", fontsize=6)
    for i, name in enumerate(units, len(first)):
        busy = [(u.start, u.until - u.start) for u in record.units if u.unit == name and seen(u)]
        axes.broken_barh(busy, (i - 0.3, 0.6), facecolors=COLORS["P V"], edgecolors="white", linewidth=0.3)
    axes.set(
        yticks=range(len(rows)),
        yticklabels=rows,
        xlim=(start, until),
        xlabel=f"cycles of the {timing.arch.name} model",
    )
    axes.invert_yaxis()
    axes.set_title("blue: runs, pale red: waits (for what), green: unit at work")
    return figure
