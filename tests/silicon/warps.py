"""Exchange between the lanes of a warp: shuffles, votes, reductions, matching, and who is active."""

from itertools import product

import numpy as np

from .case import lanes
from .values import operand, random_bits

ALL = "0xffffffff"
COUNT = 256


def shuffles():
    """shfl.sync in every mode, with segments and clamps that differ from lane to lane."""
    values = operand("b32", 1, COUNT)
    for mode, segment in product(("idx", "up", "down", "bfly"), (32, 16, 8, 4, 2)):
        clamp = (32 - segment) << 8 | (0 if mode == "up" else 31)
        distance = (random_bits(COUNT, segment) & np.uint64(63)).astype(np.uint32)
        if mode == "bfly":  # the ISA wants lanes that read each other to agree on the mask
            distance = np.repeat((distance & 31)[::32], 32)
        text = f"shfl.sync.{mode}.b32 %x|%y, %a, %b, {clamp}, {ALL};"
        yield lanes(
            f"shfl.{mode} segment {segment}", text, ["b32", "pred"], [("b32", values), ("u32", distance)]
        )
    every = np.repeat((random_bits(COUNT // 32, 9) & np.uint64(0x1F1F)).astype(np.uint32), 32)
    distance = (random_bits(COUNT, 10) & np.uint64(31)).astype(np.uint32)
    text = f"shfl.sync.idx.b32 %x|%y, %a, %b, %c, {ALL};"
    yield lanes(
        "shfl.idx any segment and clamp",
        text,
        ["b32", "pred"],
        [("b32", values), ("u32", distance), ("u32", every)],
    )
    part = """.reg .pred %h; .reg .b32 %l; mov.u32 %l, %laneid; mov.u32 %x, 7; setp.lt.u32 %h, %l, 16;
@%h shfl.sync.bfly.b32 %x, %a, 3, 31, 0x0000ffff;"""
    yield lanes("shfl.bfly by half of the warp", part, ["b32"], [("b32", values)])


def votes():
    """vote.sync, activemask, match.sync, elect.sync."""
    some = operand("pred", 3, COUNT)
    some[:32], some[32:64] = 1, 0
    for mode, invert in product(("any", "all", "uni"), ("", "!")):
        text = f"vote.sync.{mode}.pred %x, {invert}%a, {ALL};"
        yield lanes(f"vote.{mode}{invert}", text, ["pred"], [("pred", some)])
    for invert in ("", "!"):
        text = f"vote.sync.ballot.b32 %x, {invert}%a, {ALL};"
        yield lanes(f"vote.ballot{invert}", text, ["b32"], [("pred", some)])
    few = (random_bits(COUNT, 4) % np.uint64(5)).astype(np.uint32)
    few[:32] = 7
    for kind in ("b32", "b64"):
        values = few.astype(np.uint64) << np.uint64(33) if kind == "b64" else few
        yield lanes(f"match.any.{kind}", f"match.any.sync.{kind} %x, %a, {ALL};", ["b32"], [(kind, values)])
        text = f"match.all.sync.{kind} %x|%y, %a, {ALL};"
        yield lanes(f"match.all.{kind}", text, ["b32", "pred"], [(kind, values)])
    half = """.reg .pred %h; .reg .b32 %l; mov.u32 %l, %laneid; mov.u32 %x, 0; mov.u32 %y, 9; setp.ge.u32 %h, %l, 20;
@!%h bra OTHER; activemask.b32 %x; vote.sync.ballot.b32 %y, %a, 0xfff00000; OTHER: bar.warp.sync 0xffffffff;"""
    yield lanes("activemask and ballot in a branch", half, ["b32"] * 2, [("pred", some)])
    text = f".reg .pred %e; elect.sync %x|%e, {ALL}; selp.u32 %y, 1, 0, %e;"
    yield lanes("elect.sync", text, ["b32"] * 2, [("b32", few)])
    masks = " ".join(f"mov.u32 %{r}, %lanemask_{m};" for r, m in zip("xyzw", ("lt", "le", "gt", "ge")))
    yield lanes("lane masks", masks, ["b32"] * 4, [("b32", few)])


def reductions():
    """redux.sync."""
    for op, kind in [
        *product(("add", "min", "max"), ("u32", "s32")),
        *product(("and", "or", "xor"), ("b32",)),
    ]:
        text = f"redux.sync.{op}.{kind} %x, %a, {ALL};"
        yield lanes(f"redux.{op}.{kind}", text, ["b32"], [("b32", operand("b32", 5, COUNT))])
    half = """.reg .pred %h; .reg .b32 %l; mov.u32 %l, %laneid; mov.u32 %x, 0; and.b32 %l, %l, 1; setp.eq.u32 %h, %l, 1;
@%h redux.sync.add.u32 %x, %a, 0xaaaaaaaa;"""
    yield lanes("redux.add by odd lanes", half, ["b32"], [("b32", operand("b32", 6, COUNT))])


def cases():
    """Return every case of this family."""
    return [*shuffles(), *votes(), *reductions()]
