"""One description of a test: a PTX body and its data. The emulator and a GPU run the same kernel."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np

from fa4_numba.emulator import GlobalMemory, Machine
from fa4_numba.layout import TensorMapSpec

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
UNWRITTEN = 0xA5  # what output bytes hold before the kernel runs

PROLOGUE = """.reg .b64 %in, %out; .reg .b32 %thread, %gid, %cta, %threads, %smem;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
mov.u32 %thread, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %threads, %ntid.x;
mad.lo.s32 %gid, %cta, %threads, %thread; mov.u32 %smem, smem;
"""


@dataclass(frozen=True)
class Exact:
    """Every output byte agrees."""

    def mismatches(self, emulated: np.ndarray, silicon: np.ndarray) -> np.ndarray:
        """Return the indices of outputs that disagree."""
        return np.flatnonzero(emulated != silicon)


@dataclass(frozen=True)
class Close:
    """Approximations: results differ by at most ``relative`` of the value or by ``absolute``; NaN and infinities agree.

    The bounds are the documented ones of the instruction, plus half an ulp for the rounding of either side.
    """

    dtype: str
    relative: float = 0.0
    absolute: float = 0.0

    def mismatches(self, emulated: np.ndarray, silicon: np.ndarray) -> np.ndarray:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, self.dtype, None) or self.dtype)
        got, want = (x.view(dtype).astype(np.float64) for x in (emulated, silicon))
        with np.errstate(invalid="ignore"):
            near = np.abs(got - want) <= np.abs(want) * self.relative + self.absolute
        return np.flatnonzero(~(near | (got == want) | (np.isnan(got) & np.isnan(want))))


@dataclass(frozen=True)
class Case:
    """A kernel and its input.

    Parameters
    ----------
    name : str
        Unique; the opcode and what is special about the operands.
    body : str
        PTX statements. ``%in`` and ``%out`` are the global addresses of the two buffers, ``%thread``, ``%cta``,
        ``%threads`` and ``%gid`` the thread's and CTA's numbers along x, ``%smem`` the shared address of ``shared_bytes`` bytes.
    data : uint8 array
        Contents of the input buffer.
    out_bytes : int
        Size of the output buffer, which starts as ``UNWRITTEN`` bytes.
    maps : tuple of (buffer, TensorMapSpec)
        Tensor maps, named ``map0``, ``map1``… in the body; addresses are relative to the buffer "in" or "out".
    compare : Exact or Close
    """

    name: str
    body: str
    data: np.ndarray
    out_bytes: int
    threads: int = 32
    grid: int = 1
    cluster: int = 1
    shared_bytes: int = 0
    maps: tuple = ()
    compare: object = field(default_factory=Exact)

    @property
    def entry(self) -> str:
        """Kernel name: the digest, since opcodes are no identifiers."""
        return f"k{self.digest}"

    @property
    def digest(self) -> str:
        """Names the description: a recording of another description is no recording of this one."""
        text = repr(
            (self.body, self.out_bytes, self.threads, self.grid, self.cluster, self.shared_bytes, self.maps)
        )
        return hashlib.blake2b(text.encode() + self.data.tobytes(), digest_size=8).hexdigest()

    def entry_text(self) -> str:
        """Return the PTX of the kernel, without the module's header."""
        maps = "".join(f", .param .align 64 .b8 map{i}[128]" for i in range(len(self.maps)))
        cluster = f".explicitcluster .reqnctapercluster {self.cluster}, 1, 1" if self.cluster > 1 else ""
        return (
            f".visible .entry {self.entry}(.param .u64 in, .param .u64 out{maps}) .maxntid {self.threads} {cluster}\n"
            f"{{\n{PROLOGUE}{self.body}\nret;\n}}\n"
        )

    def ptx(self) -> str:
        """Return a module with this kernel alone."""
        return HEADER + self.entry_text()

    def placed_maps(self, addresses: dict[str, int]) -> list[TensorMapSpec]:
        """Return the tensor maps over buffers at these addresses."""
        return [replace(spec, address=addresses[buffer] + spec.address) for buffer, spec in self.maps]


def emulate(case: Case, schedule: str = "eager", engine: str = "interpreter") -> np.ndarray:
    """Return the output buffer after a run in the emulator."""
    memory = GlobalMemory()
    source, out = case.data.copy(), np.full(case.out_bytes, UNWRITTEN, np.uint8)
    addresses = {"in": memory.bind(source, "in"), "out": memory.bind(out, "out", writable=True)}
    machine = Machine(
        case.ptx(),
        grid=(case.grid, 1, 1),
        block=(case.threads, 1, 1),
        cluster=(case.cluster, 1, 1),
        args=(addresses["in"], addresses["out"], *case.placed_maps(addresses)),
        memory=memory,
        dynamic_smem_bytes=case.shared_bytes,
        schedule=schedule,
        engine=engine,
    )
    machine.run()
    return out


_LOAD = {8: "u8", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}
BITS = {
    "pred": 32, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16,
    "e5m2x2": 16, "b32": 32, "u32": 32, "s32": 32, "f32": 32, "tf32": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32,
    "s16x2": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64,
}  # fmt: skip


def lanes(
    name: str, text: str, outputs: list[str], operands: list[tuple[str, np.ndarray]], **options
) -> Case:
    """Return a case that runs ``text`` in every lane: reads ``%a %b %c …``, writes ``%x %y …``.

    ``operands`` are (type, one value per lane); a ``pred`` operand is a nonzero word, a ``pred`` output 1 or 0. Values
    narrower than 16 bits live in 16-bit registers.
    """
    count = len(operands[0][1])
    threads = min(count, 128)
    declare, load, store, data, at = [], [], [], [], 0
    for letter, (kind, values) in zip("abcdefgh", operands):
        bits = BITS[kind]
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        assert raw.size == count * bits // 8, (name, kind)
        register = f"{letter}w" if kind == "pred" else letter
        declare.append(f".reg .b{max(bits, 16)} %{register};")
        load.append(
            f"mad.wide.u32 %p, %gid, {bits // 8}, %in; ld.global.{_LOAD[bits]} %{register}, [%p+{at}];"
        )
        if kind == "pred":
            declare.append(f".reg .pred %{letter};")
            load.append(f"setp.ne.u32 %{letter}, %{letter}w, 0;")
        data.append(raw)
        at += raw.size
    at = 0
    for letter, kind in zip("xyzw", outputs):
        bits = BITS[kind]
        register = f"{letter}w" if kind == "pred" else letter
        declare.append(f".reg .b{max(bits, 16)} %{register};")
        if kind == "pred":
            declare.append(f".reg .pred %{letter};")
            store.append(f"selp.u32 %{letter}w, 1, 0, %{letter};")
        store.append(
            f"mad.wide.u32 %p, %gid, {bits // 8}, %out; st.global.{_LOAD[bits]} [%p+{at}], %{register};"
        )
        at += count * bits // 8
    body = "\n".join([".reg .b64 %p;", *declare, *load, text, *store])
    return Case(name, body, np.concatenate(data), at, threads=threads, grid=count // threads, **options)
