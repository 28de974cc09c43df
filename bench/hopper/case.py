"""One launch, described so that a GPU and the emulator can both make it."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Buffer:
    """A global array: ``fill`` is "zero", "bf16" (small random bf16 numbers) or "none"."""

    name: str
    bytes: int
    fill: str = "zero"


@dataclass(frozen=True)
class Map:
    """A tensor map of bf16 elements over a buffer; shape and box innermost first; a 128-byte swizzle or none."""

    name: str
    buffer: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 128


@dataclass(frozen=True)
class Case:
    """A kernel and its launch.

    ``args`` are names of buffers or maps, or ["u32", n], ["f32", x]. ``small`` is a launch with the same work per CTA
    but fewer CTAs, which is enough for the emulator: buffers and maps shrink with it. Statistics: where ``stats`` names
    a buffer, each warp writes four 64-bit words there: clock at start and end, nanoseconds at start and end.
    """

    name: str
    module: str
    entry: str
    grid: tuple[int, int, int]
    block: int
    smem: int
    args: list
    buffers: list[Buffer] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    stats: str | None = None
    bound: str = ""  # what limits it
    work: dict = field(default_factory=dict)  # FLOP, bytes or instructions of the whole launch

    def as_json(self) -> dict:
        return asdict(self)
