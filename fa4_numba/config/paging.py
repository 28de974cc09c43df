"""Predicates that decide how K and V tiles are cut into TMA boxes when the cache is paged."""

from .types import div, mod


def kv_sub_tile_rows(rows: int, page_size: int) -> int:
    """Rows of one box: a page if pages are smaller than the tile, else the whole tile."""
    return rows if page_size <= 0 or page_size >= rows else page_size


def kv_fold_base_ok(block_depth: int, granularity: int, head_depth: int) -> bool:
    """True if one box can bring all swizzle chunks of ``block_depth`` columns of a ``head_depth`` row."""
    return (
        mod(block_depth, granularity) == 0
        and div(block_depth, granularity) >= 2
        and mod(head_depth, block_depth) == 0
    )


def row_major(
    block_depth: int,
    granularity: int,
    head_depth: int,
    rows: int,
    page_size: int,
    *,
    swizzle: str,
    pair: bool,
):
    """True if a page's chunks may lie side by side in SMEM (page-dense atoms)."""
    return (
        swizzle == "128B"
        and not pair
        and 0 < page_size < rows
        and page_size % 8 == 0
        and kv_fold_base_ok(block_depth, granularity, head_depth)
    )
