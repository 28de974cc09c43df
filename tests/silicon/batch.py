"""Many cases in one kernel: making machine code is what takes time, not running it."""

import re
from collections import defaultdict

import numpy as np

from fa4_numba.emulator import GlobalMemory, Machine

from .case import HEADER, PROLOGUE, UNWRITTEN, Case

_ALIGN = 256
_TEXT = 20_000  # characters of PTX in one kernel, about


def batches(cases) -> list[list[Case]]:
    """Group cases that the same launch can run."""
    groups = defaultdict(list)
    for case in cases:
        batch = groups[case.threads, case.grid, case.cluster]
        if not batch or sum(len(c.body) for c in batch[-1]) > _TEXT:
            batch.append([])
        batch[-1].append(case)
    return [batch for group in groups.values() for batch in group]


def _offsets(sizes) -> tuple[list[int], int]:
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // _ALIGN) * _ALIGN
    return offsets, at


def _kernel(cases, inputs, outputs) -> str:
    """Return a module whose kernel runs one case after the other, each in a scope of its own."""
    first = cases[0]
    meet = (
        "bar.sync 0;"
        if first.cluster == 1
        else "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )
    text, maps = [], []
    for case, source, target in zip(cases, inputs, outputs):
        body = case.body
        for i in range(len(case.maps)):
            body = re.sub(rf"\bmap{i}\b", f"map{len(maps)}", body)
            maps.append(f", .param .align 64 .b8 map{len(maps)}[128]")
        text.append(
            f"{{ .reg .b64 %in, %out; add.s64 %in, %inputs, {source}; add.s64 %out, %outputs, {target};\n{body}\n{meet} }}"
        )
    prologue = PROLOGUE.replace("%in", "%inputs").replace("%out", "%outputs")
    cluster = f".explicitcluster .reqnctapercluster {first.cluster}, 1, 1" if first.cluster > 1 else ""
    return (
        f"{HEADER}.visible .entry batch(.param .u64 in, .param .u64 out{''.join(maps)}) .maxntid {first.threads} {cluster}\n"
        f"{{\n{prologue}" + "\n".join(text) + "\nret;\n}\n"
    )


def emulate(cases: list[Case], engine: str, schedule: str = "eager") -> list[np.ndarray]:
    """Return the output of each case of a batch."""
    inputs, input_bytes = _offsets([case.data.size for case in cases])
    outputs, output_bytes = _offsets([case.out_bytes for case in cases])
    source, out = np.zeros(input_bytes, np.uint8), np.full(output_bytes, UNWRITTEN, np.uint8)
    for case, at in zip(cases, inputs):
        source[at : at + case.data.size] = case.data
    memory, first = GlobalMemory(), cases[0]
    base = {"in": memory.bind(source, "in"), "out": memory.bind(out, "out", writable=True)}
    maps = [
        spec
        for case, i, o in zip(cases, inputs, outputs)
        for spec in case.placed_maps({"in": base["in"] + i, "out": base["out"] + o})
    ]
    Machine(
        _kernel(cases, inputs, outputs),
        grid=(first.grid, 1, 1),
        block=(first.threads, 1, 1),
        cluster=(first.cluster, 1, 1),
        args=(base["in"], base["out"], *maps),
        memory=memory,
        dynamic_smem_bytes=max(case.shared_bytes for case in cases),
        schedule=schedule,
        engine=engine,
    ).run()
    return [out[at : at + case.out_bytes] for case, at in zip(cases, outputs)]
