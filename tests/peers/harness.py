"""Running a case under a schedule, and what to say of it."""

import warnings
from dataclasses import dataclass

from cases import Case, Comparison

from fa4_numba.emulator.driver import LaunchLog, emulated_driver
from fa4_numba.errors import Fa4Error

SCHEDULES = ("eager", "late", "random:1")


@dataclass
class Result:
    """What a case did under one schedule."""

    case: Case
    schedule: str
    log: LaunchLog
    comparisons: list[Comparison]
    failure: str = ""

    @property
    def error(self) -> float:
        """Largest relative error of all outputs."""
        return max((c.error for c in self.comparisons), default=float("inf"))

    @property
    def holds(self) -> bool:
        return bool(self.log) and bool(self.comparisons) and all(c.holds for c in self.comparisons)

    @property
    def warp_instructions(self) -> int:
        return sum(launch.stats.warp_instructions for launch in self.log if launch.stats)

    @property
    def seconds(self) -> float:
        return sum(launch.stats.seconds for launch in self.log if launch.stats)

    @property
    def reports(self) -> list:
        """What the checks had to say, if they were on."""
        return [report for launch in self.log for report in launch.reports]


def run(case: Case, schedule: str, library: str, **options) -> Result:
    """Run a case; an emulator's complaint becomes ``failure``. ``options`` as the emulator's Machine takes them."""
    with emulated_driver(schedule, libraries=[library], **options) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Result(case, schedule, log, case.run())
        except Fa4Error as error:
            return Result(case, schedule, log, [], f"{type(error).__name__}: {error}")
