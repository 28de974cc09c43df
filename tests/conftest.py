"""Shared by all tests: a private kernel cache for the session, and random inputs."""

import ml_dtypes
import numpy as np
import pytest

pytest_plugins = ["fa4_numba.emulator.pytest_plugin"]
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory):
    """Compile every kernel once per session, apart from the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("FA4_NUMBA_CACHE", str(tmp_path_factory.mktemp("kernels")))
    yield
    patch.undo()


@pytest.fixture
def inputs():
    """Return a maker of q, k, v ``(B, S, H, D)``: standard normal, by seed."""

    def make(batch, heads, kv_heads, seq_q, seq_k, dim, dtype="bfloat16", v_dim=None, seed=0):
        rng = np.random.default_rng(seed)
        shapes = (
            (batch, seq_q, heads, dim),
            (batch, seq_k, kv_heads, dim),
            (batch, seq_k, kv_heads, v_dim or dim),
        )
        return tuple(rng.standard_normal(shape, np.float32).astype(DTYPES[dtype]) for shape in shapes)

    return make
