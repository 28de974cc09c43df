"""Arguments without meaning are refused with a remedy; identity, immutability and the JSON round trip."""

import copy
import dataclasses
import json
import pickle

import ml_dtypes
import numpy as np
import pytest

from fa4_numba.config import FIELDS, FA4Config
from fa4_numba.errors import ConfigError
from fa4_numba.layout import Swizzle

LLAMA = {"num_q_heads": 32, "group": 4, "qk_depth": 128, "ov_depth": 128}


def config(**changes):
    return FA4Config(**(LLAMA | changes))


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("qkv_dtype", "bf16", "qkv_dtype = 'bf16'.*take one of.*did you mean 'bfloat16'"),
        ("qkv_dtype", "float8_e4m3", "did you mean 'float8_e4m3fn'"),
        ("qkv_dtype", None, "qkv_dtype = None.*take one of"),
        ("qkv_dtype", np.int32, "qkv_dtype = .*int32.*take one of"),
        ("qkv_dtype", [1], r"qkv_dtype = \[1\]"),
        ("qkv_dtype", {}, r"qkv_dtype = \{\}"),
        ("rope_dtype", "int8", "rope_dtype = 'int8'"),
        ("scale_dtype", "e8m0", "scale_dtype = .*did you mean 'float8_e8m0fnu'"),
        ("swizzle_mode", "128", "swizzle_mode = '128'.*'128B', '64B', '32B', 'NONE'.*did you mean '128B'"),
        ("swizzle_mode", None, "swizzle_mode = None"),
        ("swizzle_mode", 128, "swizzle_mode = 128"),
        ("qk_depth", 128.0, "qk_depth = 128.0: must be an integer, got float; pass 128"),
        ("ov_depth", 0.5, "ov_depth = 0.5: must be an integer, got float$"),
        ("group", "4", "group = '4': must be an integer, got str"),
        ("num_q_heads", None, "num_q_heads = None: must be an integer"),
        ("BM", True, "BM = True: must be an integer, got bool"),
        ("page_size", float("nan"), "page_size = nan: must be an integer"),
        ("is_mla", "False", "is_mla = 'False': must be True or False, got str"),
        ("pair_cta", 2, "pair_cta = 2: must be True or False"),
        ("single_o", np.array([1, 0]), "single_o = .*must be True or False, got ndarray"),
    ],
)
def test_meaningless_arguments_name_argument_value_and_fix(argument, value, message):
    with pytest.raises(ConfigError, match=message):
        config(**{argument: value})


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), np.zeros(1, ml_dtypes.bfloat16).dtype],
)
def test_dtypes_by_name_type_and_object_are_one(dtype):
    assert config(qkv_dtype=dtype) == config() and hash(config(qkv_dtype=dtype)) == hash(config())


def test_numpy_scalars_and_enums_are_accepted():
    given = config(BM=np.int32(128), is_mla=np.bool_(False), swizzle_mode=Swizzle.B64)
    assert given == config(BM=128, swizzle_mode="64B")
    assert type(given.BM) is int and type(given.is_mla) is bool


def test_configs_are_frozen_and_arguments_are_keywords():
    cfg = config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfg.BN = 64
    with pytest.raises(TypeError):
        FA4Config("bfloat16", 32, 4, 128, 128)
    with pytest.raises(TypeError, match="num_heads"):
        config(num_heads=3)


def test_equality_is_of_all_arguments():
    different = [config(), config(BM=128), config(bn_cap=64), config(qkv_dtype="float16"), config(group=8)]
    assert len(set(different)) == len(different)
    assert config() != "FA4Config" and config() in {config()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"qkv_dtype": "float8_e4m3fn", "rope_dtype": "bfloat16", "scale_dtype": "float32", "is_mla": True},
        {"BM": 128, "single_o": True, "bn_cap": 64, "num_qk_stages": -1, "splitk_partitions": 0},
        {"qk_depth": -64, "group": 0, "page_size": -3, "BM": -1},
    ],
)
def test_json_pickle_copy_and_repr_round_trips(changes):
    cfg = config(**changes)
    again = [
        FA4Config.from_json(cfg.to_json()),
        pickle.loads(pickle.dumps(cfg)),
        copy.deepcopy(cfg),
        eval(repr(cfg), {"FA4Config": FA4Config}),
    ]
    for other in again:
        assert other == cfg and hash(other) == hash(cfg) and other.to_dict() == cfg.to_dict()
    assert list(cfg.to_dict()) == FIELDS
    assert json.loads(json.dumps(cfg.to_dict())) == cfg.to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not the JSON of an FA4Config.*to_json"),
        ("[1, 2]", "is no object"),
        (None, "not the JSON"),
        ('{"group": 1}', "missing .* arguments"),
        ('{"colour": 1}', "colour"),
        (json.dumps(LLAMA | {"BM": 1.5}), "BM = 1.5: must be an integer"),
    ],
)
def test_bad_json_is_a_config_error(text, message):
    with pytest.raises(ConfigError, match=message):
        FA4Config.from_json(text)
