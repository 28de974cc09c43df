"""The two memory maps of a config."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .picture import Picture

COLORS = {
    "q": "#4c78a8",
    "kv": "#f58518",
    "k": "#f58518",
    "v": "#e45756",
    "statistics": "#72b7b2",
    "scale": "#54a24b",
    "barrier": "#b279a2",
    "tmem address": "#9d755d",
    "scores": "#4c78a8",
    "probabilities": "#eeca3b",
    "output": "#54a24b",
    "unused": "#bab0ac",
}


def draw_smem_map(cfg, figure: Figure | None = None) -> Figure:
    """Draw shared memory to scale, bytes from left to right; small regions are listed with an arrow."""
    figure = figure or Picture(figsize=(12, 3.2), layout="constrained")
    axes = figure.subplots()
    small = 0
    for region in cfg.smem_map():
        axes.add_patch(
            Rectangle((region.start, 0), region.size, 1, fc=COLORS.get(region.kind, "#ccc"), ec="white")
        )
        middle = (region.start + region.end) / 2
        if region.size > cfg.smem_used / 40:
            axes.text(
                middle, 0.5, f"{region.name}\n{region.size // 1024} KB", ha="center", va="center", fontsize=8
            )
        else:
            small += 1
            at = (middle, 1.12 + 0.22 * small)
            axes.annotate(
                f"{region.name}: {region.size} B",
                (middle, 1),
                at,
                fontsize=8,
                ha="right",
                arrowprops={"arrowstyle": "-", "lw": 0.5},
            )
    axes.set(xlim=(0, cfg.sm100_smem_carveout), ylim=(0, 2.2), yticks=[], xlabel="byte")
    axes.set_title(f"shared memory: {cfg.smem_used} of {cfg.sm100_smem_carveout} bytes")
    return figure


def draw_tmem_map(cfg, figure: Figure | None = None) -> Figure:
    """Draw tensor memory to scale: columns from left to right, the 128 lanes from top to bottom; P lies on S."""
    figure = figure or Picture(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots()
    for region in cfg.tmem_map():
        inset = 24 if region.kind == "probabilities" else 0
        box = Rectangle(
            (region.start, inset), region.size, 128 - 2 * inset, fc=COLORS[region.kind], ec="white", alpha=0.9
        )
        axes.add_patch(box)
        y = 12 if region.kind == "scores" else 64
        axes.text((region.start + region.end) / 2, y, region.name, ha="center", va="center", fontsize=10)
    axes.set(xlim=(0, 512), ylim=(128, 0), xlabel="column (32-bit cells)", ylabel="lane = row of the Q tile")
    axes.set_title(f"tensor memory: {cfg.tmem_used} of 512 columns")
    return figure


def save_maps(cfg, folder) -> list[Path]:
    """Write ``smem_map.png`` and ``tmem_map.png`` into ``folder`` and return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "smem_map.png", folder / "tmem_map.png"]
    for path, draw in zip(paths, (draw_smem_map, draw_tmem_map)):
        draw(cfg).savefig(path, dpi=110)
    return paths
