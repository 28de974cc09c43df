"""The maps: they fill exactly what the config charges, and hold what a kernel author expects where."""

import gzip
import json
from pathlib import Path

import pytest

from fa4_numba.config import FA4Config, RegisterBudget, register_budget
from fa4_numba.errors import ConfigError

LLAMA = {"num_q_heads": 32, "group": 4, "qk_depth": 128, "ov_depth": 128}
MLA = {"num_q_heads": 128, "group": 128, "qk_depth": 192, "ov_depth": 128, "nope_depth": 128, "is_mla": True}
GOLDEN = Path(__file__).parent.parent / "data" / "fa4config_golden.jsonl.gz"
ATOM_BYTES = {"128B": 1024, "64B": 512, "32B": 256, "NONE": 128}


@pytest.fixture(scope="module")
def supported():
    with gzip.open(GOLDEN, "rt") as lines:
        configs = [FA4Config(**json.loads(line)["args"]) for line in lines]
    return [cfg for cfg in configs if cfg.supported()]


def names(regions, prefix=""):
    return [region.name for region in regions if region.name.startswith(prefix)]


def bases(regions):
    return {region.name: region.start for region in regions}


def test_smem_maps_have_no_gap_and_end_at_smem_used(supported):
    assert len(supported) == 1818
    for cfg in supported:
        smem = cfg.smem_map()
        assert smem[0].start == 0 and smem[-1].end == cfg.smem_used, cfg
        assert all(a.end == b.start for a, b in zip(smem, smem[1:])), cfg
        if cfg.ov_depth > 0:  # no V columns, no bytes: the config says "supported" all the same
            assert all(region.size > 0 for region in smem), cfg
        assert len(set(names(smem))) == len(smem), cfg


def test_tile_bases_are_multiples_of_the_swizzle_atom(supported):
    for cfg in supported:
        tiles = [region for region in cfg.smem_map() if region.kind in ("q", "k", "v", "kv")]
        assert len(tiles) > cfg.num_kv_stages, cfg
        for tile in tiles:
            assert tile.start % ATOM_BYTES[cfg.swizzle_mode] == 0, (cfg, tile)


def test_barriers_fill_their_region_in_steps_of_eight(supported):
    for cfg in supported:
        region = next(r for r in cfg.smem_map() if r.name == "barriers")
        barriers = cfg.barrier_map()
        assert (barriers[0].start, barriers[-1].end) == (region.start, region.end), cfg
        assert [b.start for b in barriers] == list(range(region.start, region.end, 8)), cfg
        assert region.start % 8 == 0 and len(set(names(barriers))) == len(barriers), cfg
        for b in barriers:  # bytes are counted exactly where something lands
            lands = b.name.split("[")[0] in ("q1_full", "kv_full", "k_full", "v_full")
            assert b.tx == lands and (b.arrivals == 0) == b.name.startswith(("reserved", "unused")), (cfg, b)


def test_tensor_memory_regions_are_disjoint_and_end_at_tmem_used(supported):
    for cfg in supported:
        regions = cfg.tmem_map()
        assert max(r.end for r in regions) == cfg.tmem_used, cfg
        by_name = {r.name: r for r in regions}
        owners = sorted((r for r in regions if r.kind != "probabilities"), key=lambda r: r.start)
        assert all(a.end == b.start for a, b in zip(owners, owners[1:])), cfg
        for s in "01":  # P lies within its own S
            p, scores = by_name[f"P{s}"], by_name[f"S{s}"]
            assert scores.start == p.start and p.end <= scores.end, cfg
        assert ("O1" in by_name) != cfg.single_o, cfg


def test_regions_agree_with_the_methods_that_count_them(supported):
    for cfg in supported:
        smem = cfg.smem_map()
        tiles = [r for r in smem if r.kind == "q"]
        if cfg.rope_dtype_size or cfg.rope_depth() == 0:  # else Q is charged whole and q_rope_bytes is 0
            assert sum(r.size for r in tiles) == cfg.q_nope_bytes() + cfg.q_rope_bytes(), cfg
        assert len(names(smem, "k_scale[")) == cfg.num_k_scale_bufs(), cfg
        if cfg.use_shared_kv and cfg.rope_dtype_size:
            assert len(names(smem, "k_rope[")) == cfg.num_rope_buffers(), cfg
        rings = ["kv["] if cfg.use_shared_kv else ["k[", "v["]
        assert [len(names(smem, ring)) for ring in rings] == [cfg.num_kv_stages] * len(rings), cfg


