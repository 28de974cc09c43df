"""Writes the folder that a machine with a GPU needs to time the kernels: cubins, launches and the runner.

python -m bench.hopper.prepare FOLDER
"""

import json
import shutil
import sys
from pathlib import Path

from fa4_numba.toolchain.assemble import assemble

from . import probes, streams, tiles, triton_cases


def all_cases() -> tuple[list, dict[str, str]]:
    """Return every case, and the PTX of every module."""
    cases, modules = [], {}
    for source in (probes, streams, tiles):
        cases += source.cases()
        modules[source.MODULE] = source.module_text()
    try:
        compiled = triton_cases.compiled()
    except ImportError:
        compiled = []
    for case, text in compiled:
        cases.append(case)
        modules[case.module] = text
    return cases, modules


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases, modules = all_cases()
    for name, text in modules.items():
        (folder / f"{name}.cubin").write_bytes(assemble(text, "sm_90a")[0])
    (folder / "cases.json").write_text(json.dumps([case.as_json() for case in cases], indent=1))
    shutil.copy(Path(__file__).parent / "runner.py", folder)
    (folder / "run.sh").write_text(
        '#!/usr/bin/env bash\ncd "$(dirname "$0")" || exit 1\nexport PYTHONUNBUFFERED=1\n'
        'python3 runner.py . "${OUT:-.}/hopper_times.json" 2>&1 | tee "${OUT:-.}/log"\n'
    )


if __name__ == "__main__":
    main()
