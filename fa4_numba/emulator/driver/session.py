"""The context in which launches go to the emulator."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

from ...errors import LaunchError
from .arrays import DeviceMemory
from .launch import Launch, LaunchLog

LIBRARIES = {"triton": "triton", "cutlass": "cute"}  # package → our module that stands in for its driver


class Session:
    """Where the stand-in drivers deliver launches."""

    def __init__(self, run: bool, save_to, options: dict):
        self.log, self.device_memory = LaunchLog(), DeviceMemory()
        self._run, self._save_to, self._options = run, save_to, options

    def launch(self, kernel, ptx, grid, block, cluster, dynamic_smem_bytes, args) -> Launch:
        """Take one launch: log it, save it if asked, run it to the end."""
        shapes = (tuple(map(int, shape)) for shape in (grid, block, cluster))
        launch = Launch(kernel, ptx, *shapes, int(dynamic_smem_bytes), tuple(args), self.device_memory.memory)
        self.log.append(launch)
        if self._save_to is not None:
            launch.save(Path(self._save_to) / f"{len(self.log) - 1}_{kernel[:60]}")
        if self._run:
            launch.run(**self._options)
        return launch


@contextmanager
def emulated_driver(
    schedule: str = "eager", *, libraries=None, run: bool = True, save_to=None, **options
) -> Iterator[LaunchLog]:
    """Send the launches of Triton, Gluon and CuTe DSL kernels to the emulator while the context lasts.

    Parameters
    ----------
    schedule : str
        "eager", "late" or "random:SEED".
    libraries : sequence of str
        Packages whose launches to take, of "triton" and "cutlass"; by default those that are imported already.
    run : bool
        False records launches without running them.
    save_to : path
        Folder in which each launch is saved before it runs, for :meth:`Launch.load`.
    **options
        Passed to :class:`~fa4_numba.emulator.Machine`: ``max_steps``, ``progress``, …

    Yields
    ------
    LaunchLog
        One :class:`Launch` for each launch, with grid, block, cluster and what it executed.

    Raises
    ------
    LaunchError
        If no library is imported, or one is asked for that the driver does not know.
    EmulatorError
        From the library's call, as the kernel deserves.
    """
    if libraries is None:
        libraries = [name for name in LIBRARIES if name in sys.modules]
    if not libraries or any(name not in LIBRARIES for name in libraries):
        raise LaunchError(
            f"libraries = {list(libraries)}: import triton or cutlass first, or name one of {list(LIBRARIES)}"
        )
    session = Session(run, save_to, {"schedule": schedule, **options})
    with ExitStack() as stack:
        for name in libraries:
            driver = import_module(f".{LIBRARIES[name]}", __package__)
            stack.enter_context(driver.installed(session))
        yield session.log
