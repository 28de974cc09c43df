"""The command line, as a user types it."""

import json

import numpy as np
import pytest

from fa4_numba.cli.main import main


def test_demo_runs_and_draws(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--seq", "70"]) == 0
    printed = capsys.readouterr().out
    assert "right" in printed and "0 B spill stores" in printed and "kv[0]" in printed
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["smem_map.png", "timeline.png", "tmem_map.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())


def test_config(capsys):
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["BN"] == 128
    assert main(["config", "--qk-dim", "256"]) == 1
    assert "BN = 0" in capsys.readouterr().out
    assert main(["config", "--why"]) == 0
    assert "TMEM columns" in capsys.readouterr().out


def test_ptx_and_sass(capsys):
    assert main(["ptx", "--qk-dim", "64"]) == 0
    assert "tcgen05.mma" in capsys.readouterr().out
    assert main(["sass", "--qk-dim", "64"]) == 0
    assert "USETMAXREG" in capsys.readouterr().out


def test_emulate_on_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    paths = []
    for name, shape in (("q", (1, 3, 2, 64)), ("k", (1, 5, 1, 64)), ("v", (1, 5, 1, 64))):
        paths.append(str(tmp_path / f"{name}.npy"))
        np.save(paths[-1], rng.standard_normal(shape).astype(np.float32))
    out = tmp_path / "o.npy"
    assert main(["emulate", "--inputs", *paths, "--output", str(out), "--causal", "--schedule", "late"]) == 0
    assert np.load(out).shape == (1, 3, 2, 64)
    assert "largest error" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["emulate", "--schedule", "soon"], "schedule = 'soon'"),
        (["emulate", "--inputs", "a.npy", "b.npy", "c.npy"], "cannot be read"),
        (["emulate", "--qk-dim", "300"], "at most 128"),
        (["ptx", "--q-heads", "3", "--group", "2"], "multiple"),
        (["config", "--dtype", "int4"], "qkv_dtype"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    assert "ptxas" in capsys.readouterr().out
