"""Notebooks: source and executed copy are in step, and every cell runs."""

from pathlib import Path

import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).parent.parent.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def cells(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_there_are_notebooks():
    assert SOURCES


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_the_committed_copy_is_in_step_and_was_executed(path):
    copy = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert cells(copy) == cells(jupytext.read(path)), f"run: python notebooks/execute.py {path.name}"
    assert all(cell.execution_count for cell in copy.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::PendingDeprecationWarning")
def test_every_cell_runs(path, monkeypatch):
    """Cells run in this process: the answers they print are checked by the tests of what they call."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "__main__"}
    for kind, source in cells(jupytext.read(path)):
        if kind == "code":
            exec(compile(source, str(path), "exec"), namespace)
    assert namespace["again"].o.shape == namespace["q"].shape
