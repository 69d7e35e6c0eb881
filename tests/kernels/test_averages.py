"""The running mean of scaled weights and their norm, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.kernels.averages import averaged, scale_and_average, squared_norm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_it_is_the_mean(dtype, size):
    rng = np.random.default_rng(size)
    met, mean = [], np.full(size, 7, dtype)  # what was there before counts for nothing
    for n in range(1, 6):
        weights, scale = rng.normal(size=size).astype(dtype), rng.uniform(0.1, 1)
        met.append(scale * weights)
        scale_and_average(mean, weights, scale, n)
        assert weights.dtype == mean.dtype == dtype
        np.testing.assert_allclose(weights, met[-1], rtol=1e-6)
        np.testing.assert_allclose(mean, np.mean(met, 0), rtol=1e-5, atol=1e-6)


def test_what_diverged_shows():
    mean, weights = np.zeros(2, np.float32), np.array([np.inf, 1], np.float32)
    scale_and_average(mean, weights, 1.0, 2)
    assert np.isinf(mean[0]) and mean[1] == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_the_norm_is_summed_in_float64(dtype, size):
    w = np.random.default_rng(size).normal(size=size).astype(dtype)
    assert squared_norm(w) == pytest.approx((w.astype(np.float64) ** 2).sum(), rel=1e-12)
    large = np.full(3, 1e30, dtype)  # beyond float32 when squared
    assert squared_norm(large) == pytest.approx(3e60, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_of_a_perceptron(dtype):
    rng = np.random.default_rng(0)
    w, sums = rng.normal(size=9).astype(dtype), 100 * rng.normal(size=9)
    mean = averaged(w, sums, 7.0)
    assert mean.dtype == dtype
    np.testing.assert_allclose(mean, w - sums / 7, rtol=1e-6)
