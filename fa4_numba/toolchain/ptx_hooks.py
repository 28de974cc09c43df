"""Changes that Numba's PTX needs: a stable entry name, and tensor maps as by-value parameters."""

import re

from ..errors import ToolchainError

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", re.S)


def entry_name(ptx: str) -> str:
    """Return the name of the module's only entry."""
    names = _ENTRY.findall(ptx)
    if len(names) != 1:
        raise ToolchainError(f"expected one .entry in the PTX, found {[name for name, _ in names]}")
    return names[0][0]


def rename(ptx: str, name: str) -> str:
    """Give the entry and Numba's shared-memory symbols names without per-process counters and hashes.

    The same kernel then gives the same text in every process, which is what a cache and a comparison need.
    """
    ptx = re.sub(r"^\.common \.global [^\n]*NumbaEnv[^\n]*\n", "", ptx, flags=re.M)  # a variable nothing uses
    ptx = ptx.replace(entry_name(ptx), name)
    for number, symbol in enumerate(dict.fromkeys(re.findall(r"_cudapy_smem_\w+", ptx))):
        ptx = re.sub(rf"{re.escape(symbol)}\b", f"{name}_smem{number}", ptx)
    return ptx


def tensor_maps_by_value(ptx: str, indices: tuple[int, ...]) -> str:
    """Turn the entry's 64-bit parameters ``indices`` into 128-byte, 64-aligned tensor maps passed by value.

    Numba cannot declare such a parameter. Each use, a load of the integer, becomes the parameter's own address, so
    the kernel reads the map where the launch put it and the host need not copy maps to global memory.
    """
    match = _ENTRY.search(ptx)
    parameters = [p.strip() for p in match[2].split(",")]
    names = []
    for index in indices:
        declaration = parameters[index]
        name = declaration.split()[-1]
        if not re.match(r"\.param\s+\.(u64|b64|s64)\s", declaration):
            raise ToolchainError(f"parameter {index} of the kernel is {declaration!r}, not a 64-bit integer")
        parameters[index] = f".param .align 64 .b8 {name}[128]"
        names.append(name)
    ptx = ptx[: match.start(2)] + "\n\t" + ",\n\t".join(parameters) + "\n" + ptx[match.end(2) :]
    for name in names:
        load = re.compile(rf"ld\.param\.(?:u64|b64)\s+(%\w+),\s*\[{re.escape(name)}\];")
        ptx, count = load.subn(rf"mov.b64 \1, {name};\n\tcvta.param.u64 \1, \1;", ptx)
        if not count and len(re.findall(rf"{re.escape(name)}\b", ptx)) > 1:
            raise ToolchainError(f"tensor map parameter {name} is used in a way that is not a plain load")
    return ptx
