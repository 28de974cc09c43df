"""The config engine: ``FA4Config`` and the maps derived from it. The only place where a size is decided."""

from .fa4config import FA4Config
from .fields import FIELDS
from .region import Region
from .registers import RegisterBudget, register_budget

__all__ = ["FIELDS", "FA4Config", "RegisterBudget", "Region", "register_budget"]
