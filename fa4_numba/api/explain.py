"""``explain_backend``: what a call would do, without doing it."""

from .arrays import to_host
from .checks import check_problem
from .dispatch import BackendChoice, choose_backend


def explain_backend(q, k, v, *, causal=False, scale=None, layout="bshd", backend="auto") -> BackendChoice:
    """Return which backend :func:`fa4_numba.attention` would take for these arguments, and why not the others."""
    arrays = [to_host(name, value).numpy for name, value in (("q", q), ("k", k), ("v", v))]
    return choose_backend(check_problem(*arrays, causal=causal, scale=scale, layout=layout), backend)
