"""Which backend a call takes, and why not the others. Nothing falls back in silence."""

from dataclasses import dataclass

from ..errors import ArrayError, BackendError, Fa4Error, UnsupportedError
from .problem import Problem, choose_config

BACKENDS = ("auto", "sm100", "sm90", "emulator", "reference")


@dataclass(frozen=True)
class BackendChoice:
    """The backend taken, and for every other one why it was not."""

    backend: str
    why: str
    rejected: dict[str, str]

    def __str__(self):
        lines = [f"backend {self.backend!r}: {self.why}"]
        return "\n".join(lines + [f"  not {name!r}: {reason}" for name, reason in self.rejected.items()])


def gpu_architecture() -> str | None:
    """Return "sm_90", "sm_100" … of the first GPU, or None if there is no driver or device."""
    try:
        from cuda.core import Device

        return "sm_" + Device(0).arch
    except Exception:  # no package, driver or device: each raises its own kind
        return None


def _why_not_sm100(problem: Problem) -> str | None:
    try:
        choose_config(problem)
    except Fa4Error as error:
        return str(error)
    found = gpu_architecture()
    if found is None:
        return "no GPU was found (no driver or no device)"
    return None if found == "sm_100" else f"the GPU is {found}; the kernel needs a Blackwell sm_100"


def choose_backend(problem: Problem, backend: str = "auto") -> BackendChoice:
    """Return the backend for ``problem``.

    Raises
    ------
    ArrayError
        For an unknown backend name.
    BackendError, UnsupportedError
        If the backend asked for cannot run here, or does not serve the problem.
    """
    if backend not in BACKENDS:
        raise ArrayError(f"backend = {backend!r}: take one of {BACKENDS}")
    if backend == "sm90":
        raise UnsupportedError(
            "backend = 'sm90': the Hopper kernel is not built yet; use 'emulator' or 'reference'"
        )
    if backend == "emulator":
        choose_config(problem)
        return BackendChoice("emulator", "asked for: the compiled sm_100a PTX, executed on the CPU", {})
    if backend == "reference":
        return BackendChoice("reference", "asked for: numpy", {})
    no = _why_not_sm100(problem)
    if backend == "sm100":
        if no is not None:
            choose_config(problem)
            raise BackendError(
                f"backend = 'sm100' cannot run here: {no}. Use backend='emulator' (same kernel, on the CPU)"
            )
        return BackendChoice("sm100", "asked for, and a Blackwell GPU is here", {})
    rejected = {
        "sm90": "the Hopper kernel is not built yet",
        "emulator": "never chosen on its own: it is for study, not speed",
    }
    if no is None:
        return BackendChoice(
            "sm100", "a Blackwell GPU is here", rejected | {"reference": "a GPU kernel can run"}
        )
    return BackendChoice("reference", "numpy runs everywhere", {"sm100": no} | rejected)
