"""Compiles a program once, keeps the machine code on disk, and runs it for a warp."""

import ctypes
import functools
import hashlib
import platform
import time
from pathlib import Path

import llvmlite.binding as llvm

from ...toolchain import cache
from ..machine.program import Piece
from ..machine.state import StateLayout
from .accesses import AccessCompiler
from .arithmetic import PieceCompiler, read_elsewhere, wants_flush_mode
from .glue import Glue
from .tracer import NotTraceable

_OPTIMISATION = 1
_ATTRIBUTES = """
attributes #0 = { nounwind noinline }
attributes #1 = { nounwind noinline "denormal-fp-math"="preserve-sign,preserve-sign" }
"""


@functools.cache
def _target_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=_OPTIMISATION, jit=True
    )


@functools.cache
def _lanes() -> int:
    """Lanes per vector: what one register of the CPU holds of f32."""
    return 16 if llvm.get_host_cpu_features().get("avx512f") else 8


@functools.cache
def _sources() -> str:
    """A hash of the code that makes machine code, so that a change of it invalidates the cache."""
    package = Path(__file__).parent.parent
    files = sorted([*package.glob("isa/*.py"), *package.glob("compiled/*.py"), *package.glob("machine/*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class CompiledProgram:
    """Machine code of a program. ``seconds``: what making it took (0 if it came from the cache)."""

    def __init__(self, pieces: list[Piece], layout: StateLayout, address_of, text: str):
        start = time.perf_counter()
        cpu = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
        key = cache.key_of("emulator", _sources(), llvm.llvm_version_info.__repr__(), cpu, text)
        entry = cache.load(key)
        self.cached = entry is not None
        if entry is None:
            entry = {"object": _object_code(_module_text(pieces, layout, address_of))}
            cache.store(key, entry)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine_for_engine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(entry["object"]))
        self._engine.finalize_object()
        address = self._engine.get_function_address("run")
        self.run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)
        self.seconds = time.perf_counter() - start


def _target_machine_for_engine():
    """An engine owns its target machine: each gets one of its own."""
    _target_machine()
    return llvm.Target.from_default_triple().create_target_machine(opt=_OPTIMISATION, jit=True)


def _module_text(pieces: list[Piece], layout: StateLayout, address_of) -> str:
    """Return the LLVM module of a program."""
    needed = read_elsewhere(pieces)
    flush_mode = platform.machine() in ("x86_64", "AMD64")
    texts, functions, flushing, declarations, shared = [], {}, set(), set(), {}
    for pc, piece in enumerate(pieces):
        if piece.kind != "alu":
            continue
        flush = wants_flush_mode(piece, flush_mode)
        compiler = PieceCompiler(f"alu{pc}", layout, _lanes(), flush)
        try:
            texts.append(compiler.compile(piece.instructions, needed))
        except NotTraceable:
            continue
        functions[pc] = compiler.name
        declarations |= compiler.trace.declarations
        shared |= compiler.trace.functions
        if flush:
            flushing.add(pc)
    accesses = AccessCompiler(layout, address_of)
    fast = {pc: name for pc, piece in enumerate(pieces) if (name := accesses.function_for(piece))}
    glue = Glue(layout, pieces, functions, fast, flushing)
    return "\n".join(
        [*sorted(declarations), *shared.values(), *texts, accesses.text(), glue.text(), _ATTRIBUTES]
    )


def _object_code(text: str) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return _target_machine().emit_object(module)


class CompiledEngine:
    """Runs a compiled program for one warp."""

    def __init__(self, warp, program: CompiledProgram):
        self._run, self._base = program.run, warp.buffer.ctypes.data

    def advance(self) -> int:
        """Run from the warp's pc on; return why it stopped (the pc is that of the piece to deal with)."""
        return self._run(self._base)
