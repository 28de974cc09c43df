"""Rows for loads, stores and the TMA engine (bulk tensor copies)."""

from .instruction import Instruction

_LDST = "Data Movement and Conversion Instructions: ld, st"
_BULK = "Data Movement and Conversion Instructions: Bulk copy"
_TENSOR = "Data Movement and Conversion Instructions: cp.async.bulk.tensor"


def _row(name, text, outputs="", inputs="", section=_LDST, **more):
    return Instruction(name, text, outputs, inputs, section, **more)


def _tma_load(
    rank: int, suffix: str = "", modifier: str = "", extra_in: str = "", extra_text: str = "", **more
):
    coords = ", ".join(f"$c{i}" for i in range(rank))
    return _row(
        f"tma_load_{rank}d{suffix}",
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{modifier} "
        f"[$dst], [$map, {{{coords}}}], [$bar]{extra_text};",
        "",
        "dst:u32 map:u64 " + " ".join(f"c{i}:i32" for i in range(rank)) + " bar:u32" + extra_in,
        _TENSOR,
        **more,
    )


def _tma_store(rank: int):
    coords = ", ".join(f"$c{i}" for i in range(rank))
    return _row(
        f"tma_store_{rank}d",
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$map, {{{coords}}}], [$src];",
        "",
        "map:u64 " + " ".join(f"c{i}:i32" for i in range(rank)) + " src:u32",
        _TENSOR,
    )


ROWS = (
    _row("shared_load_f32", "ld.shared.f32 $d, [$addr];", "d:f32", "addr:u32"),
    _row("shared_load_u32", "ld.shared.b32 $d, [$addr];", "d:u32", "addr:u32"),
    _row("shared_store_f32", "st.shared.f32 [$addr], $a;", "", "addr:u32 a:f32"),
    _row("shared_store_v4", "st.shared.v4.b32 [$addr], $a;", "", "addr:u32 a:u32[4]"),
    _row("shared_load_v4", "ld.shared.v4.b32 $d, [$addr];", "d:u32[4]", "addr:u32"),
    _row("global_store_f32", "st.global.f32 [$addr], $a;", "", "addr:u64 a:f32"),
    _row("global_store_v4", "st.global.v4.b32 [$addr], $a;", "", "addr:u64 a:u32[4]"),
    _row("global_load_v4", "ld.global.v4.b32 $d, [$addr];", "d:u32[4]", "addr:u64"),
    # generic address of a shared variable -> its shared-window address
    _row(
        "shared_address",
        "{ .reg .u64 t; cvta.to.shared.u64 t, $generic; cvt.u32.u64 $d, t; }",
        "d:u32",
        "generic:u64",
        "Data Movement and Conversion Instructions: cvta",
        pure=True,
    ),
    *(_tma_load(rank) for rank in (1, 2, 3, 4, 5)),
    _row(
        "tma_load_5d_multicast",
        "{ .reg .b16 m; cvt.u16.u32 m, $mask; "
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[$dst], [$map, {$c0, $c1, $c2, $c3, $c4}], [$bar], m; }",
        "",
        "dst:u32 map:u64 c0:i32 c1:i32 c2:i32 c3:i32 c4:i32 bar:u32 mask:u32",
        _TENSOR,
    ),
    _tma_load(4, "_pair", ".cta_group::2", since="sm_100a"),
    _tma_load(4, "_hint", ".L2::cache_hint", " policy:u64", ", $policy"),
    _row(
        "tma_gather4",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[$dst], [$map, {$col, $r0, $r1, $r2, $r3}], [$bar];",
        "",
        "dst:u32 map:u64 col:i32 r0:i32 r1:i32 r2:i32 r3:i32 bar:u32",
        _TENSOR,
        since="sm_100a",
    ),
    *(_tma_store(rank) for rank in (1, 2, 3, 4, 5)),
    _row("bulk_commit_group", "cp.async.bulk.commit_group;", section=_BULK),
    _row("bulk_wait_group", "cp.async.bulk.wait_group <pending>;", section=_BULK),
    _row("bulk_wait_group_read", "cp.async.bulk.wait_group.read <pending>;", section=_BULK),
    _row("prefetch_tensormap", "prefetch.tensormap [$map];", "", "map:u64", "prefetch"),
    Instruction(
        "stmatrix_x4",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$addr], $a;",
        "",
        "addr:u32 a:u32[4]",
        "Warp-level Matrix Instructions: stmatrix",
        convergent=True,
        scope="warp",
    ),
)
