"""atom and red: read, combine, write, one lane after the other where lanes meet at an address."""

import numpy as np

from ..ptx.module import Reg
from .memory import addresses, resolve, space_of
from .reductions import element_dtype, reduction
from .registry import effect, vector_items

_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas")


@effect("atom", "red")
def atomic(warp, ins):
    """d = memory[a]; memory[a] = op(memory[a], b). ``red`` gives no d; ``.v2 .v4 .v8`` are elements side by side.

    ``cas`` writes c where memory holds b. In global memory f32 sums flush subnormals.
    """
    returns = ins.parts[0] == "atom"
    memory, *operands = ins.args[1:] if returns else ins.args
    operation, kind = next(p for p in ins.parts if p in _OPERATIONS), ins.parts[-1]
    dtype, space = element_dtype(kind), space_of(ins)
    targets = (
        [warp.row(d) if isinstance(d, Reg) else None for d in vector_items(ins.args[0])] if returns else []
    )
    sources = [warp.source(b, dtype) for b in vector_items(operands[0])]
    replacement = warp.source(operands[1], dtype) if operation == "cas" else None
    combine = None if operation == "cas" else reduction(operation, kind, in_l2=not space.startswith("shared"))
    where, size = addresses(warp, memory), dtype.itemsize * len(sources)

    def run():
        lanes = where()[warp.mask]
        data, offsets = resolve(warp, space, lanes, size, warp.where(ins), True)
        index = offsets[:, None] + np.arange(size)
        new = np.stack([s[warp.mask] for s in sources], 1)
        olds = np.empty_like(new)
        for turn in turns(offsets):
            old = np.ascontiguousarray(data[index[turn]]).view(dtype)
            olds[turn] = old
            if combine is None:
                result = np.where(old == new[turn], replacement[warp.mask][turn][:, None], old)
            else:
                result = combine(old.reshape(-1), new[turn].reshape(-1)).reshape(old.shape)
            data[index[turn]] = np.ascontiguousarray(result.astype(dtype, copy=False)).view(np.uint8)
        for i, row in enumerate(targets):
            if row is not None:
                row[warp.mask] = np.ascontiguousarray(olds[:, i]).view(f"u{dtype.itemsize}")

    return run


def turns(places: np.ndarray):
    """Yield sets of lanes, as indices, such that no two lanes of a set have the same place: first come, first served."""
    waiting = np.arange(len(places))
    while len(waiting):
        _, first = np.unique(places[waiting], return_index=True)
        yield waiting[np.sort(first)]
        waiting = np.delete(waiting, first)
