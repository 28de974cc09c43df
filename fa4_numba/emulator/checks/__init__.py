"""Hazard tracking: who may see whose accesses, by happens-before over warps, asynchronous units and proxies.

A schedule shows one order of events; what is found here does not depend on it. Every warp and unit carries a vector
clock; every access to shared and tensor memory is compared with those before it.
"""

from .checker import Checker
from .reports import FIXES, HazardWarning, Report, Severity

__all__ = ["FIXES", "Checker", "HazardWarning", "Report", "Severity"]
