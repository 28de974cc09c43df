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
