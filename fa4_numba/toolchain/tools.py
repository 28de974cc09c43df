"""Finds the CUDA command-line tools: in the pip wheels that fa4_numba depends on, else in CUDA_HOME or on PATH."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from ..errors import ToolchainError

PACKAGE = {
    "ptxas": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "cuobjdump": "nvidia-cuda-cuobjdump",
}


def _candidates(name: str):
    executable = name + (".exe" if sys.platform == "win32" else "")
    for root in map(Path, sys.path):
        yield from sorted(root.glob(f"nvidia/*/bin/{executable}"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / executable
    found = shutil.which(executable)
    if found:
        yield Path(found)


@cache
def find_tool(name: str) -> Path:
    """Return the path of ``ptxas``, ``nvdisasm`` or ``cuobjdump``.

    Raises
    ------
    ToolchainError
        If it is not installed; the message names the package that brings it.
    """
    for path in _candidates(name):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise ToolchainError(
        f"{name} was not found: pip install {PACKAGE.get(name, 'cuda-toolkit')} (or set CUDA_HOME)"
    )


def run_tool(name: str, *arguments: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess:
    """Run a tool and return its output (text); the exit status is the caller's to judge."""
    command = [str(find_tool(name)), *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except OSError as error:
        raise ToolchainError(f"{name} could not be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(f"{name} did not finish within {timeout_s:.0f} s") from error


@cache
def tool_version(name: str) -> str:
    """Return the last line of ``name --version``."""
    return run_tool(name, "--version").stdout.strip().splitlines()[-1]
