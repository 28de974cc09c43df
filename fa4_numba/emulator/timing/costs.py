"""What a PTX instruction costs once ptxas has made machine code of it: the rules.

* Moves, packing and unpacking of 64-bit pairs, widening to 64 bits, negations, constants and parameters cost nothing:
  they become register names, operand modifiers and constant-bank operands.
* Two integer additions (or two-input logic operations, or minima or maxima of integers or of 16-bit pairs) of which the
  first feeds only the second become one three-input instruction (IADD3, LOP3, VIMNMX3, VHMNMX).
* 64-bit integer arithmetic is two instructions; a shift that feeds only an addition joins it (LEA).
* ``ex2`` without ``.ftz`` scales subnormal inputs: two more instructions. Division: a reciprocal and a correction.
* Descriptors and tensor maps travel through uniform registers: two moves each.
* Bank conflicts and uncoalesced accesses are not seen: accesses count the bytes they move.
"""

from dataclasses import dataclass, field, replace

from ..ptx.module import Imm, Memory, Not, Pair, Reg, Vector
from .arch import Rate, TimingArch

_PAIRED = {  # opcode → which others it can become one instruction with
    **dict.fromkeys(("add", "sub"), "add"),
    **dict.fromkeys(("and", "or", "xor", "not"), "logic"),
    **dict.fromkeys(("min", "max"), "minmax"),
}
_FLOATS = ("f32", "f32x2", "f16", "f16x2", "bf16", "bf16x2", "f64")
_MUFU = ("ex2", "rcp", "lg2", "rsqrt", "sqrt", "tanh", "sin", "cos", "popc", "clz", "bfind", "brev")
_RESULT_FIRST = (
    "ld",
    "ldu",
    "ldmatrix",
    "atom",
    "mov",
    "shfl",
    "vote",
    "match",
    "redux",
    "elect",
    "activemask",
    "mapa",
)
_RESULT_FIRST += (
    "mbarrier.try_wait",
    "mbarrier.test_wait",
    "tcgen05.ld",
    "mma",
    "isspacep",
    "clusterlaunchcontrol.query_cancel",
)
_ARRIVAL = "arrival"  # what a wait after an arrival of the same warp depends on
_FENCES = ("mbarrier.try_wait", "mbarrier.test_wait", "bar", "barrier", "wgmma.wait_group", "tcgen05.wait")
_FENCES += ("cp.async.wait_group", "cp.async.wait_all", "cp.async.bulk.wait_group")


@dataclass
class Cost:
    """Of one instruction. ``shared``: wavefronts; ``bytes``: of global memory; ``tmem``: columns; ``fence``: nothing
    moves across it; ``pairs``: with which others it may become one instruction."""

    slots: int = 1
    pipe: str | None = None
    busy: int = 0
    latency: int = 4
    shared: int = 0
    bytes: int = 0
    tmem: int = 0
    fence: bool = False
    pairs: str | None = None
    targets: tuple = ()
    sources: tuple = field(default=())

    def freed(self) -> "Cost":
        """Return the cost of what another instruction does along with it."""
        return replace(self, slots=0, pipe=None, busy=0, latency=0)


def cost_of(ins, arch: TimingArch) -> Cost:
    """Return what an instruction costs."""
    if ins.op == "//fa4":
        return Cost(slots=0, latency=0)
    if ins.parts[0] in ("bra", "ret", "exit"):
        cost = Cost(latency=0)
    elif (
        ins.found[0] == "alu"
        and ins.parts[0] not in _EFFECTS
        or ins.parts[0] == "mov"
        and ins.alu is not None
    ):
        cost = _lane_wise(ins, arch)
    else:
        cost = _effect(ins, arch)
    cost.targets, cost.sources = _registers(ins)
    if ins.op.startswith("mbarrier.arrive"):
        cost.targets += (_ARRIVAL,)
    elif ins.op.startswith("mbarrier.t"):
        cost.sources += (_ARRIVAL,)
    return cost


# -- lane-wise ----------------------------------------------------------------------------------
def _at(arch: TimingArch, kind: str, times: int = 1) -> Cost:
    rate: Rate = arch.rates[kind]
    return Cost(times * rate.slots, rate.pipe, times * rate.busy, rate.latency)


