"""Launching compiled kernels: the launch plan, the emulator run, the GPU run."""
