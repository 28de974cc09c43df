"""What a GPU answered: one compressed file per family of cases."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "data" / "silicon"
FAMILIES = (
    "integer",
    "floating",
    "conversions",
    "warps",
    "memory",
    "matrices",
    "wgmma",
    "tma",
    "barriers",
    "clusters",
)


@dataclass(frozen=True)
class Recording:
    """``facts``: device, driver, date; ``outputs``: by case name, (digest of the description, output bytes)."""

    facts: dict
    outputs: dict[str, tuple[str, np.ndarray]]

    def save(self, path: Path) -> None:
        """Write the file."""
        cases = [[name, digest, int(out.size)] for name, (digest, out) in self.outputs.items()]
        header = json.dumps({**self.facts, "cases": cases}).encode()
        blob = (
            np.concatenate([out for _, out in self.outputs.values()])
            if self.outputs
            else np.zeros(0, np.uint8)
        )
        np.savez_compressed(path, header=np.frombuffer(header, np.uint8), outputs=blob)

    @classmethod
    @cache
    def load(cls, family: str, folder: Path = FOLDER) -> "Recording":
        """Read a family's file."""
        with np.load(Path(folder, f"{family}.npz")) as file:
            facts, blob = json.loads(file["header"].tobytes()), file["outputs"]
        outputs, at = {}, 0
        for name, digest, size in facts.pop("cases"):
            outputs[name] = (digest, blob[at : at + size])
            at += size
        return cls(facts, outputs)


@cache
def cases_of(family: str) -> dict:
    """Return the cases of a family by name."""
    return {case.name: case for case in import_module(f"{__package__}.{family}").cases()}
