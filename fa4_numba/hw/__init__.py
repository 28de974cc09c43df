"""What the chips are: one :class:`ArchSpec` per architecture, each number with its source."""

from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True)
class ArchSpec:
    """Capacities of one streaming multiprocessor (SM).

    Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; PTX ISA, sections
    "Tensor Memory" and "Matrix shape" of tcgen05 and wgmma.
    """

    name: str
    smem_bytes_per_sm: int
    smem_bytes_per_block: int  # opt-in maximum: per SM less 1024 bytes that the system keeps
    registers_per_sm: int  # 32-bit
    max_registers_per_thread: int
    max_threads_per_block: int
    tmem_lanes: int  # 0: no tensor memory
    tmem_cols: int  # 32-bit cells per lane
    mma_m: tuple[int, ...]  # rows of one matrix instruction of one CTA
    mma_max_n: int
    named_barriers: int = 16
    max_cluster_portable: int = 8


SM_90A = ArchSpec("sm_90a", 233472, 232448, 65536, 255, 1024, 0, 0, (64,), 256)
SM_100A = ArchSpec("sm_100a", 233472, 232448, 65536, 255, 1024, 128, 512, (32, 64, 128), 256)


def arch(name: str) -> ArchSpec:
    """Return the spec of "sm_90a" or "sm_100a"."""
    for spec in (SM_90A, SM_100A):
        if spec.name == name:
            return spec
    raise ConfigError(f"arch = {name!r}: known architectures are 'sm_90a' and 'sm_100a'")