def _lane_wise(ins, arch: TimingArch) -> Cost:
    name, kind = ins.parts[0], ins.parts[-1]
    if name in ("mov", "cvta", "neg", "abs") or (name == "ld" and "param" in ins.parts):
        return _move(ins, arch)
    if name == "cvt":
        return _conversion(ins, arch)
    if name in ("setp", "selp", "slct", "set", "prmt", "lop3", "copysign", "testp"):
        return replace(
            _at(arch, "alu", 2 if kind.endswith("64") and name in ("setp", "selp") else 1), pairs=_pairs(ins)
        )
    if name in _MUFU or (name == "div" and kind in _FLOATS):
        return _special(ins, arch)
    if kind in _FLOATS:
        return _floating(ins, arch)
    return _integer(ins, arch)


def _move(ins, arch: TimingArch) -> Cost:
    packs_halves = isinstance(ins.args[1], Vector) and ins.op.endswith("b32")
    return _at(arch, "alu") if packs_halves else Cost(slots=0, latency=0)


def _conversion(ins, arch: TimingArch) -> Cost:
    to, source = [p for p in ins.parts if p[0] in "fbuse" and p[-1].isdigit() or p in ("e4m3x2", "e5m2x2")][
        :2
    ]
    if to[0] in "us" and source[0] in "us":
        return Cost(slots=0, latency=0)
    if to[0] in "us" or "64" in to + source:
        return _at(arch, "mufu")
    return _at(arch, "alu")


def _special(ins, arch: TimingArch) -> Cost:
    if ins.parts[0] == "div":
        return replace(_at(arch, "mufu"), slots=8, latency=40)
    lanes = 2 if ins.parts[-1] in ("f16x2", "bf16x2") else 1
    cost = _at(arch, "mufu", lanes)
    if ins.parts[0] == "ex2" and ins.parts[-1] == "f32" and "ftz" not in ins.parts:
        return replace(cost, slots=cost.slots + 2, latency=cost.latency + 8)
    return cost


def _floating(ins, arch: TimingArch) -> Cost:
    name, kind = ins.parts[0], ins.parts[-1]
    if name in ("max", "min"):
        return replace(_at(arch, "alu"), pairs=_pairs(ins))
    if kind == "f32x2":
        return _at(arch, "fma pair")
    if kind == "f64":
        return _at(arch, "double")
    return _at(arch, "fma" if kind == "f32" else "half fma")


def _integer(ins, arch: TimingArch) -> Cost:
    name, wide = ins.parts[0], ins.parts[-1].endswith("64")
    if name in ("mul", "mad", "mul24", "mad24"):
        return _at(arch, "imad", 3 if wide else 1)
    if name in ("div", "rem"):
        return replace(_at(arch, "mufu"), slots=3 if isinstance(ins.args[-1], Imm) else 20, latency=30)
    if name in ("add", "sub"):
        return replace(_at(arch, "either", 2 if wide else 1), pairs=None if wide else "add")
    return replace(_at(arch, "alu", 2 if wide else 1), pairs=_pairs(ins))


def _pairs(ins) -> str | None:
    kind = ins.parts[-1]
    return (
        None if kind.endswith("64") or kind in ("pred", "f32", "f16", "bf16") else _PAIRED.get(ins.parts[0])
    )


# -- what the machine does ------------------------------------------------------------------------
def _effect(ins, arch: TimingArch) -> Cost:
    name = ins.parts[0]
    handler = _EFFECTS.get(".".join(ins.parts[:2]).split("::")[0]) or _EFFECTS.get(name)
    cost = handler(ins, arch) if handler else Cost()
    cost.fence = ins.op.startswith(_FENCES) and "arrive" not in ins.parts and "warp" not in ins.parts
    return cost


def _bytes_per_lane(ins) -> int:
    kind = next((p for p in reversed(ins.parts) if p[0] in "bufs" and p[1:].isdigit()), "b32")
    count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
    return int(kind[1:]) // 8 * count


