"""Records what a GPU answers: ``python -m tests.silicon.record`` on a machine with a Hopper GPU.

Each family of cases runs in a process of its own, so that a kernel that faults or hangs costs its own answer only.
"""

import argparse
import datetime
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

from .recording import FAMILIES, FOLDER, Recording, cases_of

_HANGS_AFTER_S = 20.0


def cubin_of(family: str, folder: Path) -> bytes:
    """Return the family's kernels, assembled now unless ``folder`` has them."""
    from .device import compile_cases

    cases = list(cases_of(family).values())
    key = hashlib.blake2b("".join(case.digest for case in cases).encode(), digest_size=6).hexdigest()
    path = Path(folder, f"{family}-{key}.cubin")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compile_cases(cases))
    return path.read_bytes()


def work(family: str, cubins: Path, scratch: Path, skip: list[str]) -> None:
    """Run the cases that have no answer yet, or that of an older description; the name of the one that runs stands in ``scratch``."""
    from .device import Device, description

    path, current = Path(scratch, f"{family}.npz"), Path(scratch, f"{family}.current")
    cases, done = cases_of(family), dict(Recording.load(family, scratch).outputs) if path.exists() else {}
    done = {
        name: answer for name, answer in done.items() if name in cases and cases[name].digest == answer[0]
    }
    facts = {**description(), "date": datetime.date.today().isoformat()}
    device, saved = Device(cubin_of(family, cubins)), time.monotonic()
    try:
        for name, case in cases.items():
            if name in done or name in skip:
                continue
            current.write_text(name)
            done[name] = (case.digest, device.run(case))
            if time.monotonic() - saved > 2:
                Recording(facts, done).save(path)
                saved = time.monotonic()
        current.unlink(missing_ok=True)
    finally:
        Recording(facts, done).save(path)


def record(family: str, cubins: Path, out: Path) -> list[str]:
    """Record a family; return the names of the cases that failed."""
    failed, current = [], Path(out, f"{family}.current")
    while True:
        arguments = ["--worker", family, "--cubins", cubins, "--out", out, "--skip", json.dumps(failed)]
        process = subprocess.Popen([sys.executable, "-m", f"{__package__}.record", *map(str, arguments)])
        seen, since = "", time.monotonic()
        while process.poll() is None:
            time.sleep(0.1)
            name = current.read_text() if current.exists() else ""
            if name != seen or not name:
                seen, since = name, time.monotonic() if name else since
            if time.monotonic() - since > (_HANGS_AFTER_S if name else 120.0):
                process.kill()
        if process.returncode == 0:
            return failed
        name = current.read_text() if current.exists() else ""
        print(f"{family}: {name or 'start'} failed (exit status {process.returncode})", flush=True)
        current.unlink(missing_ok=True)
        if not name or name in failed or len(failed) > 60:
            return [*failed, name or family]
        failed.append(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=FAMILIES, help="default: all")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument(
        "--cubins", type=Path, default=Path("build/silicon"), help="assembled kernels, made where missing"
    )
    parser.add_argument("--assemble-only", action="store_true", help="make the kernels, run nothing")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--skip", default="[]", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.cubins, options.out, json.loads(options.skip))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    for family in options.families:
        start = time.perf_counter()
        cubin_of(family, options.cubins)
        failed = [] if options.assemble_only else record(family, options.cubins, options.out)
        count = len(cases_of(family))
        print(
            f"{family}: {count - len(failed)} of {count} recorded, {time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
