"""The exponential of the kernels: as accurate as it says, and exactly zero where it says."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from trellis.kernels._jit import _FASTMATH
from trellis.kernels.fast_exp import fast_exp, vector_exp


# With the flags of the kernels: a compiler free to reorder sums undoes part of the split of ln 2.
@numba.njit(fastmath=_FASTMATH, error_model="numpy")
def each(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = fast_exp(x[i])
    return out


def test_float32_is_within_its_error_bound():
    x = np.concatenate(
        [
            np.linspace(-87, 88, 1_000_001, dtype=np.float32),
            np.linspace(-1, 1, 200_001, dtype=np.float32),
            np.float32([1e-30, -1e-30, 1e-8, -1e-8]),
        ]
    )
    found = each(x)
    assert found.dtype == np.float32
    exact = np.exp(x.astype(np.float64))
    error = np.abs(found / exact - 1)
    assert error.max() < 4e-7
    assert error[np.abs(x) < 5].max() < 2e-7  # where it matters


def test_float32_is_zero_below_the_range_and_one_at_zero():
    low = np.float32([-87.001, -88, -100, -1e30, -np.inf])
    assert each(low).tolist() == [0.0] * len(low)
    assert each(np.float32([-87.0]))[0] > 0
    assert each(np.float32([0.0, -0.0])).tolist() == [1.0, 1.0]


def test_float32_rises_across_the_joins_of_its_pieces():
    # k changes at odd multiples of ln 2 / 2; the polynomial must not step down there.
    joins = (np.arange(-251, 252, 2) * math.log(2) / 2).astype(np.float32)
    joins = joins[joins > -86]
    below = np.nextafter(joins, np.float32(-200))
    above = np.nextafter(joins, np.float32(200))
    assert (each(above) >= each(below)).all()


def test_float64_is_the_exponential_itself():
    x = np.array([-745.0, -100.0, -1.0, 0.0, 1.0, 700.0, -np.inf])
    assert each(x).tolist() == [math.exp(v) for v in x]


def test_outside_kernels_it_is_the_exponential_too():
    assert fast_exp(-1.5) == math.exp(-1.5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_of_scores_keeps_its_sum(kind):
    """What the kernels need of it: a softmax whose terms add up."""
    scores = np.random.default_rng(0).normal(0, 10, 200).astype(kind)
    below = scores - scores.max()
    share, exact = each(below).astype(np.float64), np.exp(below.astype(np.float64))
    np.testing.assert_allclose(share / share.sum(), exact / exact.sum(), rtol=5e-7)


@numba.njit(fastmath=_FASTMATH, error_model="numpy")
def each64(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = vector_exp(x[i])
    return out


@pytest.mark.parametrize(("lowest", "error"), [(-10.0, 1e-15), (-250.0, 1e-14), (-700.0, 3e-14)])
def test_relative_error_of_vector_exp(lowest, error):
    x = np.linspace(lowest, 0.0, 100_001)
    assert np.abs(each64(x) / np.exp(x) - 1).max() < error


def test_vector_exp_has_zero_one_and_minus_infinity():
    x = np.array([0.0, -0.0, -np.inf, -700.1, -1e300, -1e-20])
    assert each64(x).tolist() == [1, 1, 0, 0, 0, 1]
