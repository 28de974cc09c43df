"""Our attention kernel and flash-attn-4's on the timing model of a Blackwell SM, beside each other. No GPU: a *model*.

``python bench/blackwell_model.py [--peer FOLDER] [--seq-k 1024 2048] [--trace FOLDER]``

One CTA, 256 queries, head dimension 128, full attention, two lengths of the keys: the difference is what 256 x 128 tiles
cost once the pipeline runs. flash-attn-4's PTX is not part of this project. Its launches are made by

``python bench/blackwell_model.py --save FOLDER`` in the environment of ``tests/peers`` for flash-attn-4 (with torch),

and read back with ``--peer FOLDER`` in ours.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

QUERIES, DIM, TILE = 256, 128, 128
UNITS = ("tensor core", "MUFU", "issue slots", "FMA", "ALU", "TMEM", "shared memory", "TMA load")
CALIBRATED_ON = ("wgmma", "exponentials", "softmax_mix", "matmul", "attention")


def save(folder: Path, lengths: list[int]) -> None:
    """Save flash-attn-4's launches."""
    sys.path.insert(0, str(ROOT / "tests/peers"))
    from cases_fa4 import flag, flash_attn_func, tensor  # the environment of CuTe DSL must be set first

    from fa4_numba.emulator.driver import emulated_driver

    for keys in lengths:
        q, k, v = (tensor(1, n, 1, DIM, seed=i) for i, n in enumerate((QUERIES, keys, keys)))
        place = emulated_driver(libraries=["cutlass"], run=False, save_to=folder / str(keys))
        with place, flag("_fa_disable_2cta_enabled"):
            flash_attn_func(q, k, v, return_lse=True)
    print(f"saved in {folder}")


def ours(keys: int):
    """Return a machine with our kernel."""
    from fa4_numba.api import Problem, choose_config
    from fa4_numba.cli.emulate import random_inputs
    from fa4_numba.launch.emulate import prepare
    from fa4_numba.toolchain import compile_kernel

    problem = Problem(1, 1, 1, QUERIES, keys, DIM, DIM, "bfloat16")
    kernel = compile_kernel(choose_config(problem).config)
    return prepare(kernel, *random_inputs(problem), scale=DIM**-0.5, schedule="model")[0]


def theirs(folder: Path, keys: int):
    """Return a machine with flash-attn-4's kernel, saved before."""
    from fa4_numba.emulator.driver import Launch

    found = sorted((folder / str(keys)).glob("*/launch.json"))
    if not found:
        raise SystemExit(
            f"{folder / str(keys)} holds no saved launch of flash-attn-4: make it with\n"
            f"  python bench/blackwell_model.py --save {folder} --seq-k {keys} …\nin the environment of tests/peers for "
            "flash-attn-4, or leave --peer out to see our kernel alone"
        )
    return Launch.load(found[-1].parent).machine(schedule="model")


def report(name: str, make, lengths: list[int], trace: Path | None) -> dict:
    """Run a kernel for both lengths; print who waits for whom; return the figures of its table column."""
    timings = []
    for keys in lengths:
        machine = make(keys)
        machine.run()
        timings.append(machine.timing)
    short, long = timings
    tiles = (lengths[1] - lengths[0]) // TILE
    per_tile = (long.cycles - short.cycles) / tiles
    figures = {
        "cycles per tile": per_tile,
        "cycles, first length": short.cycles,
        "cycles, second length": long.cycles,
    }
    before, after = short.utilisation(), long.utilisation()
    for unit in UNITS:  # of the difference: the steady state
        busy = after.get(unit, 0.0) * long.cycles - before.get(unit, 0.0) * short.cycles
        figures[unit] = busy / (long.cycles - short.cycles)
    print(f"\n{name}: who waits for whom, cycles per tile and warp (steady state)")
    was = {row[:3]: row[4] for row in short.waiting()}
    rows = [(*row[:3], (row[4] - was.get(row[:3], 0.0)) / tiles) for row in long.waiting()]
    for role, what, whom, cycles in sorted(rows, key=lambda row: -row[3]):
        if cycles >= 20:
            print(f"  {role:16} {cycles:6.0f}  {what}" + (f", completed by {whom}" if whom else ""))
    if trace is not None:
        trace.mkdir(parents=True, exist_ok=True)
        (trace / f"{name.replace(' ', '_')}.json").write_text(long.perfetto())
    return figures


def calibration() -> str:
    """Return the model's error on Hopper kernels that a GPU timed."""
    from bench.calibrate_timing import whole_kernels

    errors = {name: model / gpu - 1 for name, _, gpu, model, *_ in whole_kernels(CALIBRATED_ON)}
    worst = max(errors, key=lambda name: abs(errors[name]))
    mean = sum(map(abs, errors.values())) / len(errors)
    return (
        f"calibration on an H200 ({', '.join(f'{n} {e:+.0%}' for n, e in errors.items())}): mean error {mean:.0%}, "
        f"largest {errors[worst]:+.0%} ({worst})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="folder of saved launches of flash-attn-4")
    parser.add_argument("--save", type=Path, help="only save flash-attn-4's launches in this folder")
    parser.add_argument(
        "--seq-k", type=int, nargs=2, default=[1024, 2048], metavar="N", help="two lengths of the keys"
    )
    parser.add_argument("--trace", type=Path, help="folder for Perfetto traces in model time")
    arguments = parser.parse_args()
    if arguments.save:
        save(arguments.save, arguments.seq_k)
        return
    columns = {"fa4_numba": report("fa4_numba", ours, arguments.seq_k, arguments.trace)}
    if arguments.peer:
        make = lambda keys: theirs(arguments.peer, keys)
        columns["flash-attn-4"] = report("flash-attn-4", make, arguments.seq_k, arguments.trace)
    else:
        print("\nflash-attn-4: not run. Its PTX is not part of this project: see --save and --peer")
    print(
        f"\n*model* of one sm_100 SM, {QUERIES} queries, d{DIM}, keys {arguments.seq_k}; tile: {QUERIES} x {TILE}"
    )
    print(f"{'':24}" + "".join(f"{name:>14}" for name in columns))
    for row in next(iter(columns.values())):
        values = [figures[row] for figures in columns.values()]
        print(f"{row:24}" + "".join(f"{v:14.0%}" if v < 3 else f"{v:14,.0f}" for v in values))
    print(calibration())


if __name__ == "__main__":
    main()
