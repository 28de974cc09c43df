"""One intercepted launch, and the log of all of them."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...errors import LaunchError
from ..machine.inspection import RunStats
from ..machine.machine import Machine
from ..machine.memory import GlobalMemory
from ..ptx import Module, parse

_FIELDS = ("kernel", "grid", "block", "cluster", "dynamic_smem_bytes")


@lru_cache(maxsize=64)
def parsed(ptx: str) -> Module:
    return parse(ptx)


@dataclass
class Launch:
    """What a library handed to the driver. ``args`` are the bytes of each parameter, tensor maps in our own format."""

    kernel: str
    ptx: str = field(repr=False)
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_smem_bytes: int
    args: tuple[bytes, ...] = field(repr=False)
    memory: GlobalMemory = field(repr=False)
    stats: RunStats | None = None
    reports: list = field(default_factory=list, repr=False)  # hazards, if it ran with ``check=True``

    @property
    def module(self) -> Module:
        """The parsed PTX."""
        return parsed(self.ptx)

    def machine(self, **options) -> Machine:
        """Return a machine that is ready to run this launch; ``options`` as :class:`Machine` takes them."""
        return Machine(
            self.module,
            self.grid,
            self.block,
            self.args,
            self.memory,
            self.dynamic_smem_bytes,
            self.cluster,
            self.kernel,
            **options,
        )

    def run(self, **options) -> RunStats:
        """Run it once on the arrays as they are now."""
        machine = self.machine(**options)
        self.stats = machine.run()
        if machine.checker is not None:
            self.reports = machine.checker.reports
        return self.stats

    def save(self, folder) -> Path:
        """Write ``kernel.ptx``, ``launch.json`` and ``memory.npz``: all that :meth:`load` needs to run it elsewhere."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        facts = {name: getattr(self, name) for name in _FIELDS} | {"args": [a.hex() for a in self.args]}
        (folder / "kernel.ptx").write_text(self.ptx)
        (folder / "launch.json").write_text(json.dumps(facts, indent=1))
        arrays = {f"{address:#x}": data for address, data in self.memory.snapshot().items()}
        np.savez_compressed(folder / "memory.npz", **arrays)
        return folder

    @classmethod
    def load(cls, folder) -> "Launch":
        """Read what :meth:`save` wrote."""
        folder, memory = Path(folder), GlobalMemory()
        facts = json.loads((folder / "launch.json").read_text())
        with np.load(folder / "memory.npz") as arrays:
            for name in sorted(arrays, key=lambda name: int(name, 16)):
                if memory.bind(arrays[name].copy(), name, writable=True) != int(name, 16):
                    raise LaunchError(
                        f"{folder}: memory.npz was written by another version; save the launch again"
                    )
        args = tuple(bytes.fromhex(a) for a in facts.pop("args"))
        shape = {name: tuple(facts[name]) for name in ("grid", "block", "cluster")}
        return cls(**facts | shape, ptx=(folder / "kernel.ptx").read_text(), args=args, memory=memory)


class LaunchLog(list):
    """The launches of a session, in order. Printing it gives a table."""

    def __str__(self):
        head = f"{'kernel':40} {'grid':>14} {'cluster':>9} {'threads':>7} {'warp-instructions':>17} {'seconds':>8}"
        rows = [
            f"{launch.kernel[:40]:40} {_by(launch.grid):>14} {_by(launch.cluster):>9} {np.prod(launch.block):7} "
            + (
                f"{launch.stats.warp_instructions:17,} {launch.stats.seconds:8.2f}"
                if launch.stats
                else "not run"
            )
            for launch in self
        ]
        return "\n".join([head, *rows])


def _by(shape) -> str:
    return "x".join(map(str, shape))
