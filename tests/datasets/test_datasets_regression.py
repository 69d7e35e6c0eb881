"""The generator of regression data on graphs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trellis import DataError
from trellis.datasets import synthetic_graph_regression
from trellis.datasets.regression import _monomials, _random_similarities


def test_targets_are_the_solution_of_the_gaussian_crf():
    """By hand: y from ỹ and a dense Laplacian; ỹ is had back from α = 1, β = 0."""
    same = {"random_state": 3, "coefficient_state": 1, "mean_degree": 6}
    raw = synthetic_graph_regression(40, 30, beta=0.0, **same)[1].y
    for normalise in (True, False):
        _, test = synthetic_graph_regression(40, 30, normalise=normalise, **same)
        S = test.graph.toarray()
        i, j = np.nonzero(S)
        np.testing.assert_allclose(S[i, j], np.exp(-abs(raw[i] - raw[j])))
        if normalise:
            S = 30 * S / S.sum()
        Q = np.eye(30) + 5 * (np.diag(S.sum(1)) - S)
        np.testing.assert_allclose(test.y, np.linalg.solve(Q, raw), rtol=1e-8)


def test_polynomial():
    assert _monomials(2, 2, True) == [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    assert _monomials(2, 3, False) == [(), (0,), (1,), (0, 0), (1, 1), (0, 0, 0), (1, 1, 1)]
    train, test = synthetic_graph_regression(
        200, 150, degree=2, noise_variance=0, beta=0, random_state=5
    )

    def design(X):
        return np.column_stack([X[:, list(m)].prod(1) for m in _monomials(5, 2, True)])

    # One polynomial for both parts: what is learned from one fits the other exactly.
    c = np.linalg.lstsq(design(train.X), train.y, rcond=None)[0]
    np.testing.assert_allclose(design(test.X) @ c, test.y, atol=1e-8)
    assert 0 <= c.min() <= c.max() <= 0.3


def test_random_graph():
    rng = np.random.default_rng(0)
    for n, p in ((2, 1.0), (7, 1.0), (50, 0.0), (200, 0.1)):
        S = _random_similarities(np.zeros(n), p, rng).toarray()
        assert (S == S.T).all()
        assert not S.diagonal().any()
        assert set(np.unique(S)) <= {0.0, 1.0}
        pairs = n * (n - 1) / 2
        edges = S.sum() / 2
        assert abs(edges - p * pairs) <= 4 * np.sqrt(p * (1 - p) * pairs)


def test_seeds():
    a, b = (synthetic_graph_regression(50, 20, random_state=7)[0] for _ in range(2))
    assert (a.y == b.y).all()
    assert (a.graph != b.graph).nnz == 0
    other = synthetic_graph_regression(50, 20, random_state=8)[0]
    assert (a.y != other.y).any()
    # One polynomial, different examples.
    exact = {"noise_variance": 0, "beta": 0, "degree": 1, "coefficient_state": 4}
    lines = [synthetic_graph_regression(50, 20, random_state=s, **exact)[0] for s in (1, 2)]
    found = [np.linalg.lstsq(np.c_[d.X, np.ones(50)], d.y, rcond=None)[0] for d in lines]
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n must be an integer of at least 2, got 1"),
        ({"n_test": 0}, "n_test must be an integer of at least 2, got 0"),
        ({"n_features": 0}, "n_features must be a positive integer, got 0"),
        ({"degree": 0}, "degree must be a positive integer, got 0"),
        ({"noise_variance": -1}, "noise_variance must be a number of at least 0, got -1"),
        ({"alpha": 0}, "alpha must be a positive number, got 0"),
        ({"beta": -1}, "beta must be a number of at least 0, got -1"),
        ({"edge_probability": 2}, "edge_probability must be None or a number from 0 to 1, got 2"),
        ({"mean_degree": -1}, "mean_degree must be a number of at least 0, got -1"),
    ],
)
def test_wrong_choices(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        synthetic_graph_regression(**options)


def test_a_system_that_cannot_be_solved(monkeypatch):
    monkeypatch.setattr("scipy.sparse.linalg.cg", lambda *args, **options: (args[1], 1))
    with pytest.raises(DataError, match="the system of the Gaussian CRF could not be solved"):
        synthetic_graph_regression(10, 10)
