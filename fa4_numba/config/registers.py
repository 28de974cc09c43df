"""Register budgets of the warp roles (``setmaxnreg``)."""

from dataclasses import dataclass

from ..hw import SM_100A


@dataclass(frozen=True)
class RegisterBudget:
    """Registers per thread of each role; all multiples of 8.

    Two softmax warpgroups, one correction warpgroup and one of all other roles share the SM's 65536 registers.
    """

    softmax: int
    correction: int
    other: int

    def __post_init__(self):
        total = 128 * (2 * self.softmax + self.correction + self.other)
        if total > SM_100A.registers_per_sm or any(
            n % 8 for n in (self.softmax, self.correction, self.other)
        ):
            raise ValueError(f"{self}: {total} registers of {SM_100A.registers_per_sm}, each a multiple of 8")


def register_budget(cfg) -> RegisterBudget:
    """Return the budgets; they fill the register file exactly. Source: the budgets of flash-attn-4."""
    return RegisterBudget(192, 80, 48) if cfg.padded_ov_depth > 64 else RegisterBudget(200, 64, 48)
