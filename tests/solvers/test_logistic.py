"""Logistic regression against scikit-learn, finite differences, and rows written several times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from trellis.solvers.logistic import fit_logistic, penalised_loss


def problem(seed=0, n=60, k=5):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, k))
    right = features @ rng.normal(size=k) + rng.normal(size=n) > 0.3
    return rng, features, right


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_the_loss(seed):
    rng, features, right = problem(seed)
    prior = rng.normal(size=5), rng.uniform(0.1, 3, size=5)
    given = (features, rng.random(len(right)) * right, rng.uniform(0, 3, len(right)), *prior)
    for _ in range(3):
        error = check_grad(
            lambda w: penalised_loss(w, *given)[0],
            lambda w: penalised_loss(w, *given)[1],
            rng.normal(size=5),
        )
        assert error < 1e-4


@pytest.mark.parametrize("l2", [0.1, 1.0, 20.0])
def test_with_a_prior_at_zero_it_is_scikit_learns(l2):
    _, features, right = problem()
    ours = fit_logistic(features, right, np.zeros(5), np.full(5, l2))
    theirs = LogisticRegression(C=1 / l2, fit_intercept=False, tol=1e-10, max_iter=1000)
    assert np.allclose(ours, theirs.fit(features, right).coef_[0], atol=1e-5)


def test_a_prior_elsewhere_is_an_offset():
    _, features, right = problem()
    mean = np.array([0.0, 2.0, 0.0, -1.0, 0.0])
    ours = fit_logistic(features, right, mean, np.full(5, 3.0))
    known = right.astype(float), np.ones(len(right))
    _, gradient = penalised_loss(ours, features, *known, mean, np.full(5, 3.0))
    assert np.abs(gradient).max() < 1e-3
    assert np.allclose(fit_logistic(features, right, mean, np.full(5, 1e9)), mean, atol=1e-6)
    again = fit_logistic(features, right, mean, np.full(5, 3.0), start=np.ones(5))
    assert np.allclose(ours, again, atol=1e-4)


def test_counts_and_probabilities_are_rows_written_again():
    rng, features, right = problem()
    count = rng.integers(0, 4, len(right)).astype(float)
    often = np.repeat(np.arange(len(right)), count.astype(int))
    prior = np.zeros(5), np.ones(5)
    ours = fit_logistic(features, right, *prior, count=count)
    assert np.allclose(ours, fit_logistic(features[often], right[often], *prior), atol=1e-5)
    likely = rng.random(len(right))
    both = np.tile(features, (2, 1)), np.repeat([1.0, 0.0], len(right))
    shares = np.concatenate([likely, 1 - likely])
    ours = fit_logistic(features, likely, *prior)
    assert np.allclose(ours, fit_logistic(*both, *prior, count=shares), atol=1e-5)
