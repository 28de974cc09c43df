"""What the comparison with a GPU gives: ``python -m tests.silicon.report`` prints counts, and ulps of approximations."""

import argparse
from collections import Counter

import ml_dtypes
import numpy as np

from .batch import batches, emulate
from .case import Close
from .recording import FAMILIES, Recording, cases_of

_LIMITS = (0, 1, 2, 4, 16, 256)


def ulps(case, emulated: np.ndarray, silicon: np.ndarray) -> np.ndarray:
    """Return by how many representable values the results of an approximation differ; NaN agrees with NaN."""
    dtype = np.dtype(getattr(ml_dtypes, case.compare.dtype, None) or case.compare.dtype)
    word = np.dtype(f"i{dtype.itemsize}")
    top = int(np.iinfo(word).min)

    def ordered(data):
        bits = data.view(word).astype(object)
        return np.array([int(b) if b >= 0 else top - int(b) for b in bits], object)

    nan = [np.isnan(x.view(dtype).astype(np.float64)) for x in (emulated, silicon)]
    distance = np.abs(ordered(emulated) - ordered(silicon))
    return np.where(nan[0] & nan[1], 0, distance)


def histogram(distances: np.ndarray) -> str:
    """Return ``0: n, 1: n, 2: n, ≤4: n …``."""
    counts = Counter(next((limit for limit in _LIMITS if d <= limit), None) for d in distances)
    name = lambda limit: "more" if limit is None else str(limit) if limit < 3 else f"≤{limit}"
    return ", ".join(f"{name(limit)}: {counts[limit]}" for limit in (*_LIMITS, None) if counts[limit])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=FAMILIES, help="default: all")
    parser.add_argument("--engine", default="interpreter")
    options = parser.parse_args()
    for family in options.families:
        recording, cases, wrong, results, lines = Recording.load(family), cases_of(family), 0, 0, []
        known = [c for n, c in cases.items() if recording.outputs.get(n, ("",))[0] == c.digest]
        for batch in batches(known):
            for case, out in zip(batch, emulate(batch, options.engine)):
                answer = recording.outputs[case.name][1]
                wrong += len(case.compare.mismatches(out, answer)) > 0
                results += out.size
                if isinstance(case.compare, Close):
                    lines.append(f"    {case.name}: {histogram(ulps(case, out, answer))}")
        facts = ", ".join(f"{key} {value}" for key, value in recording.facts.items())
        print(
            f"{family}: {len(known)} of {len(cases)} cases recorded, {results:,} bytes, {wrong} cases differ ({facts})"
        )
        print("\n".join(lines), end="\n" if lines else "")


if __name__ == "__main__":
    main()
