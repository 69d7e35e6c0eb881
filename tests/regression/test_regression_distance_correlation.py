"""Distance correlation against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.regression import CentredDistances, distance_correlation, distance_covariance


def naive(x, z):
    """dCov^2(x, z), dVar^2(x), dVar^2(z) straight from the definition."""

    def centred(values):
        values = np.asarray(values, dtype=float).reshape(len(values), -1)
        d = np.sqrt(((values[:, None, :] - values[None, :, :]) ** 2).sum(axis=2))
        return d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()

    A, B = centred(x), centred(z)
    return (A * B).mean(), (A * A).mean(), (B * B).mean()


def naive_correlation(x, z):
    covariance, a, b = naive(x, z)
    return np.sqrt(max(covariance, 0) / np.sqrt(a * b)) if a * b > 0 else 0.0


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_is_the_definition(n, p, q, ties, seed):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(n, p)), rng.normal(size=(n, q))
    z[:, 0] += x[:, 0]
    if ties:
        x, z = x.round(), z.round()
    assert distance_covariance(x, z) ** 2 == pytest.approx(naive(x, z)[0], abs=1e-12)
    assert distance_correlation(x, z) == pytest.approx(naive_correlation(x, z), abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 4), st.floats(-1e6, 1e6), st.integers(0, 10**6))
def test_fixed_partner_is_the_definition(n, q, offset, seed):
    rng = np.random.default_rng(seed)
    Z, x = rng.normal(size=(n, q)), rng.normal(size=(5, n)) ** 3 + offset
    fixed = CentredDistances(Z)
    got = fixed.correlation_squared(x)
    for row, value in zip(x, got, strict=True):
        covariance, a, b = naive(row - offset, Z)
        assert value == pytest.approx(covariance / np.sqrt(a * b), rel=1e-6, abs=1e-9)
    assert fixed.variance == pytest.approx(naive(Z, Z)[0], rel=1e-9)


def test_closed_forms():
    assert distance_correlation([0, 1], [5, 3]) == pytest.approx(1)
    assert distance_covariance([0, 1], [0, 1]) ** 2 == pytest.approx(1 / 4)
    # x = -1, 0, 1 and z = x^2, by hand: dCov^2 = 8/81, dVar^2 = 40/81 and 16/81.
    assert distance_correlation([-1, 0, 1], [1, 0, 1]) == pytest.approx(10**-0.25)
    # Independent by construction: every combination once.
    x, z = np.meshgrid([0, 1, 5], [2, 3])
    assert distance_correlation(x.ravel(), z.ravel()) == pytest.approx(0, abs=1e-7)
    # The population value for bivariate normal data with correlation rho is known.
    rho = 0.5
    inside = rho * np.arcsin(rho) + np.sqrt(1 - rho**2)
    inside -= rho * np.arcsin(rho / 2) + np.sqrt(4 - rho**2) - 1
    expected = np.sqrt(inside / (1 + np.pi / 3 - np.sqrt(3)))
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000)
    z = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=len(x))
    assert distance_correlation(x, z) == pytest.approx(expected, abs=0.005)


EXTREMES = [(1e300, 1.0), (1e-300, 1.0), (1e300, 1e300), (1e-300, 1e-300), (1e300, 1e-300),
            (1e307, 1e-307), (1e120, 1e120), (5e-324 * 2**40, 1.0)]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 3), (2, 1), (2, 3)])
@pytest.mark.parametrize(("x_scale", "z_scale"), EXTREMES)
def test_numbers_whose_squares_are_no_floats(x_scale, z_scale, p, q):
    rng = np.random.default_rng(0)
    x, z = rng.integers(-9, 10, (30, p)), rng.integers(-9, 10, (30, q)).astype(float)
    z[:, 0] += x[:, 0]
    large = x * x_scale, z * z_scale
    assert distance_correlation(*large) == pytest.approx(distance_correlation(x, z), rel=1e-9)
    expected = distance_covariance(x, z) * np.sqrt(x_scale) * np.sqrt(z_scale)
    assert distance_covariance(*large) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_projections_of_numbers_whose_squares_are_no_floats():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=40), rng.normal(size=(40, 3))
    options = {"method": "projections", "n_projections": 20}
    expected = distance_correlation(x, z, **options)
    assert expected > 0.1
    assert distance_correlation(x * 1e300, z / 1e300, **options) == pytest.approx(expected)


def test_the_largest_numbers_of_all():
    most = np.finfo(float).max
    assert distance_correlation([-most, most, 0], [1, 2, 5]) == pytest.approx(
        distance_correlation([-1, 1, 0], [1, 2, 5])
    )


def test_a_constant_has_no_correlation():
    assert distance_correlation([1, 1, 1], [[1, 2], [3, 4], [9, 9]]) == 0
    assert distance_correlation([1, 2, 3], [4, 4, 4]) == 0


def test_projections_come_close():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 5))
    x = Z[:, 0] ** 2 + Z[:, 1] + rng.normal(size=400)
    exact = distance_correlation(x, Z)
    projected = distance_correlation(x, Z, method="projections", n_projections=2000)
    assert projected == pytest.approx(exact, rel=0.03)
    assert projected != exact
    fixed = CentredDistances(Z, n_projections=50)
    assert (fixed.correlation_squared(x) == fixed.correlation_squared(x)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distance_correlation([1, 2], [1, 2, 3]), "x has 2 observations but z has 3"),
        (lambda: distance_correlation([1, np.nan], [1, 2]), "row 1 of x holds a NaN"),
        (lambda: distance_correlation(["a"], [1]), "x is not a table of numbers"),
        (lambda: distance_correlation([], []), "x must have the shape"),
        (lambda: distance_correlation([1, 2], [1, 2], method="fast"), "method must be"),
        (
            lambda: distance_correlation(np.eye(3), np.eye(3), method="projections"),
            "univariate side",
        ),
        (
            lambda: distance_correlation(np.arange(10_001), np.ones((10_001, 2)), method="exact"),
            "use projections",
        ),
        (lambda: CentredDistances(np.eye(3), n_projections=0), "n_projections must be"),
        (lambda: CentredDistances(np.eye(3)).covariance_squared([1, 2]), "rows of 3 numbers"),
        (lambda: CentredDistances(np.eye(3)).covariance_squared([1, 2, np.nan]), "NaN"),
        (
            lambda: CentredDistances(np.eye(3)).covariance_squared([1, 2, 1e71]),
            r"numbers of x are beyond 1e\+70: their squares overflow",
        ),
        (
            lambda: CentredDistances(1e71 * np.eye(3)),
            r"numbers of Z are beyond 1e\+70: their squares overflow",
        ),
        (
            lambda: CentredDistances(1e-71 * np.eye(3)),
            "numbers of Z are all below 1e-70: their squares vanish",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(DataError, match=message):
        call()
