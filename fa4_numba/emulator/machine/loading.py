"""Loading a program: which entry, which launch shape, which bytes of arguments; each refused with its reason."""

import numpy as np

from ...errors import LaunchError
from ...hw import SM_100A
from ..ptx.parser import DYNAMIC_SHARED_START
from .arguments import argument_bytes
from .memory import LOCAL_WINDOW, MAX_CLUSTER_CTAS, PARAM_WINDOW


class Loading:
    """What a machine does before anything runs."""

    def _choose_entry(self):
        names = list(self.module.entries)
        if self.entry is None and len(names) != 1:
            raise LaunchError(f"the module has {len(names)} entries {names}: pass entry=")
        name = self.entry or names[0]
        if name not in self.module.entries:
            raise LaunchError(f"entry {name!r} is not in the module; it has {names}")
        self.entry = self.module.entries[name]

    def _check_launch(self):
        self.explicit_cluster = self.cluster is not None or self.entry.cluster is not None
        self.cluster = self._cluster_shape()
        for name in ("grid", "block", "cluster"):
            value = tuple(int(n) for n in getattr(self, name))
            if len(value) != 3 or min(value) < 1:
                raise LaunchError(f"{name} = {getattr(self, name)}: takes three positive numbers (x, y, z)")
            setattr(self, name, value)
        self.threads = int(np.prod(self.block))
        limit = self.entry.max_threads or SM_100A.max_threads_per_block
        if self.threads > min(limit, SM_100A.max_threads_per_block):
            raise LaunchError(
                f"block = {self.block} has {self.threads} threads; the kernel takes at most {limit}"
            )
        if np.prod(self.cluster) > MAX_CLUSTER_CTAS:
            raise LaunchError(f"cluster = {self.cluster}: a cluster has at most {MAX_CLUSTER_CTAS} CTAs")
        if any(g % c for g, c in zip(self.grid, self.cluster)):
            raise LaunchError(
                f"grid = {self.grid} must be divisible by cluster = {self.cluster}, axis by axis"
            )
        self.clusters = tuple(g // c for g, c in zip(self.grid, self.cluster))
        if max(self.grid[1:]) > 65535 or self.grid[0] >= 1 << 31:
            raise LaunchError(f"grid = {self.grid}: x is limited to 2**31 - 1, y and z to 65535")
        self.shared_bytes = self.dynamic_start + int(self.dynamic_smem_bytes)
        most = SM_100A.smem_bytes_per_block
        if not 0 <= self.dynamic_smem_bytes <= most or self.shared_bytes > most + DYNAMIC_SHARED_START:
            raise LaunchError(
                f"{self.dynamic_smem_bytes} bytes of dynamic shared memory: a CTA has at most {most}"
            )
        most = min(256, self.entry.max_registers or 256)
        self.entry_registers = min(most, SM_100A.registers_per_sm // max(self.threads, 1)) // 8 * 8

    def _cluster_shape(self) -> tuple:
        """Return the cluster's shape: the launch's, or what the kernel requires."""
        required = self.entry.cluster
        if self.cluster is None:
            return required or (1, 1, 1)
        if required is not None and tuple(self.cluster) != required:
            raise LaunchError(
                f"cluster = {self.cluster}: the kernel requires {required} (.reqnctapercluster)"
            )
        return self.cluster

    def _pack_arguments(self):
        offsets, size = self.entry.param_offsets()
        params = self.entry.params
        if len(self.args) != len(params):
            raise LaunchError(f"{self.entry.name} takes {len(params)} arguments, got {len(self.args)}")
        self.param_bytes = np.zeros(max(size, 1), np.uint8)
        self._addresses = {name: PARAM_WINDOW + offset for name, offset in offsets.items()}
        self._addresses |= {name: LOCAL_WINDOW + offset for name, offset in self.entry.locals.items()}
        for name, initial in self.module.variables.items():
            data = np.frombuffer(bytearray(initial), np.uint8)
            self._addresses[name] = self.memory.bind(data, name, writable=True)
        floats = {name for name in offsets if f".f32 {name}" in self.module.text}
        for value, (name, count, _) in zip(self.args, params):
            at = offsets[name]
            self.param_bytes[at : at + count] = np.frombuffer(
                argument_bytes(value, name, count, name in floats), np.uint8
            )

    def address_of(self, symbol: str) -> int:
        """Return the address of a parameter or variable in its own state space."""
        if symbol in self._addresses:
            return self._addresses[symbol]
        if symbol in self.module.dynamic_shared:
            return self.dynamic_start
        if symbol in self.module.shared:
            return DYNAMIC_SHARED_START + self.module.shared[symbol]
        raise LaunchError(f"variable {symbol!r} has no address")
