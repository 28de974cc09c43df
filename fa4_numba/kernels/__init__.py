"""Attention kernels written in Numba-CUDA: shared parts in ``common``, one package per architecture."""
