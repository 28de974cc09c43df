"""Runs prepared kernels on a GPU and writes their times: needs numpy and cuda.bindings, nothing of this project.

    python runner.py FOLDER OUT.json

FOLDER holds cases.json and one .cubin per module. Each module runs in a process of its own, with a time limit, so that
a kernel that hangs costs only itself.
"""

import ctypes
import datetime
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

REPEATS, WARM_UPS, MODULE_LIMIT_S = 15, 3, 120
STATS_WORDS = 4


def check(result):
    """Return what a driver call gives, or raise."""
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA driver: {result[0]}")
    return result[1] if len(result) == 2 else result[1:]


class Device:
    """The GPU, its clock, and its buffers."""

    def __init__(self):
        from cuda.bindings import driver

        self.driver = driver
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(0))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(self.context))
        self.pattern = self._pattern()

    def facts(self) -> dict:
        d, a = self.driver, self.driver.CUdevice_attribute

        def get(name):
            return int(check(d.cuDeviceGetAttribute(getattr(a, f"CU_DEVICE_ATTRIBUTE_{name}"), self.device)))

        name = check(d.cuDeviceGetName(100, self.device))
        return {
            "device": name.split(b"\0")[0].decode(),
            "sms": get("MULTIPROCESSOR_COUNT"),
            "clock_khz": get("CLOCK_RATE"),
            "memory_clock_khz": get("MEMORY_CLOCK_RATE"),
            "bus_bits": get("GLOBAL_MEMORY_BUS_WIDTH"),
            "l2_bytes": get("L2_CACHE_SIZE"),
            "cuda": int(check(d.cuDriverGetVersion())),
            "driver": smi("driver_version"),
            "date": datetime.date.today().isoformat(),
        }

    def _pattern(self) -> np.ndarray:
        """Small bf16 numbers."""
        values = np.random.default_rng(0).standard_normal(1 << 22).astype(np.float32)
        return (values.view(np.uint32) >> 16).astype(np.uint16)

    def allocate(self, size: int, fill: str):
        d = self.driver
        pointer = check(d.cuMemAlloc(size))
        if fill == "bf16":
            step = self.pattern.nbytes
            for at in range(0, size, step):
                count = min(step, size - at)
                check(d.cuMemcpyHtoD(int(pointer) + at, self.pattern.ctypes.data, count))
        else:
            check(d.cuMemsetD8(pointer, 0, size))
        return pointer

    def read(self, pointer, size: int) -> np.ndarray:
        out = np.empty(size, np.uint8)
        check(self.driver.cuMemcpyDtoH(out.ctypes.data, int(pointer), size))
        return out

    def tensor_map(self, pointer, spec: dict) -> bytes:
        d = self.driver
        rank, shape = len(spec["shape"]), spec["shape"]
        strides, pitch = [], 2
        for n in shape[:-1]:
            pitch *= n
            strides.append(d.cuuint64_t(pitch))
        swizzle = {
            0: d.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
            128: d.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        }[spec["swizzle"]]
        made = check(
            d.cuTensorMapEncodeTiled(
                d.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                rank,
                int(pointer),
                [d.cuuint64_t(n) for n in shape],
                strides,
                [d.cuuint32_t(n) for n in spec["box"]],
                [d.cuuint32_t(1)] * rank,
                d.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                d.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                d.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )
        return np.array([int(x) for x in made.opaque], np.uint64).tobytes()


def smi(query: str) -> str:
    """Ask nvidia-smi; "" if there is none."""
    try:
        command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


class Launch:
    """One case on the device."""

    def __init__(self, device: Device, function, case: dict):
        self.device, self.case, self.function = device, case, function
        self.buffers = {b["name"]: device.allocate(b["bytes"], b["fill"]) for b in case["buffers"]}
        self.sizes = {b["name"]: b["bytes"] for b in case["buffers"]}
        self.maps = {m["name"]: device.tensor_map(self.buffers[m["buffer"]], m) for m in case["maps"]}
        d = device.driver
        if case["smem"] > 48 * 1024:
            attribute = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(d.cuFuncSetAttribute(function, attribute, case["smem"]))
        start, end = check(d.cuEventCreate(0)), check(d.cuEventCreate(0))
        self.events = start, end

    def go(self, n: int | None = None) -> None:
        values = [self._value(arg, n) for arg in self.case["args"]]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        d, case = self.device.driver, self.case
        check(
            d.cuLaunchKernel(
                self.function,
                *case["grid"],
                case["block"],
                1,
                1,
                case["smem"],
                0,
                ctypes.addressof(pointers),
                0,
            )
            + (None,)
        )

    def _value(self, arg, n):
        if arg == "n":
            return ctypes.c_uint32(n)
        if isinstance(arg, list):
            return {"u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "f32": ctypes.c_float}[arg[0]](arg[1])
        if arg in self.buffers:
            return ctypes.c_uint64(int(self.buffers[arg]))
        # a tensor map is passed by value and needs an address that is a multiple of 64
        raw = ctypes.create_string_buffer(128 + 64)
        at = -ctypes.addressof(raw) % 64
        value = (ctypes.c_ubyte * 128).from_buffer(raw, at)
        value[:] = self.maps[arg]
        return value

    def time_us(self) -> float:
        d, (start, end) = self.device.driver, self.events
        check(d.cuEventRecord(start, 0) + (None,))
        self.go()
        check(d.cuEventRecord(end, 0) + (None,))
        check(d.cuEventSynchronize(end) + (None,))
        return float(check(d.cuEventElapsedTime(start, end))) * 1e3

    def synchronize(self):
        check(self.device.driver.cuCtxSynchronize() + (None,))

    def free(self):
        for pointer in self.buffers.values():
            check(self.device.driver.cuMemFree(pointer) + (None,))


def probe(launch: Launch) -> dict:
    """Cycles of one body: the slowest warp's clock difference at two iteration counts, median of repeats."""
    low, high = launch.case["work"]["iterations"]
    warps = launch.case["block"] // 32
    found = {low: [], high: []}
    for i in range(REPEATS + 1):
        for n in (low, high):
            launch.go(n)
            launch.synchronize()
            words = launch.device.read(launch.buffers["out"], 32 * warps).view(np.uint64)
            if i:
                found[n].append(int(words[::4].max()))
    medians = {n: float(np.median(v)) for n, v in found.items()}
    body = (medians[high] - medians[low]) / (high - low)
    return {
        "cycles": body / launch.case["work"]["count"],
        "cycles_body": body,
        "totals": [medians[low], medians[high]],
    }


def stream(launch: Launch) -> dict:
    """Event times of single launches, and what the warps' own clocks say."""
    for _ in range(WARM_UPS):
        launch.go()
    launch.synchronize()
    time.sleep(0.2)
    times = []
    for _ in range(REPEATS):
        times.append(launch.time_us())
        time.sleep(0.01)
    out = {"us": float(np.median(times)), "us_all": [round(t, 2) for t in times]}
    for _ in range(30):
        launch.go()
    out["smi_clock_mhz"] = smi("clocks.sm")
    launch.synchronize()
    if launch.case["stats"]:
        launch.go()
        launch.synchronize()
        out |= statistics(launch)
    return out


def statistics(launch: Launch) -> dict:
    name = launch.case["stats"]
    words = launch.device.read(launch.buffers[name], launch.sizes[name]).view(np.uint64)
    ctas = int(np.prod(launch.case["grid"]))
    words = words.reshape(ctas, -1, STATS_WORDS).astype(np.int64)
    cycles = words[:, :, 1].max(1) - words[:, :, 0].min(1)
    spans = words[:, :, 3].max(1) - words[:, :, 2].min(1)
    whole = int(words[:, :, 3].max() - words[:, :, 2].min())
    return {
        "cta_cycles_median": float(np.median(cycles)),
        "cta_cycles_first": int(cycles[0]),
        "cta_ns_median": float(np.median(spans)),
        "clock_ghz": float(cycles.sum() / max(spans.sum(), 1)),
        "grid_ns": whole,
    }


def numbers(raw: np.ndarray) -> np.ndarray:
    return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def verify(launch: Launch) -> float | None:
    """Return the relative error of some rows of a product or an attention."""
    name = launch.case["name"]

    def rows(buffer, columns, first, count):
        raw = launch.device.read(int(launch.buffers[buffer]) + first * columns * 2, count * columns * 2)
        return numbers(raw).reshape(count, columns)

    if name in ("matmul", "triton_matmul"):
        size = launch.case["maps"][0]["shape"][0]
        got = rows("c" if name == "matmul" else "C", size, 128, 64)
        want = rows("A", size, 128, 64) @ rows("B", size, 0, size).T
    elif name in ("attention", "triton_attention"):
        tokens = launch.case["grid"][0] * 128
        got = rows("out" if name == "attention" else "OUT", 128, tokens + 128, 128)
        q, k, v = (rows(x, 128, tokens, tokens) for x in "QKV")
        scores = q[128:256] @ k.T / 128**0.5
        p = np.exp(scores - scores.max(1, keepdims=True))
        want = p / p.sum(1, keepdims=True) @ v
    elif name in ("copy", "tma_copy"):
        source, target = ("src", "dst") if name == "copy" else ("src_data", "dst_data")
        size = launch.sizes[source]
        got = launch.device.read(int(launch.buffers[target]) + size - 65536, 65536).astype(float)
        want = launch.device.read(int(launch.buffers[source]) + size - 65536, 65536).astype(float)
    else:
        return None
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def run_module(folder: Path, module: str) -> None:
    """Run a module's cases; one JSON line each."""
    device = Device()
    d = device.driver
    if module == "facts":
        print(json.dumps({"facts": device.facts()}), flush=True)
        return
    loaded = check(d.cuModuleLoadData((folder / f"{module}.cubin").read_bytes()))
    for case in json.loads((folder / "cases.json").read_text()):
        if case["module"] != module:
            continue
        try:
            function = check(d.cuModuleGetFunction(loaded, case["entry"].encode()))
            launch = Launch(device, function, case)
            result = probe(launch) if "iterations" in case["work"] else stream(launch)
            error = verify(launch)
            if error is not None:
                result["relative_error"] = error
            launch.free()
        except RuntimeError as problem:
            result = {"failed": str(problem)}
        print(json.dumps({"name": case["name"], **result}), flush=True)


def main() -> None:
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    if len(sys.argv) > 3:
        run_module(folder, sys.argv[3])
        return
    modules = list(dict.fromkeys(case["module"] for case in json.loads((folder / "cases.json").read_text())))
    results = {"results": []}
    for module in ["facts", *modules]:
        command = [sys.executable, __file__, str(folder), str(target), module]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MODULE_LIMIT_S)
            text, problem = done.stdout, done.stderr[-800:] if done.returncode else ""
        except subprocess.TimeoutExpired as late:
            text, problem = (late.stdout or b"").decode(), "time limit"
        for line in text.splitlines():
            entry = json.loads(line)
            results.update(entry) if "facts" in entry else results["results"].append(entry)
            if "facts" not in entry:
                print({k: v for k, v in entry.items() if k not in ("us_all", "totals")}, flush=True)
        if problem:
            print(module, "failed:", problem, flush=True)
            results.setdefault("problems", {})[module] = problem
        target.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