def _access(ins, arch: TimingArch) -> Cost:
    size = _bytes_per_lane(ins)
    wavefronts = max(1, size * 32 // 128)
    if any(p.startswith(("param", "const")) for p in ins.parts):
        return Cost(slots=0, latency=0)
    if any(p.startswith("shared") for p in ins.parts):
        return Cost(shared=wavefronts, latency=arch.shared_latency)
    if "local" in ins.parts:
        return Cost(shared=wavefronts, latency=arch.l1_latency)
    latency = arch.l1_latency if "ca" in ins.parts or "nc" in ins.parts else arch.l2_latency
    return Cost(shared=wavefronts, latency=latency, bytes=32 * size)


def _matrix(ins, arch: TimingArch) -> Cost:
    count = next((int(p[1:]) for p in ins.parts if p in ("x2", "x4")), 1)
    return Cost(shared=count, latency=arch.matrix_latency)


def _tmem(ins, arch: TimingArch) -> Cost:
    registers = (
        len(next(a.items for a in ins.args if isinstance(a, Vector)))
        if any(isinstance(a, Vector) for a in ins.args)
        else 1
    )
    return Cost(tmem=max(1, round(registers / arch.tmem_rate)), latency=arch.tmem_latency)


_EFFECTS = {
    "ld": _access,
    "ldu": _access,
    "st": _access,
    "atom": lambda ins, arch: replace(_access(ins, arch), shared=2),
    "red": lambda ins, arch: replace(_access(ins, arch), shared=2, latency=0),
    "ldmatrix": _matrix,
    "stmatrix": _matrix,
    "tcgen05.ld": _tmem,
    "tcgen05.st": _tmem,
    "tcgen05.mma": lambda ins, arch: Cost(slots=5),
    "tcgen05.cp": lambda ins, arch: Cost(slots=3),
    "wgmma.mma_async": lambda ins, arch: Cost(slots=3),
    "cp.async": lambda ins, arch: Cost(slots=6 if "bulk" in ins.parts else 1),
    "mbarrier.arrive": lambda ins, arch: Cost(shared=1, latency=arch.arrive),
    "mbarrier.init": lambda ins, arch: Cost(shared=1),
    "mbarrier.try_wait": lambda ins, arch: Cost(shared=1, latency=arch.try_wait),
    "mbarrier.test_wait": lambda ins, arch: Cost(shared=1, latency=arch.try_wait),
    "bar": lambda ins, arch: Cost(slots=1, shared=0 if "warp" in ins.parts else 2),
    "barrier": lambda ins, arch: Cost(slots=1, shared=0 if "cluster" in ins.parts else 2),
    "shfl": lambda ins, arch: replace(_at(arch, "shuffle"), shared=1),
    "vote": lambda ins, arch: _at(arch, "vote"),
    "elect": lambda ins, arch: _at(arch, "alu"),
    "match": lambda ins, arch: _at(arch, "redux"),
    "redux": lambda ins, arch: _at(arch, "redux"),
    "mov": lambda ins, arch: Cost(slots=1, latency=4),  # a clock
}


def _registers(ins) -> tuple[tuple, tuple]:
    """Return (registers written, registers read)."""
    if ins.alu is not None:
        targets = [r for operand, _ in ins.alu.dst for r in _flat(operand)]
        sources = [r for operand, _ in ins.alu.src for r in _flat(operand)]
    else:
        first = ins.op.startswith(_RESULT_FIRST) and ins.parts[0] not in ("ldgsts",)
        targets = list(_flat(ins.args[0])) if first and ins.args else []
        sources = [r for operand in ins.args[first:] for r in _flat(operand)]
    return tuple(targets), (*sources, *([] if ins.guard is None else [ins.guard]))


def _flat(operand):
    """Yield the registers of an operand."""
    if isinstance(operand, Reg):
        yield operand
    elif isinstance(operand, Not):
        yield operand.register
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _flat(item)
    elif isinstance(operand, Pair):
        yield from _flat(operand.first)
        yield from _flat(operand.second)
    elif isinstance(operand, Memory):
        yield from _flat(operand.base)
        yield from _flat(operand.coordinates)
