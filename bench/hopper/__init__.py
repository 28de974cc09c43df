"""Kernels for a Hopper GPU whose times calibrate the emulator's clock."""
