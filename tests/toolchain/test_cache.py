"""The kernel cache: hits, damage, several processes, an unwritable folder; and the PTX hooks."""

import os
import subprocess
import sys
import time

import pytest

from fa4_numba.config import FA4Config
from fa4_numba.errors import ToolchainError, UnsupportedError
from fa4_numba.toolchain import assemble, cache, compile_kernel, tools
from fa4_numba.toolchain.ptx_hooks import entry_name, rename, tensor_maps_by_value

CONFIG = FA4Config(num_q_heads=1, group=1, qk_depth=64, ov_depth=64, bn_cap=128)


def test_a_second_call_reads_the_cache_and_is_fast():
    first = compile_kernel(CONFIG)
    start = time.perf_counter()
    second = compile_kernel(CONFIG)
    assert second == first
    assert time.perf_counter() - start < 1  # the figure is benched; this only tells a hit from a compilation


def test_head_counts_share_a_kernel():
    other = FA4Config(num_q_heads=7, group=1, qk_depth=64, ov_depth=64, bn_cap=128)
    assert compile_kernel(other).ptx == compile_kernel(CONFIG).ptx


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_entry_is_built_again(damage, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path))
    cache.store("key", {"answer": 42})
    path = tmp_path / "key"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\0" if damage is None else damage)
    assert cache.load("key") is None
    assert not path.exists()
    cache.store("key", {"answer": 43})
    assert cache.load("key") == {"answer": 43}


def test_an_unwritable_folder_costs_a_warning_only(monkeypatch, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(blocker / "cache"))
    with pytest.warns(cache.CacheWarning, match="FA4_NUMBA_CACHE"):
        cache.store("key", {})
    assert cache.load("key") is None


def test_many_processes_may_write_one_entry(tmp_path):
    code = """
import sys
from fa4_numba.toolchain import cache
for i in range(200):
    cache.store("shared", {"payload": b"x" * 5000})
    entry = cache.load("shared")
    assert entry == {"payload": b"x" * 5000}, entry
"""
    environment = dict(os.environ, FA4_NUMBA_CACHE=str(tmp_path))
    workers = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["shared"]


def test_missing_tools_say_what_to_install(monkeypatch):
    monkeypatch.setattr(tools, "_candidates", lambda name: iter(()))
    tools.find_tool.cache_clear()
    with pytest.raises(ToolchainError, match="pip install nvidia-cuda-nvcc"):
        tools.find_tool("ptxas")
    monkeypatch.undo()
    tools.find_tool.cache_clear()


def test_rejected_ptx_and_fatal_notes():
    with pytest.raises(ToolchainError, match="ptxas rejected"):
        assemble(".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() { nonsense; }", "sm_100a")
    with pytest.raises(ToolchainError, match="C7508"):
        text = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() { setmaxnreg.inc.sync.aligned.u32 200; ret; }"
        assemble(text, "sm_100a")


def test_ptx_does_not_depend_on_the_process():
    text = ".visible .entry _ZN3foo_v12(.param .u64 _ZN3foo_v12_param_0) { ld.param.u64 %rd1, [_ZN3foo_v12_param_0]; }"
    assert entry_name(text) == "_ZN3foo_v12"
    renamed = rename(text, "kernel")
    assert "_ZN3" not in renamed and entry_name(renamed) == "kernel"
    by_value = tensor_maps_by_value(renamed, (0,))
    assert ".param .align 64 .b8 kernel_param_0[128]" in by_value
    assert "mov.b64 %rd1, kernel_param_0;" in by_value and "cvta.param.u64 %rd1, %rd1;" in by_value
    with pytest.raises(ToolchainError, match="not a 64-bit integer"):
        tensor_maps_by_value(renamed.replace(".u64 kernel_param_0)", ".u32 kernel_param_0)"), (0,))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"BM": 128}, "BM=256"),
        ({"qk_depth": 256, "ov_depth": 256}, "BN = 0"),
        ({"page_size": 128}, "page_size=0"),
        ({"qkv_dtype": "float8_e4m3fn"}, "bfloat16 or float16"),
        ({"ov_depth": 128}, "qk_depth=ov_depth"),
        ({"bn_cap": 0}, "bn_cap=128"),
        ({"pair_cta": True, "qk_depth": 128, "ov_depth": 128}, "pair_cta=False"),
    ],
)
def test_configs_without_a_kernel_are_refused_with_the_remedy(arguments, message):
    base = {"num_q_heads": 1, "group": 1, "qk_depth": 64, "ov_depth": 64, "bn_cap": 128}
    with pytest.raises(UnsupportedError, match=message):
        compile_kernel(FA4Config(**(base | arguments)))
