"""Counting, finding, extracting and inserting bits."""

import numpy as np

from .integer import _alu
from .registry import Alu, alu
from .types import dtype_of, unsigned


@alu("bfe")
def bit_field_extract(ins) -> Alu:
    """d = ``c`` bits of a from bit b on; ``.s`` fills with the field's sign, which lies no higher than the top bit."""
    dtype = dtype_of(ins)
    bits = 8 * dtype.itemsize
    last, zero = np.uint32(bits - 1), dtype.type(0)

    def function(a, start, count):
        if bits == 32:
            start, count = start & np.uint32(255), count & np.uint32(255)
        field = a >> np.minimum(start, last).astype(dtype)
        if dtype.kind == "u":
            field = np.where(start > last, zero, field)
        unused = (np.uint32(bits) - np.minimum(count, np.uint32(bits))) & last
        up = unused.astype(dtype)
        return np.where(count == np.uint32(0), zero, field << up >> up)

    sources = [(ins.args[1], dtype), (ins.args[2], np.uint32), (ins.args[3], np.uint32)]
    return Alu([(ins.args[0], dtype)], sources, function)


@alu("popc", "clz", "brev")
def bit_count(ins) -> Alu:
    """Number of ones, of leading zeros; bits reversed."""
    dtype, name = unsigned(dtype_of(ins)), ins.parts[0]
    count = lambda a: np.bitwise_count(a).astype(np.uint32)
    if name == "popc":
        return _alu(ins, count, dtype, np.dtype(np.uint32))
    if name == "clz":
        return _alu(
            ins, lambda a: np.uint32(8 * dtype.itemsize) - count(_smeared(a)), dtype, np.dtype(np.uint32)
        )
    return _alu(ins, _reversed_bits, dtype, dtype)


def _smeared(a):
    """All bits below the highest one set, too."""
    step = 1
    while step < 8 * a.dtype.itemsize:
        a = a | a >> a.dtype.type(step)
        step *= 2
    return a


def _reversed_bits(a):
    """Swap neighbouring groups of 1, 2, 4, … bits."""
    bits, step = 8 * a.dtype.itemsize, 1
    while step < bits:
        low = a.dtype.type(sum(((1 << step) - 1) << i for i in range(0, bits, 2 * step)))
        n = a.dtype.type(step)
        a = (a & low) << n | a >> n & low
        step *= 2
    return a


@alu("bfi")
def bit_field_insert(ins) -> Alu:
    """f = b with its ``d`` bits from bit c on replaced by the lowest of a."""
    word = unsigned(dtype_of(ins))

    def function(a, b, start, count):
        if word.itemsize == 4:
            start, count = start & np.uint32(255), count & np.uint32(255)
        mask = _shifted_left(_low_ones(count, word), start)
        return b & ~mask | _shifted_left(a, start) & mask

    sources = [(a, word) for a in ins.args[1:3]] + [(a, np.uint32) for a in ins.args[3:5]]
    return Alu([(ins.args[0], word)], sources, function)


def _shifted_left(value, amount):
    """Shift left; by the width or more gives 0."""
    word = value.dtype
    last = np.uint32(8 * word.itemsize - 1)
    return np.where(amount > last, word.type(0), value << np.minimum(amount, last).astype(word))


def _low_ones(count, word):
    """Return ``count`` ones; all from the width on."""
    one, last = word.type(1), np.uint32(8 * word.itemsize - 1)
    return np.where(count > last, ~word.type(0), (one << np.minimum(count, last).astype(word)) - one)


@alu("bmsk")
def bit_mask(ins) -> Alu:
    """d = b ones from bit a on; both ``.clamp`` at 32 or ``.wrap`` at 31."""
    wrap, word = ins.has("wrap"), np.dtype(np.uint32)

    def function(a, b):
        if wrap:
            a, b = a & np.uint32(31), b & np.uint32(31)
        limit = np.uint32(32)
        return _shifted_left(_low_ones(np.minimum(b, limit), word), np.minimum(a, limit))

    return _alu(ins, function, word)


@alu("szext")
def extend(ins) -> Alu:
    """d = the low b bits of a, extended by their sign (``.s32``) or with zeros; ``.wrap`` takes b modulo 32."""
    dtype, wrap = dtype_of(ins), ins.has("wrap")

    def function(a, b):
        n = b & np.uint32(31) if wrap else np.minimum(b, np.uint32(32))
        up = np.uint32(32) - n
        safe = np.minimum(up, np.uint32(31)).astype(dtype)
        return np.where(n == np.uint32(0), dtype.type(0), a << safe >> safe)

    sources = [(ins.args[1], dtype), (ins.args[2], np.uint32)]
    return Alu([(ins.args[0], dtype)], sources, function)


@alu("bfind")
def find_leading_bit(ins) -> Alu:
    """d = index of the highest one (for negative ``.s``: zero), or with ``.shiftamt`` how far it is from the top.

    All ones where there is none.
    """
    dtype, word = dtype_of(ins), unsigned(dtype_of(ins))
    last = np.uint32(8 * dtype.itemsize - 1)
    amount = ins.has("shiftamt")

    def function(a):
        bits = np.where(a < dtype.type(0), ~a, a).view(word) if dtype.kind == "i" else a
        index = np.bitwise_count(_smeared(bits)).astype(np.uint32) - np.uint32(1)
        return np.where(bits == word.type(0), ~np.uint32(0), last - index if amount else index)

    return Alu([(ins.args[0], np.uint32)], [(ins.args[1], dtype)], function)


@alu("fns")
def find_nth_set(ins) -> Alu:
    """d = position of the |c|-th one of a, counted from bit b upward (c > 0) or downward (c < 0).

    c = 0: bit b itself, if it is one. All ones where there is none.
    """
    word, none = np.uint32, np.uint32(0xFFFFFFFF)

    def function(a, base, offset):
        up, wanted = offset >= np.int32(0), np.maximum(np.absolute(offset), np.int32(1)).view(word)
        below = _low_ones(base, np.dtype(word))
        candidates = np.where(up, a & ~below, a & (below << word(1) | word(1)))
        bits = np.where(up, candidates, _reversed_bits(candidates))
        for i in range(1, 32):  # drop the lowest one until the wanted one is the lowest
            bits = np.where(wanted > word(i), bits & bits - word(1), bits)
        lowest = bits & ~bits + word(1)
        index = np.bitwise_count(lowest - word(1)).astype(word)
        index = np.where(up, index, word(31) - index)
        found = (bits != word(0)) & (wanted <= word(32)) & ((offset != np.int32(0)) | (index == base))
        return np.where(found, index, none)

    sources = [(ins.args[1], word), (ins.args[2], word), (ins.args[3], np.int32)]
    return Alu([(ins.args[0], word)], sources, function)
