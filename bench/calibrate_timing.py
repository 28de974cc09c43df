"""The timing model beside a GPU: kernels of ``bench/hopper``, measured on one H200, and what the model says of them.

``python bench/calibrate_timing.py [--probes]`` prints a table of the whole kernels, or of the micro kernels. The GPU's time
of a kernel is the span from the first CTA's first to the last CTA's last instruction, by the GPU's nanosecond timer:
event times of these short launches hold about 60 µs of launch overhead besides. The clock is the measured one (the GPU
lowers it under load, which no model of an SM can know): the model's cycles are turned into µs with it.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.hopper import probes, streams, tiles  # noqa: E402
from bench.hopper.emulate import machine_of  # noqa: E402
from bench.hopper.text import HEADER  # noqa: E402
from fa4_numba.emulator.timing.grid import kernel_time  # noqa: E402

TIMES = json.loads((ROOT / "bench/data/hopper_times.json").read_text())
RESIDENT = {"copy": 4}  # CTAs of an SM, where registers do not limit them and the grid has that many
PROBE_ITERATIONS = (8, 24)
FITTED = {
    "copy": "HBM bandwidth",
    "attention": "mma_queue",
}  # kernels that a number of the model was fitted to


def whole_kernels(names: tuple | None = None):
    """Yield (name, what limits it, GPU µs, model µs, GPU cycles of a CTA, model cycles of a CTA)."""
    texts = {"streams": streams.module_text(), "tiles": tiles.module_text()}
    for case in [*streams.cases(), *tiles.cases()]:
        if names is not None and case.name not in names:
            continue
        measured = TIMES["kernels"][case.name]
        machine, _ = machine_of(case, texts[case.module], schedule="model")
        machine.run_until(lambda machine: machine.ctas_done >= 1)
        clock = measured["clock_ghz"]
        predicted = kernel_time(machine, RESIDENT.get(case.name), clock)
        gpu, model = measured["grid_ns"] / 1e3, predicted.cycles / clock / 1e3
        yield case.name, case.bound, gpu, model, measured["cta_cycles_median"], machine.timing.cycles


def micro_kernels():
    """Yield (name, GPU cycles, model cycles) of one iteration of each micro kernel."""
    cases = {case.name: case for case in probes.cases()}
    for probe in probes.probes():
        text, totals = HEADER + probes._kernel(probe), []
        for n in PROBE_ITERATIONS:
            machine, arrays = machine_of(cases[probe.name], text, n, schedule="model")
            machine.run()
            totals.append(int(arrays["out"].view(np.uint64)[: 4 * probe.warps : 4].max()))
        body = (totals[1] - totals[0]) / (PROBE_ITERATIONS[1] - PROBE_ITERATIONS[0])
        yield probe.name, TIMES["probes"][probe.name], body


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--probes", action="store_true", help="the micro kernels instead of whole kernels")
    arguments = parser.parse_args()
    facts = TIMES["facts"]
    print(
        f"GPU: {facts['device']}, driver {facts['driver']}, {facts['date']}; the other column is a *model*\n"
    )
    if arguments.probes:
        print(f"{'micro kernel':40} {'GPU cycles':>10} {'model':>10} {'error':>7}")
        for name, gpu, model in micro_kernels():
            error = f"{model / gpu - 1:+7.0%}" if gpu > 1 else "removed"  # ptxas removed some
            print(f"{name:40} {gpu:10.1f} {model:10.1f} {error}", flush=True)
        return
    print(
        f"{'kernel':16} {'limited by':22} {'GPU µs':>8} {'model µs':>8} {'error':>6}   cycles of a CTA: GPU, model"
    )
    for name, bound, gpu, model, gpu_cta, model_cta in whole_kernels():
        note = f"  ({FITTED[name]} was fitted to it)" if name in FITTED else ""
        print(
            f"{name:16} {bound:22} {gpu:8.1f} {model:8.1f} {model / gpu - 1:+6.0%}   "
            f"{gpu_cta:9,.0f} {model_cta:9,.0f}{note}",
            flush=True,
        )


if __name__ == "__main__":
    main()
