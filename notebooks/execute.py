"""Executes notebook sources (``NN_name.py``, jupytext percent format) and writes the ``.ipynb`` beside them.

Usage: ``python notebooks/execute.py [NAME.py …]`` (default: all).
"""

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def main(names):
    """Execute each named source, or all of them."""
    for path in [FOLDER / n for n in names] or sorted(FOLDER.glob("[0-9]*.py")):
        notebook = jupytext.read(path)
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()
        for i, cell in enumerate(notebook.cells):
            cell["id"] = f"{path.stem}-{i}"
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path.with_suffix(".ipynb"))


if __name__ == "__main__":
    main(sys.argv[1:])
