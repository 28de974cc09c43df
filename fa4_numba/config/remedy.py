"""What to change so that an unsupported config becomes a supported one. Suggestions are tried before they are made."""

from itertools import product

_TILE_ROWS = (256, 128, 64, 32)
_CAPS = (0, 128, 64)


def nearest(value: int, allowed) -> int:
    """Return the allowed value with the smallest distance; the smaller of two equals."""
    return min(allowed, key=lambda n: (abs(n - value), n))


def supported_variant(cfg) -> str:
    """Say which tile height, accumulator count and key cap fit the same shape, with the fewest changes.

    Everything else (heads, dtypes, pages, cluster) stays as it is. Returns a clause that ends an error message.
    """
    given = dict(cfg.args)
    best = None
    for BM, single_o, bn_cap in product(_TILE_ROWS, (False, True), _CAPS):
        wanted = {"BM": BM, "single_o": single_o, "bn_cap": bn_cap}
        changes = {name: value for name, value in wanted.items() if given[name] != value}
        if (best is None or len(changes) < len(best)) and type(cfg)(**(given | changes)).supported():
            best = changes
    if best is None:
        return "no BM, single_o or bn_cap makes it fit while the other arguments stay; try smaller heads"
    return "nearest that fits: " + ", ".join(f"{name}={value}" for name, value in best.items())
