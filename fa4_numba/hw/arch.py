"""Capacities of one streaming multiprocessor (SM), per architecture; every number has its source beside it.

Abbreviations: *Guide* = CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability";
*ISA* = PTX ISA, with the section's name.
"""

from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True)
class ArchSpec:
    """What one SM of an architecture holds. Sizes in bytes, 32-bit registers, or columns of 32-bit cells.

    Attributes
    ----------
    name : str
        The architecture as ptxas spells it.
    smem_bytes_per_sm : int
        Shared memory of an SM. Source: Guide, 228 KB.
    smem_bytes_per_block : int
        Opt-in maximum of one block, static and dynamic together: an SM's less the 1 KB that the system keeps for each
        block. Source: Guide, 227 KB.
    registers_per_sm, max_registers_per_thread : int
        Source: Guide, 64 K and 255.
    max_threads_per_block : int
        Source: Guide.
    tmem_lanes, tmem_cols : int
        Tensor memory, rows and columns of 32-bit cells; 0 where there is none. Source: ISA, "Tensor Memory".
    mma_m : tuple of int
        Rows of one matrix instruction of one CTA. Source: ISA, "Matrix shape" of wgmma (64) and of tcgen05.mma (64 and
        128; 32 only with ``.ws``).
    mma_max_n : int
        Columns of one matrix instruction. Source: ISA, as ``mma_m``.
    named_barriers : int
        Hardware barriers of a CTA, 0 to 15. Source: ISA, "barrier".
    max_cluster_portable : int
        CTAs of a cluster that every GPU of the architecture accepts. Source: Guide, "Thread Block Clusters".
    max_cluster : int
        The same for kernels that opt in to non-portable sizes. Source: Hopper and Blackwell Tuning Guides, "Thread Block
        Clusters".
    mma_k_bytes : int
        Depth of one matrix instruction, bytes of a row of A. Source: ISA, "Matrix shape": K 16 for 2-byte types, 32 for
        1-byte types.
    setmaxnreg_min, setmaxnreg_max, setmaxnreg_step : int
        Legal immediates of ``setmaxnreg``. Source: ISA, "setmaxnreg": 24 to 256 in multiples of 8.
    tmem_alloc_min_cols : int
        Smallest ``tcgen05.alloc``; sizes are powers of two. 0 without tensor memory. Source: ISA, "tcgen05.alloc".
    tma_alignment_bytes : int
        Alignment of a box in shared memory. Source: ISA, "cp.async.bulk.tensor": 128; an operand with a 128-byte swizzle
        atom needs 1024.
    """

    name: str
    smem_bytes_per_sm: int
    smem_bytes_per_block: int
    registers_per_sm: int
    max_registers_per_thread: int
    max_threads_per_block: int
    tmem_lanes: int
    tmem_cols: int
    mma_m: tuple[int, ...]
    mma_max_n: int
    named_barriers: int = 16
    max_cluster_portable: int = 8
    max_cluster: int = 16
    mma_k_bytes: int = 32
    setmaxnreg_min: int = 24
    setmaxnreg_max: int = 256
    setmaxnreg_step: int = 8
    tmem_alloc_min_cols: int = 0
    tma_alignment_bytes: int = 128

    @property
    def has_tensor_memory(self) -> bool:
        """True if accumulators live in tensor memory (tcgen05) instead of registers (wgmma)."""
        return self.tmem_cols > 0


SM_90A = ArchSpec(
    name="sm_90a",
    smem_bytes_per_sm=228 * 1024,
    smem_bytes_per_block=227 * 1024,
    registers_per_sm=64 * 1024,
    max_registers_per_thread=255,
    max_threads_per_block=1024,
    tmem_lanes=0,
    tmem_cols=0,
    mma_m=(64,),
    mma_max_n=256,
)
SM_100A = ArchSpec(
    name="sm_100a",
    smem_bytes_per_sm=228 * 1024,
    smem_bytes_per_block=227 * 1024,
    registers_per_sm=64 * 1024,
    max_registers_per_thread=255,
    max_threads_per_block=1024,
    tmem_lanes=128,
    tmem_cols=512,
    mma_m=(32, 64, 128),
    mma_max_n=256,
    tmem_alloc_min_cols=32,
)
_KNOWN = {spec.name: spec for spec in (SM_90A, SM_100A)}


def arch(name: str) -> ArchSpec:
    """Return the spec of an architecture by name.

    Raises
    ------
    ConfigError
        If ``name`` is not "sm_90a" or "sm_100a".
    """
    spec = _KNOWN.get(name) if isinstance(name, str) else None
    if spec is None:
        raise ConfigError(
            f"arch = {name!r}: unknown architecture; take one of {sorted(_KNOWN)} (the 'a' is part of the name: "
            "wgmma and tcgen05 are architecture-specific)"
        )
    return spec
