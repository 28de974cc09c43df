"""The config engine against what the original struct returned."""

import gzip
import json
from pathlib import Path

import pytest

from fa4_numba.config import FA4Config

DATA = Path(__file__).parent.parent / "data"


def records(name):
    with gzip.open(DATA / name, "rt") as lines:
        return [json.loads(line) for line in lines]


GOLDEN = records("fa4config_golden.jsonl.gz")


def as_json(value):
    return str(value) if hasattr(value, "dtype") else value


def changed(before: FA4Config, after: FA4Config) -> dict:
    old, new = before.to_dict(), after.to_dict()
    return {name: value for name, value in new.items() if old[name] != value}


def mismatches(record):
    cfg = FA4Config(**record["args"])
    for name, want in record["fields"].items():
        yield name, getattr(cfg, name), want
    for name, want in record["methods"].items():
        if name == "v_tma_box_rows":
            for page, rows in want.items():
                yield f"{name}({page})", cfg.v_tma_box_rows(None if page == "self" else int(page)), rows
        else:
            yield name, getattr(cfg, name)(), want
    for call, want in record["derived"].items():
        other = eval(f"cfg.{call}", {"cfg": cfg})
        yield f"{call} changed", changed(cfg, other), want["changed"]
        yield f"{call} supported", other.supported(), want["supported"]
        yield f"{call} launch_smem_used", other.launch_smem_used(), want["launch_smem_used"]


def test_there_are_all_records():
    assert len(GOLDEN) == 3299


@pytest.mark.parametrize("part", range(8))
def test_every_field_method_and_rebuild(part):
    for number, record in enumerate(GOLDEN[part::8]):
        for name, got, want in mismatches(record):
            assert got == want, (
                f"record {part + 8 * number} ({record['tag']}) {record['args']}: {name} = {got}, want {want}"
            )


def test_constants():
    for record in records("fa4config_consts.jsonl.gz"):
        none = lambda name: None if name == "None" else name
        cfg = FA4Config(
            qkv_dtype=record.pop("qkv_dtype"),
            rope_dtype=none(record.pop("rope_dtype_")),
            scale_dtype=none(record.pop("scale_dtype_")),
            num_q_heads=32,
            group=4,
            qk_depth=128,
            ov_depth=128,
        )
        for name, want in record.items():
            assert getattr(cfg, name) == want, (cfg, name)


def test_maps_fill_exactly_what_the_config_charges():
    checked = 0
    for record in GOLDEN:
        cfg = FA4Config(**record["args"])
        if not cfg.supported():
            continue
        checked += 1
        smem, barriers = cfg.smem_map(), cfg.barrier_map()
        assert smem[0].start == 0 and smem[-1].end == cfg.smem_used, (record["args"], smem[-1], cfg.smem_used)
        assert all(a.end == b.start for a, b in zip(smem, smem[1:])), record["args"]
        region = next(r for r in smem if r.name == "barriers")
        assert (barriers[0].start, barriers[-1].end) == (region.start, region.end), record["args"]
        assert region.start % 8 == 0
        assert max(r.end for r in cfg.tmem_map()) == cfg.tmem_used, record["args"]
        tiles = [r for r in smem if r.kind in ("q", "k", "v", "kv")]
        atom = 8 * {"128B": 128, "64B": 64, "32B": 32, "NONE": 16}[cfg.swizzle_mode]
        assert all(r.start % atom == 0 for r in tiles), (record["args"], tiles)
        assert len({r.name for r in (*smem, *barriers)}) == len(smem) + len(barriers)
    assert checked > 500
