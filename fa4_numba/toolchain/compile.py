"""``compile_kernel``: from an ``FA4Config`` to PTX, machine code and a resource report, through the cache."""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from ..config import FA4Config
from ..errors import ToolchainError
from . import cache as disk
from .assemble import Resources, assemble, disassemble
from .ptx_hooks import rename, tensor_maps_by_value
from .tools import find_tool, tool_version

ARCH = "sm_100a"
_COMPUTE_CAPABILITY = (10, 0, "a")
_PACKAGE = Path(__file__).resolve().parent.parent
_SOURCES = (
    "hw",
    "config",
    "layout",
    "reference",
    "ptx",
    "kernels",
    "toolchain",
)  # everything that shapes a kernel


@dataclass(frozen=True)
class CompiledKernel:
    """A compiled attention kernel.

    Attributes
    ----------
    config : FA4Config
        The layout that it was compiled for.
    causal : bool
        Whether the mask is bottom-right causal.
    entry : str
        Name of the kernel in the PTX and the cubin.
    threads : int
        Threads per CTA.
    ptx : str
        The PTX, exactly what ptxas and the emulator get.
    cubin : bytes
        Machine code for ``arch``.
    resources : Resources
        Registers, spills, shared memory as ptxas reports them.
    """

    config: FA4Config
    causal: bool
    entry: str
    threads: int
    arch: str
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    resources: Resources

    @property
    def sass(self) -> str:
        """Machine code as text (disassembled on first use)."""
        return _sass(self.cubin)


@cache
def _sass(cubin: bytes) -> str:
    return disassemble(cubin)


@cache
def _source_hash() -> str:
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def _versions() -> str:
    try:
        packages = [f"{name} {metadata.version(name)}" for name in ("numba", "numba-cuda", "llvmlite")]
    except metadata.PackageNotFoundError as error:
        raise ToolchainError(
            f"compiling a kernel needs the package {error.name}: pip install {error.name}"
        ) from error
    return "; ".join(packages)


@cache
def _ptxas_identity() -> str:
    path = find_tool("ptxas")
    return f"{path.stat().st_size} {path.stat().st_mtime_ns}"


def _to_ptx(cfg: FA4Config, causal: bool, entry: str) -> tuple[str, int]:
    """Compile the kernel for ``cfg`` to PTX; return (ptx, threads per CTA)."""
    try:
        from numba import cuda
    except ImportError as error:
        raise ToolchainError("compiling a kernel needs numba-cuda: pip install numba-cuda") from error
    from ..kernels.sm100.forward import PARAMETERS, TENSOR_MAP_PARAMETERS, build_kernel

    kernel, signature, threads = build_kernel(cfg, causal=causal)
    try:
        ptx, _ = cuda.compile_ptx(kernel, signature, cc=_COMPUTE_CAPABILITY, launch_bounds=(threads, 1))
    except (ImportError, OSError) as error:  # numba-cuda finds NVVM only when it compiles
        raise ToolchainError(f"NVVM was not found: pip install nvidia-nvvm ({error})") from error
    maps = tuple(i for i, (name, _) in enumerate(PARAMETERS) if name in TENSOR_MAP_PARAMETERS)
    return tensor_maps_by_value(rename(ptx, entry), maps), threads


def compile_kernel(cfg: FA4Config, *, causal: bool = False) -> CompiledKernel:
    """Compile the sm_100a forward kernel for a config.

    Parameters
    ----------
    cfg : FA4Config
        The layout; must be one that the kernel serves (two Q tiles, 16-bit types, head dims ≤ 128).
    causal : bool
        Bottom-right causal masking.

    Returns
    -------
    CompiledKernel
        From the disk cache if the same sources, tools and config were compiled before.

    Raises
    ------
    UnsupportedError
        If the kernel cannot serve the config.
    ToolchainError
        If a tool is missing or rejects the kernel.
    """
    from ..kernels.sm100.support import check_supported

    check_supported(cfg)
    key = disk.key_of(
        _source_hash(), _versions(), _ptxas_identity(), cfg.to_json(), f"causal={bool(causal)}", ARCH
    )
    entry = disk.load(key)
    if entry is None:
        name = f"fa4_forward_{'causal' if causal else 'full'}"
        ptx, threads = _to_ptx(cfg, bool(causal), name)
        cubin, resources = assemble(ptx, ARCH)
        entry = {"entry": name, "threads": threads, "ptx": ptx, "cubin": cubin, "resources": resources}
        disk.store(key, entry)
    return CompiledKernel(config=cfg, causal=bool(causal), arch=ARCH, **entry)


def toolchain_versions() -> dict[str, str]:
    """Return the versions of what compiles kernels on this machine."""
    return {
        "python packages": _versions(),
        "ptxas": tool_version("ptxas"),
        "nvdisasm": tool_version("nvdisasm"),
    }
