"""Shared-memory bank conflicts."""

import numpy as np

BANKS, BANK_BYTES = 32, 4


def bank_conflicts(byte_addresses, access_bytes: int = 4) -> int:
    """Return how many wavefronts one warp access takes (1 = conflict-free).

    Parameters
    ----------
    byte_addresses : sequence of int
        Address of each thread (up to 32).
    access_bytes : int
        4, 8 or 16 bytes per thread; wide accesses are served in groups of 16 or 8 threads.

    Notes
    -----
    In a wavefront each of 32 banks serves one 4-byte word; threads that want the same word share it.
    Source: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.0 and later.
    """
    addresses = np.asarray(byte_addresses, np.int64)
    threads = BANKS * BANK_BYTES // access_bytes
    wavefronts = 0
    for first in range(0, len(addresses), threads):
        group = addresses[first : first + threads]
        words = np.unique((group[:, None] + np.arange(0, access_bytes, BANK_BYTES)) // BANK_BYTES)
        wavefronts += int(np.bincount(words % BANKS, minlength=BANKS).max())
    return wavefronts
