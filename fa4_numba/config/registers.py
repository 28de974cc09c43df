"""Register budgets of the warp roles (``setmaxnreg``)."""

from dataclasses import dataclass

from ..errors import ConfigError
from ..hw import SM_100A

WARPGROUP = 128  # threads


@dataclass(frozen=True)
class RegisterBudget:
    """Registers per thread of each role.

    Two softmax warpgroups, one correction warpgroup, and one of all other roles share the register file of an SM. The
    other roles have one budget because all warps of a warpgroup must execute the same ``setmaxnreg``.

    Raises
    ------
    ConfigError
        If ``setmaxnreg`` cannot name a budget, or the four warpgroups need more registers than there are.
    """

    softmax: int
    correction: int
    other: int

    def __post_init__(self):
        low, high, step = SM_100A.setmaxnreg_min, SM_100A.setmaxnreg_max, SM_100A.setmaxnreg_step
        each = (self.softmax, self.correction, self.other)
        if self.total > SM_100A.registers_per_sm or any(n % step or not low <= n <= high for n in each):
            raise ConfigError(
                f"{self}: needs {self.total} registers; allowed are multiples of {step} from {low} to {high}, "
                f"together at most {SM_100A.registers_per_sm}"
            )

    @property
    def total(self) -> int:
        """Registers of all 512 threads."""
        return WARPGROUP * (2 * self.softmax + self.correction + self.other)


def register_budget(cfg) -> RegisterBudget:
    """Return the budgets for ``cfg``; both fill the register file exactly.

    Narrow heads leave the correction warpgroup little to hold, so its share goes to softmax. Source: the budgets of
    flash-attn-4, ``flash_fwd_sm100.py``, for head dimensions below and from 96.
    """
    return RegisterBudget(192, 80, 48) if cfg.padded_ov_depth > 64 else RegisterBudget(200, 64, 48)