def test_main_case_byte_for_byte():
    cfg = FA4Config(**LLAMA)
    at = bases(cfg.smem_map())
    assert (at["q[0]"], at["q[1]"], at["kv[0]"], at["kv[4]"]) == (0, 32768, 65536, 65536 + 4 * 32768)
    assert (at["correction"], at["barriers"], at["tmem_slot"]) == (229376, 230400, 230592)
    barriers = cfg.barrier_map()
    assert names(barriers) == [
        *(
            f"{n}[{s}]"
            for n in ["s_full", "p_ready", "p_last", "stat_full", "stat_empty", "o_full"]
            for s in (0, 1)
        ),
        *("q1_full[0]", "reserved[0]"),
        *(f"{n}[{i}]" for n in ("kv_full", "kv_empty") for i in range(5)),
    ]
    arrivals = {b.name: b.arrivals for b in barriers}
    assert [arrivals[f"{n}[1]"] for n in ("s_full", "p_ready", "p_last", "stat_full", "kv_full")] == [
        *(1, 256, 128, 128, 1)
    ]
    assert [(r.name, r.start, r.end) for r in cfg.tmem_map()] == [
        *(("S0", 0, 128), ("S1", 128, 256), ("P0", 0, 64), ("P1", 128, 192)),
        *(("O0", 256, 384), ("O1", 384, 512)),
    ]


def test_scales_and_rotary_parts_of_mla():
    cfg = FA4Config(**MLA, qkv_dtype="float8_e4m3fn", rope_dtype="bfloat16", scale_dtype="float32")
    order = [n for n in names(cfg.smem_map()) if not n.endswith(("[1]", "[2]"))]
    assert order == [
        *("q[0]", "k[0]", "v[0]", "k_rope[0]", "correction", "q_scale", "k_scale[0]", "barriers", "tmem_slot")
    ]
    at = {r.name: r for r in cfg.smem_map()}
    assert (at["k_rope[0]"].size, at["k_scale[0]"].size, at["q_scale"].size) == (
        128 * 64 * 2,
        128 * 4,
        256 * 4,
    )


def test_variants_have_their_barriers():
    pair = {b.name: b.arrivals for b in FA4Config(**LLAMA, pair_cta=True).barrier_map()}
    assert (pair["p_ready[0]"], pair["p_last[0]"], pair["q1_full[1]"]) == (512, 256, 1)
    split = {b.name: b.arrivals for b in FA4Config(**LLAMA, BM=128, splitk_partitions=8).barrier_map()}
    assert split["publish[0]"] == 128 * 8 and "q1_full[0]" not in split
    staged = names(FA4Config(**LLAMA, BM=128).barrier_map(), "k_full")
    assert len(staged) == 3 * 2
    packed = {b.name for b in FA4Config(**LLAMA, BM=32).barrier_map()}
    assert "kv_full[5]" in packed and "k_full[0]" not in packed


def test_odd_slot_of_a_single_accumulator_is_named_unused():
    cfg = FA4Config(**(LLAMA | {"qk_depth": 256, "ov_depth": 256}), BM=128, single_o=True, bn_cap=64)
    assert (cfg.num_kv_stages, cfg.supported()) == (2, True)
    assert names(cfg.smem_map(), "unused") == ["unused_slot"]
    assert names(cfg.barrier_map(), "unused") == ["unused[0]", "unused[1]"]
    assert names(cfg.tmem_map()) == ["S0", "S1", "P0", "P1", "O0"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"qk_depth": 512, "ov_depth": 512}, "BN = -256"),
        ({"ov_depth": -64}, "ov_depth = -64 is negative"),
        ({"nope_depth": 192, "rope_dtype": "bfloat16"}, "nope_depth = 192 exceeds qk_depth = 128"),
        ({"num_qk_stages": -2, "bn_cap": 48, "BM": 256}, "num_qk_stages = -2 is below 1"),
    ],
)
def test_sizes_without_a_layout_are_refused_with_the_reason(changes, reason):
    cfg = FA4Config(**(LLAMA | changes))
    with pytest.raises(ConfigError, match=reason):
        cfg.smem_map(), cfg.tmem_map()
    with pytest.raises(ConfigError, match="map"):
        cfg.barrier_map(), cfg.tmem_map()


@pytest.mark.parametrize(
    ("depth", "budget"), [(64, (200, 64, 48)), (80, (192, 80, 48)), (128, (192, 80, 48))]
)
def test_register_budgets_fill_the_register_file(depth, budget):
    regs = register_budget(FA4Config(**(LLAMA | {"qk_depth": depth, "ov_depth": depth})))
    assert (regs.softmax, regs.correction, regs.other) == budget
    assert 128 * (2 * regs.softmax + regs.correction + regs.other) == 65536


@pytest.mark.parametrize("budget", [(200, 80, 48), (190, 80, 48), (192, 80, 16), (264, 24, 24)])
def test_impossible_register_budgets_are_refused(budget):
    with pytest.raises(ConfigError, match="RegisterBudget.*multiple"):
        RegisterBudget(*budget)
