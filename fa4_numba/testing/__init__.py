"""Numeric rules for comparing attention results."""

from .numerics import assert_close_to_float64, assert_lse_close, assert_within_ulp

__all__ = ["assert_close_to_float64", "assert_lse_close", "assert_within_ulp"]
