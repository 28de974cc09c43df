"""PTX to machine code with whole-program ptxas, and the report of what the kernel costs.

Never through nvJitLink: it compiles PTX as a relocatable unit, where ``setmaxnreg`` is ignored and registers spill.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolchainError
from .tools import run_tool

# ptxas notes that mean the kernel is not what was asked for.
FATAL_NOTES = {
    "C7504": "setmaxnreg ignored across compilation units: assemble the whole program",
    "C7506": "setmaxnreg ignored because of a call: every device function must be inlined",
    "C7508": "setmaxnreg ignored: the kernel has no launch bound",
    "C7510": "wgmma serialised: an accumulator is touched between issue and wait",
    "C7513": "wgmma serialised: its operand registers are written before the wait",
}


@dataclass(frozen=True)
class Resources:
    """What ptxas reports of a kernel.

    Attributes
    ----------
    registers : int
        Registers per thread at entry.
    stack_bytes, spill_store_bytes, spill_load_bytes : int
        Bytes per thread.
    static_smem_bytes : int
        Statically allocated shared memory, bytes.
    notes : tuple of str
        Every other message of ptxas.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_smem_bytes: int
    notes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, report: str) -> "Resources":
        """Parse the output of ``ptxas -v``."""

        def number(pattern: str) -> int:
            match = re.search(pattern, report)
            return int(match[1]) if match else 0

        if not re.search(r"Used \d+ registers", report):
            raise ToolchainError(f"ptxas gave no resource report:\n{report}")
        boring = re.compile(
            r"bytes stack frame|Used \d+ registers|Compiling entry|Function properties|Compile time|0 bytes gmem"
        )
        notes = [line.strip() for line in report.splitlines() if line.strip() and not boring.search(line)]
        return cls(
            registers=number(r"Used (\d+) registers"),
            stack_bytes=number(r"(\d+) bytes stack frame"),
            spill_store_bytes=number(r"(\d+) bytes spill stores"),
            spill_load_bytes=number(r"(\d+) bytes spill loads"),
            static_smem_bytes=number(r"(\d+) bytes smem"),
            notes=tuple(notes),
        )

    def __str__(self):
        return (
            f"{self.registers} registers at entry, {self.stack_bytes} B stack, "
            f"{self.spill_store_bytes} B spill stores, {self.spill_load_bytes} B spill loads"
        )


def assemble(ptx: str, arch: str) -> tuple[bytes, Resources]:
    """Assemble PTX text for ``arch`` ("sm_100a"); return (cubin, resources).

    Raises
    ------
    ToolchainError
        If ptxas rejects the PTX, or accepts it with a note that changes the kernel's meaning for performance
        (``FATAL_NOTES``).
    """
    with tempfile.TemporaryDirectory(prefix="fa4_numba-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        result = run_tool("ptxas", f"-arch={arch}", "-v", source, "-o", target)
        report = (result.stdout + result.stderr).replace(folder, "")
        if result.returncode:
            raise ToolchainError(f"ptxas rejected the PTX for {arch}:\n{report.strip()}")
        for note, meaning in FATAL_NOTES.items():
            if note in report:
                raise ToolchainError(f"ptxas note {note}: {meaning}\n{report.strip()}")
        return target.read_bytes(), Resources.parse(report)


def assemble_module(ptx: str, arch: str) -> bytes:
    """Assemble PTX with any number of kernels; return the cubin.

    Raises
    ------
    ToolchainError
        If ptxas rejects the PTX.
    """
    with tempfile.TemporaryDirectory(prefix="fa4_numba-") as folder:
        source, target = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        source.write_text(ptx)
        result = run_tool("ptxas", f"-arch={arch}", source, "-o", target)
        if result.returncode:
            report = (result.stdout + result.stderr).replace(folder, "")
            raise ToolchainError(f"ptxas rejected the PTX for {arch}:\n{report.strip()}")
        return target.read_bytes()


def disassemble(cubin: bytes) -> str:
    """Return the SASS text of a cubin."""
    with tempfile.TemporaryDirectory(prefix="fa4_numba-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        result = run_tool("nvdisasm", "-c", path)
        if result.returncode:
            raise ToolchainError(f"nvdisasm failed:\n{result.stderr.strip()}")
        return result.stdout
