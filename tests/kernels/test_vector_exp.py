"""The vectorised exponential of float64: accurate, exactly 0 and 1 where promised."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from trellis.kernels._jit import _FASTMATH
from trellis.kernels.vector_exp import vector_exp


# With the flags of the kernels: a compiler free to reorder sums undoes part of the split of ln 2.
@numba.njit(fastmath=_FASTMATH, error_model="numpy")
def each(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = vector_exp(x[i])
    return out


@pytest.mark.parametrize(("lowest", "error"), [(-10.0, 1e-15), (-250.0, 1e-14), (-700.0, 3e-14)])
def test_relative_error(lowest, error):
    x = np.linspace(lowest, 0.0, 100_001)
    assert np.abs(each(x) / np.exp(x) - 1).max() < error


def test_zero_one_and_minus_infinity():
    x = np.array([0.0, -0.0, -np.inf, -700.1, -1e300, -1e-20])
    assert each(x).tolist() == [1, 1, 0, 0, 0, 1]
