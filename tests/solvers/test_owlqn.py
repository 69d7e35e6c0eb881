"""OWL-QN against L-BFGS-B on twice as many variables, and the ways in which it ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, minimize

from trellis.solvers.owlqn import minimise_l1


def logistic(seed, n, d):
    """The summed logistic loss of a random problem, with a small quadratic term."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, size=d)
    sign = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=d))), 1.0, -1.0)

    def value_and_gradient(w):
        margin = sign * (X @ w)
        slope = -(sign / (1 + np.exp(margin))) @ X + 2e-3 * w
        return float(np.logaddexp(0, -margin).sum() + 1e-3 * w @ w), slope

    return value_and_gradient


def search(f, start, l1, **options):
    known = {"memory": 8, "max_iterations": 2000, "tol": 0.0, "gradient_tol": 1e-7}
    return minimise_l1(f, start, l1, after=lambda x, value: False, **known | options)


@given(
    st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 12), st.sampled_from([0.05, 1.0, 8.0])
)
@settings(max_examples=40, deadline=None)
def test_it_agrees_with_bounds_on_positive_and_negative_parts(seed, n, d, l1):
    f = logistic(seed, n, d)

    def parts(uv):
        value, slope = f(uv[:d] - uv[d:])
        return value + l1 * uv.sum(), np.concatenate([slope, -slope]) + l1

    other = minimize(
        parts, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=Bounds(0, np.inf),
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10**6},
    )  # fmt: skip
    ending = search(f, np.random.default_rng(seed).normal(size=d), l1)
    assert ending.value == pytest.approx(other.fun, rel=1e-7)
    np.testing.assert_allclose(ending.x, other.x[:d] - other.x[d:], atol=2e-3)
    slope = f(ending.x)[1]
    on = ending.x != 0
    np.testing.assert_allclose(slope[on], -l1 * np.sign(ending.x[on]), atol=1e-4)
    assert (np.abs(slope[~on]) <= l1 + 1e-4).all()


def test_a_strong_penalty_leaves_nothing():
    ending = search(logistic(0, 20, 5), np.ones(5), 1e4)
    assert (ending.x == 0).all()
    assert ending.reason == "gradient"


def test_values_fall_and_no_sign_changes_within_a_step():
    met = []
    f = logistic(3, 30, 8)
    minimise_l1(
        f, np.full(8, 2.0), 0.5, memory=1, max_iterations=60, tol=-1, gradient_tol=1e-6,
        after=lambda x, value: bool(met.append((x.copy(), value))),
    )  # fmt: skip
    values = [value for _, value in met]
    assert values == sorted(values, reverse=True)
    for (before, _), (after, _) in itertools.pairwise(met):
        assert (before * after >= 0).all()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tol": 0.5}, "tol"),
        ({"max_iterations": 2}, "max_iterations"),
        ({"gradient_tol": 1e-6}, "gradient"),
    ],
)
def test_endings(options, reason):
    assert search(logistic(1, 30, 4), np.zeros(4), 0.1, **options).reason == reason


def test_the_caller_may_end_it():
    ending = minimise_l1(
        logistic(1, 30, 4), np.zeros(4), 0.1, memory=4, max_iterations=50, tol=0.0,
        gradient_tol=0.0, after=lambda x, value: True,
    )  # fmt: skip
    assert ending.reason == "told"


def test_a_wrong_gradient_ends_the_line_search():
    def wrong(x):
        return float(x @ x), -2 * x - 1

    ending = search(wrong, np.array([1.0, -2.0]), 0.1)
    assert ending.reason == "line search"
    assert ending.x.tolist() == [1.0, -2.0]
