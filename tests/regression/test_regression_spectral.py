"""Solves, diagonals and Lanczos quadrature against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.regression import check_graph, knn_graph, laplacian, normalise, spectral
from trellis.regression.spectral import (
    Lanczos,
    eigen,
    inverse_diagonal,
    largest_component,
    neighbours_together,
    own_generator,
    random_signs,
    solve,
)


def a_laplacian(n, seed, density=0.3):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return laplacian(normalise(check_graph(upper + upper.T)))


SIZES = st.integers(1, 25)
SEEDS = st.integers(0, 10**6)
GAMMAS = st.sampled_from([0.0, 1e-6, 0.3, 10.0, 1e6])


@settings(deadline=None, max_examples=40)
@given(SIZES, SEEDS, GAMMAS)
def test_solve_and_diagonal(n, seed, gamma):
    L = a_laplacian(n, seed, 0.1)
    K = np.eye(n) + gamma * L.toarray()
    R = np.random.default_rng(seed).normal(size=(n, 2))
    np.testing.assert_allclose(solve(L, gamma, R), np.linalg.solve(K, R), atol=1e-8)
    np.testing.assert_allclose(solve(L, gamma, R[:, 0]), np.linalg.solve(K, R[:, 0]), atol=1e-8)
    np.testing.assert_allclose(inverse_diagonal(L, gamma), np.diag(np.linalg.inv(K)), atol=1e-8)


@settings(deadline=None, max_examples=40)
@given(SIZES, SEEDS, GAMMAS)
def test_solve_and_diagonal_of_a_part(n, seed, gamma):
    """Rows and columns of a Laplacian left out: what is alone in the rest may have a diagonal."""
    kept = np.flatnonzero(np.random.default_rng(seed).uniform(size=n) < 0.6)
    part = a_laplacian(n, seed, 0.2)[kept][:, kept]
    K, r = np.eye(len(kept)) + gamma * part.toarray(), np.arange(len(kept)) + 0.5
    np.testing.assert_allclose(solve(part, gamma, r), np.linalg.solve(K, r), atol=1e-8)
    np.testing.assert_allclose(inverse_diagonal(part, gamma), np.diag(np.linalg.inv(K)), atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(SIZES, SEEDS)
def test_eigen_component_by_component(n, seed):
    L = a_laplacian(n, seed, 0.1)
    values, vectors = eigen(L)
    np.testing.assert_allclose(vectors * values @ vectors.T, L.toarray(), atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-10)
    assert values.min() >= 0


@settings(deadline=None, max_examples=30)
@given(SIZES, SEEDS)
def test_lanczos_measure_is_exact_once_the_space_is_used_up(n, seed):
    L = a_laplacian(n, seed)
    start = np.random.default_rng(seed).normal(size=(n, 3))
    start[:, 2] = 0  # a vanishing vector has a vanishing measure
    run = Lanczos(L, start)
    run.extend(n + 5)
    values, vectors = eigen(L)
    for c in range(3):
        t, w = run.measure(slice(c, c + 1))
        expected = ((vectors.T @ start[:, c]) ** 2) @ (1 / (1 + 3 * values))
        assert w @ (1 / (1 + 3 * t)) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_a_slow_solve_falls_back_on_a_factorisation(monkeypatch):
    from scipy.sparse import linalg

    L = a_laplacian(30, 0)
    r = np.arange(30.0)
    expected = solve(L, 2.0, r)
    monkeypatch.setattr(linalg, "cg", lambda A, b, **options: (b * np.nan, 1))
    np.testing.assert_allclose(solve(L, 2.0, r), expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy.*")
def test_smoothing_beyond_all_digits_is_refused():
    L = laplacian(check_graph([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(DataError, match=r"smoothing over the graph has no solution: .*singular"):
        solve(L, 1e300, np.array([1.0, 0.0]))  # beside it the identity is nothing


def test_estimated_diagonal(monkeypatch):
    L = a_laplacian(150, 1, 0.05)
    exact = inverse_diagonal(L, 3.0)
    monkeypatch.setattr(spectral, "_EXACT_DIAGONAL_UP_TO", 10)
    monkeypatch.setattr(spectral, "_ORDER_FROM", 10)
    estimate = inverse_diagonal(L, 3.0, n_probes=150)
    assert np.abs(estimate / exact - 1).mean() < 0.05
    assert (estimate == inverse_diagonal(L, 3.0, n_probes=150)).all()
    assert (estimate != exact).any()


def test_order_keeps_the_matrix(monkeypatch):
    monkeypatch.setattr(spectral, "_ORDER_FROM", 10)
    L = laplacian(knn_graph(np.random.default_rng(0).normal(size=(50, 2)), 3))
    order, ordered = neighbours_together(L)
    assert sorted(order) == list(range(50))
    assert (ordered.toarray() == L.toarray()[np.ix_(order, order)]).all()
    assert largest_component(ordered) == largest_component(L) <= 50


def test_probes_share_no_bits_with_the_users_numbers():
    n = 2000
    users = np.random.default_rng(0).uniform(size=(n, 2))
    probes = random_signs(own_generator(0, 1), n, 4)
    assert set(np.unique(probes)) == {-1.0, 1.0}
    correlation = np.corrcoef(users.T, probes.T)[:2, 2:]
    assert np.abs(correlation).max() < 0.1
