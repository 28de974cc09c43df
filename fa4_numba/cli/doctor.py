"""``doctor``: what works on this machine, what is missing, and how to get it."""

import platform
from importlib import metadata

from ..api.dispatch import gpu_architecture
from ..errors import ToolchainError
from ..toolchain.cache import cache_folder
from ..toolchain.tools import find_tool, tool_version


def _packages():
    for name in (
        "numpy",
        "ml_dtypes",
        "numba",
        "numba-cuda",
        "cuda-python",
        "nvidia-nvvm",
        "nvidia-cuda-nvcc",
        "matplotlib",
    ):
        try:
            yield name, metadata.version(name), ""
        except metadata.PackageNotFoundError:
            extra = "'fa4_numba[viz]'" if name == "matplotlib" else name
            yield name, None, f"pip install {extra}"


def _tools():
    for name in ("ptxas", "nvdisasm"):
        try:
            find_tool(name)
            yield name, tool_version(name), ""
        except ToolchainError as error:
            yield name, None, str(error)


def run(arguments) -> int:
    """Print one line per thing; exit status 1 if the kernel cannot be compiled here."""
    print(f"Python {platform.python_version()} on {platform.platform()}")
    missing = []
    for name, version, fix in [*_packages(), *_tools()]:
        print(f"  {'ok' if version else '--'}  {name:<18} {version or 'missing: ' + fix}")
        if not version and name != "matplotlib":
            missing.append(name)
    print(f"  ok  kernel cache        {cache_folder()}")
    gpu = gpu_architecture()
    print(
        f"\n  reference   works (numpy)\n  emulator    {'works' if not missing else 'cannot compile: ' + ', '.join(missing)}"
    )
    state = "works" if gpu == "sm_100" else f"needs a Blackwell GPU; found {gpu or 'none'}"
    print(f"  sm100       {state}")
    print("  sm90        not built yet")
    return 1 if missing else 0
