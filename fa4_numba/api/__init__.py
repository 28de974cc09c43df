"""The user's entry points: array conversion, argument checks, dispatch."""

from .attention import attention
from .dispatch import choose_backend
from .emulate import emulate
from .explain import explain_backend
from .problem import ConfigChoice, Problem, choose_config

__all__ = [
    "ConfigChoice",
    "Problem",
    "attention",
    "choose_backend",
    "choose_config",
    "emulate",
    "explain_backend",
]
