"""Every rule has a message with the number, the limit and a remedy that works; ``explain`` names every field."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4_numba.config import FIELDS, FA4Config
from fa4_numba.errors import ConfigError

LLAMA = {"num_q_heads": 32, "group": 4, "qk_depth": 128, "ov_depth": 128}
WIDE = {"qk_depth": 256, "ov_depth": 256}
ABSORBED = {"qk_depth": 576, "ov_depth": 512, "is_mla": True, "rope_dtype": "bfloat16"}
GOLDEN = Path(__file__).parent.parent / "data" / "fa4config_golden.jsonl.gz"


def config(**changes):
    return FA4Config(**(LLAMA | changes))


# arguments, what the message says, the remedy that it names (None: the message knows none)
BROKEN = [
    ({"page_size": 100}, "page_size = 100: .* 128-key tile .* MMA_K = 16; nearest: 96", {"page_size": 96}),
    ({"page_size": 5}, "page_size = 5: .* nearest: 16", {"page_size": 16}),
    ({"page_size": -1}, "page_size = -1: .* or 0 for no pages", {"page_size": 0}),
    ({"splitk_partitions": 2}, "splitk_partitions = 2: .*one Q tile.*or BM=128", {"BM": 128}),
    (
        {"BM": 128, "splitk_partitions": 3},
        r"= 3: take one of \(1, 2, 4.*nearest: 2",
        {"splitk_partitions": 2},
    ),
    ({"BM": 128, "splitk_partitions": -4}, "nearest: 1", {"splitk_partitions": 1}),
    (WIDE, "BN = 0: at least 64 .*fits: BM=64, single_o=True", {"BM": 64, "single_o": True}),
    ({"bn_cap": 48}, "BN = 48: at least 64 .*fits: bn_cap=0", {"bn_cap": 0}),
    (
        WIDE | {"BM": 128, "single_o": True},
        "num_kv_stages = 1: .* take 66660 of 232448 bytes, .* takes 65552 of the other 165788; .*: bn_cap=64",
        {"bn_cap": 64},
    ),
    ({"BM": 100}, "BM = 100: take 256 .*nearest: 128", {"BM": 128}),
    ({"BM": 32, "is_mla": True}, r"is_mla = True: packed layouts \(BM = 32\) .*use BM=128", {"BM": 128}),
    ({"BM": 64, "nope_depth": 64}, "rope depth 64 .*pass nope_depth=128", {"nope_depth": 128}),
    (
        {"BM": 32, "scale_dtype": "float32"},
        "scale_dtype = 'float32'.*scale_dtype=None",
        {"scale_dtype": None},
    ),
    (
        {"BM": 32, "num_qk_stages": 4},
        r"BK0 = 32 .*stages of 64 columns; nearest: num_qk_stages=2",
        {"num_qk_stages": 2},
    ),
    (
        {"BM": 64, "num_qk_stages": 3},
        "num_qk_stages = 3: must divide BN / 2 = 128; nearest: 2",
        {"num_qk_stages": 2},
    ),
    (
        {"BM": 128, "qk_depth": 40, "ov_depth": 64},
        "qk_depth = 40: .*64 to 256; nearest: 64",
        {"qk_depth": 64},
    ),
    ({"BM": 128, "pair_cta": True}, "pair_cta = True: .*use BM=256", {"BM": 256}),
    (
        {"pair_cta": True, "qk_depth": 64, "ov_depth": 64},
        "qk_depth = 64: .*65 to 128; nearest: 65",
        {"qk_depth": 65},
    ),
    ({"qk_depth": 40, "ov_depth": 40}, "qk_depth = 40: at least 64; nearest: 64", {"qk_depth": 64}),
    ({"ov_depth": 400, "page_size": 100}, "tmem_used = 896: .* 512 columns, which is 384 fewer", None),
    (ABSORBED, "smem_used = 558172: a block has 232448 bytes.*no BM, single_o or bn_cap", None),
]


@pytest.mark.parametrize(("changes", "message", "remedy"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_broken_rule_names_number_limit_and_a_remedy_that_works(changes, message, remedy):
    cfg = config(**changes)
    reasons = cfg.why_unsupported()
    assert not cfg.supported() and any(re.search(message, reason) for reason in reasons), reasons
    if remedy is not None:
        assert config(**(changes | remedy)).supported()


def test_every_failed_rule_is_listed():
    cfg = config(BM=100, splitk_partitions=3, pair_cta=True)
    subjects = [reason.split(" =")[0] for reason in cfg.why_unsupported()]
    assert subjects == ["BM", "pair_cta", "splitk_partitions"]


def test_reasons_and_suggestions_of_all_golden_records():
    """A config has reasons exactly if it is unsupported, and "nearest that fits" does fit."""
    suggested = unsupported = 0
    with gzip.open(GOLDEN, "rt") as lines:
        records = [json.loads(line) for line in lines]
    for record in records:
        cfg = FA4Config(**record["args"])
        reasons = cfg.why_unsupported()
        assert bool(reasons) != record["methods"]["supported"], record["args"]
        unsupported += bool(reasons)
        for found in re.findall(r"nearest that fits: (.*)", "\n".join(reasons)):
            changes = eval(f"dict({found})")
            assert FA4Config(**(dict(cfg.args) | changes)).supported(), (record["args"], found)
            suggested += 1
    assert unsupported == 3299 - 1818 and suggested > 500


def test_explain_names_every_field_with_its_value():
    with gzip.open(GOLDEN, "rt") as lines:
        records = [json.loads(line) for line in lines]
    for record in records[::7]:
        text = FA4Config(**record["args"]).explain()
        for name in FIELDS:
            if name == "num_kv_stages":  # may be shown with its division
                assert re.search(rf"num_kv_stages = (-?\d+ // 2 = )?{record['fields'][name]}\b", text), text
            else:
                assert re.search(rf"\b{name} = {record['fields'][name]}(?!\d)", text), (record["args"], name)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "5 slots\n.*an odd number, so K and V share one ring"),
        ({}, "2 wanted .*but a shared ring has one"),
        ({"group": 3}, "group = 3 does not divide MMA_M = 128"),
        ({"group": 1}, "there is nothing to fuse"),
        ({"qkv_dtype": "float8_e4m3fn"}, "64B .8-bit types always; 128B was asked for"),
        ({"qk_depth": 64, "ov_depth": 64, "page_size": 128}, "does not fit 192, previous power of two: 128"),
        ({"bn_cap": 100}, "bn_cap = 100: 96"),
        ({"single_o": True}, "single_o = False .needs one Q tile"),
        (WIDE | {"BM": 128, "single_o": True, "bn_cap": 64}, "one slot stays idle"),
        ({"BM": 128, "num_qk_stages": 4}, "4 wanted .pinned by num_qk_stages"),
        ({"BM": 100}, "not supported:\n  - BM = 100"),
    ],
)
def test_explain_tells_why(changes, sentence):
    assert re.search(sentence, config(**changes).explain())


SIZES = st.integers(-600, 700)


@settings(max_examples=400, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "num_q_heads": SIZES,
            "group": st.integers(-3, 9),
            "qk_depth": SIZES,
            "ov_depth": SIZES,
            "nope_depth": SIZES,
            "page_size": SIZES,
            "bn_cap": SIZES,
            "BM": st.sampled_from([256, 128, 64, 32, 0, -1, 48, 512]),
            "num_qk_stages": st.integers(-3, 9),
            "splitk_partitions": st.integers(-2, 17),
            "is_mla": st.booleans(),
            "pair_cta": st.booleans(),
            "single_o": st.booleans(),
            "qkv_dtype": st.sampled_from(["bfloat16", "float32", "float8_e4m3fn"]),
            "rope_dtype": st.sampled_from([None, "bfloat16", "float8_e4m3fn"]),
            "scale_dtype": st.sampled_from([None, "float32", "float8_e8m0fnu"]),
            "swizzle_mode": st.sampled_from(["128B", "64B", "32B", "NONE"]),
        }
    )
)
def test_degenerate_arguments_give_numbers_and_never_abort(arguments):
    cfg = FA4Config(**arguments)
    assert cfg.supported() == (not cfg.why_unsupported())
    assert FA4Config.from_json(cfg.to_json()) == cfg
    assert cfg.explain().count("\n") > 20 and cfg.description().count("\n") == 13
    numbers = [cfg.v_tma_box_rows(), cfg.v_tma_box_rows(0), cfg.launch_smem_used(), cfg.with_bm(0).BN]
    numbers += [cfg.with_num_q(1).BN, cfg.with_splitk(0).BN, cfg.num_rope_buffers(), cfg.BM_eff()]
    assert all(type(number) is int for number in numbers)
    if abs(cfg.num_kv_stages) < 1000:
        try:
            assert cfg.smem_map()[-1].end == cfg.smem_used
        except ConfigError as error:  # only sizes that describe no layout
            assert str(error).count("\n  ") >= 1
