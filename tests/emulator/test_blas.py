"""A machine uses one BLAS thread, and gives the others back."""

import pytest

from fa4_numba.emulator.machine import blas


def test_threads_are_given_back():
    controls = blas._controls()
    if controls is None:
        pytest.skip("numpy's BLAS is not OpenBLAS")
    get, put = controls
    before = get()
    put(2)
    try:
        with pytest.raises(KeyError), blas.one_thread():
            assert get() == 1
            raise KeyError
        assert get() == 2
    finally:
        put(before)
