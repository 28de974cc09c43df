"""tcgen05.mma and .commit: issuing matrix multiplies, and learning when they are done."""

import numpy as np

from ...errors import ConfigError, Hazard
from ...layout import InstrDesc
from ..ptx.module import Imm, Memory, Vector
from .registry import effect
from .synchronisation import first_address
from .tcgen05_multiply import Batch, Multiply, check_shape
from .tcgen05_scale import BLOCK_SCALED_KINDS, Scales, block_scaled
from .tensor_core import cta_group, flush, group_of, signal, tmem_pointer

KINDS = ("f16", "tf32", "f8f6f4", "i8")


def _kind(ins) -> str:
    return next(p.split("::")[1] for p in ins.parts if p.startswith("kind::"))


@effect("tcgen05.mma")
def mma(warp, ins):
    """D = A·B (+ D · 2^−scale-input-d): A in shared or tensor memory, B in shared memory, D in tensor memory.

    ``.collector`` says what the hardware may keep: it changes no value. ``.ws`` keeps the weights: other data paths.
    With ``.cta_group::2`` one thread's instruction works on both CTAs of the pair, each with its half of A and of B.
    """
    for modifier in ("sp", "ashift"):
        if modifier in ins.parts:
            raise ValueError(f".{modifier} is not implemented")
    kind, group, stationary = _kind(ins), cta_group(ins), "ws" in ins.parts
    scaled = kind in BLOCK_SCALED_KINDS
    if kind not in KINDS and not scaled:
        raise ValueError(f"kind {kind}")
    d_address, b_value = tmem_pointer(warp, ins.args[0]), warp.scalar(ins.args[2], np.uint64)
    from_tmem = isinstance(ins.args[1], Memory)
    a_value = tmem_pointer(warp, ins.args[1]) if from_tmem else warp.scalar(ins.args[1], np.uint64)
    instruction = warp.scalar(ins.args[3])
    rest = list(ins.args[4:])
    scale_addresses = [tmem_pointer(warp, rest.pop(0)) for _ in range(2)] if scaled else []
    lane_mask = _lane_mask(warp, rest.pop(0), group) if isinstance(rest[0], Vector) else lambda: None
    accumulate = warp.source(rest.pop(0), np.bool_)
    scale_d = _scale_d(rest, stationary, kind)
    zero_mask = warp.scalar(rest[0], np.uint64) if rest and stationary else lambda: 0
    vector = next((p for p in ins.parts if p.startswith(("scale_vec::", "block16", "block32"))), None)
    cta, known = (
        warp.cta,
        warp.cta.cluster.multiplies,
    )  # instructions of one kind share a multiply, to be done as one
    form = kind, group, from_tmem, stationary, vector

    def run():
        what, bits = warp.where(ins), instruction()
        multiply = known.get((form, bits))
        if multiply is None:
            multiply = known[form, bits] = _multiply(kind, bits, group, from_tmem, stationary, vector, what)
        if zero_mask():
            raise Hazard(f"{what}: a zero-column mask is not implemented")
        scales = [address() for address in scale_addresses]
        operands = (a_value(), b_value(), what, *scales)
        collect(cta, multiply, d_address(), operands, bool(accumulate[warp.any_lane]), scale_d, lane_mask())

    return run


def collect(
    cta, multiply: Multiply, d: int, operands: tuple, add: bool, scale_d: int = 0, disabled=None
) -> None:
    """Issue one multiply: it joins those before it that accumulate into the same D, or starts anew."""
    batch = cta.multiplies
    if batch is None or not batch.takes(multiply, d, add, scale_d, disabled):
        flush(cta)
        ctas = group_of(cta, multiply.group, operands[2])
        batch = cta.multiplies = Batch(multiply, ctas, d, add, scale_d if add else 0, disabled)
    batch.operands.append(operands)
    if cta.machine.checker is not None:  # every multiply by itself: each has seen what its own issuer had
        flush(cta)


def _multiply(kind, bits, group, from_tmem, stationary, vector, what) -> Multiply:
    """Return the multiply that the opcode and the instruction descriptor describe."""
    scales = None
    try:
        if kind in BLOCK_SCALED_KINDS:
            desc, scales = block_scaled(kind, bits, vector)
        else:
            desc = InstrDesc.unpack(kind, bits)
        multiply = Multiply(desc, group, from_tmem=from_tmem, weight_stationary=stationary)
        if scales is not None:
            multiply.scales = Scales(scales, multiply)
    except ConfigError as error:
        raise Hazard(f"{what}: {error}") from error
    check_shape(multiply, what)
    return multiply


def _lane_mask(warp, vector: Vector, group: int):
    """Return a function that gives which lanes of D stay as they are: (CTA, lane), or None for no lane."""
    if len(vector.items) != 4 * group:
        raise ValueError(f"the lane mask has {len(vector.items)} words, not {4 * group}")
    words = [warp.scalar(item) for item in vector.items]

    def read():
        mask = np.array([word() for word in words], np.uint32)
        if not mask.any():
            return None
        return np.unpackbits(mask.view(np.uint8), bitorder="little").reshape(group, 128).astype(bool)

    return read


def _scale_d(rest: list, stationary: bool, kind: str) -> int:
    """Return scale-input-d: an immediate after the enable-input-d predicate."""
    if stationary or not rest:
        return 0
    if not isinstance(rest[0], Imm) or not 0 <= rest[0].value <= 15 or kind not in ("f16", "tf32"):
        raise ValueError("scale-input-d is an immediate from 0 to 15, of kinds f16 and tf32")
    return int(rest[0].value)


@effect("tcgen05.commit")
def commit(warp, ins):
    """When all tensor-core work that this CTA issued before is complete, arrive once on the mbarrier.

    ``.multicast::cluster``: on the mbarrier at the same offset of every CTA in the mask.
    """
    cta_group(ins)
    address, cta = first_address(warp, ins.args[0]), warp.cta
    multicast = any(p.startswith("multicast") for p in ins.parts)
    mask = warp.scalar(ins.args[1], np.uint16) if multicast else lambda: None

    def run():
        what, at, chosen = warp.where(ins), address(), mask()
        barriers = [cta.mbarrier(at, what)] if chosen is None else cta.multicast_barriers(at, chosen, what)
        who = warp.where(ins, "tcgen05.commit of ")

        def land():
            for barrier in barriers:
                barrier.arrive(1, who)

        signal(cta, land, f"commit to {barriers[0].name}")

    return run
