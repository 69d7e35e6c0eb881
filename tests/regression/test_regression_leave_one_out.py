"""Leave-one-out errors in closed form, against leaving each node out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from trellis.regression import knn_graph, laplacian, leave_one_out, normalise
from trellis.regression.leave_one_out import learn, residuals

NAN = np.nan


def some_graphs(n, count, rng):
    places = [rng.uniform(size=(n, 2)) for _ in range(count)]
    return [laplacian(normalise(knn_graph(p, min(3, n - 1)))) for p in places]


def left_out(laplacians, y, R, a, rho, gamma, alpha=1.0):
    """Mean and variance of each known node given all other known ones, by dense matrices."""
    n = len(y)
    M = sum(g * L.toarray() for g, L in zip(gamma, laplacians, strict=True))
    K = np.eye(n) + M
    mean, covariance = np.linalg.solve(K, R @ a + M @ (R @ rho)), np.linalg.inv(2 * alpha * K)
    known = np.flatnonzero(~np.isnan(y))
    found = []
    for i in known:
        o = known[known != i]
        gain = covariance[i, o] @ np.linalg.inv(covariance[np.ix_(o, o)])
        found.append(
            (mean[i] + gain @ (y[o] - mean[o]), covariance[i, i] - gain @ covariance[o, i])
        )
    return np.array(found).T


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 25),
    bases=st.integers(1, 3),
    graphs=st.integers(1, 2),
    share=st.sampled_from([1.0, 0.6]),
    smooth=st.booleans(),
    criterion=st.sampled_from(["leave-one-out", "pseudo-likelihood"]),
)
def test_residuals_are_those_of_leaving_each_out(seed, n, bases, graphs, share, smooth, criterion):
    rng = np.random.default_rng(seed)
    laplacians, R = some_graphs(n, graphs, rng), rng.normal(size=(n, bases))
    y = R[:, 0] + rng.normal(size=n)
    if share < 1:
        y[rng.permutation(n)[: int((1 - share) * n)]] = NAN
    found = learn(laplacians, y, R, criterion=criterion, smooth_bases=smooth)
    assert found.a.sum() == pytest.approx(1) and (found.a >= 0).all() and (found.rho >= 0).all()
    assert smooth or not found.rho.any()
    mean, variance = left_out(laplacians, y, R, found.a, found.rho, found.gamma, found.alpha)
    known = ~np.isnan(y)
    np.testing.assert_allclose(found.residuals, y[known] - mean, atol=2e-4)
    np.testing.assert_allclose(1 / (2 * found.alpha * found.precisions), variance, rtol=1e-3)
    assert found.error == pytest.approx(np.mean((y[known] - mean) ** 2), rel=1e-3)
    alone = (y - R @ found.alone)[known]
    assert found.error_alone == pytest.approx(np.mean(alone**2), rel=1e-3)


def test_neighbours_share_two_base_predictions_at_most():
    """A base that says a fifth of what it should: at few nodes, rho of hundreds would fit best."""
    rng = np.random.default_rng(5)
    n = 40
    R = rng.normal(size=(n, 2))
    y = 5 * R[:, 0] + rng.normal(size=n)
    laplacians = some_graphs(n, 1, rng)
    found = learn(laplacians, y, R)
    assert found.rho.sum() == pytest.approx(2) and (found.rho >= 0).all()
    assert found.error < found.error_alone

    def error(parameters):  # along the bound, independently
        share, turn = np.sin(parameters) ** 2
        a, rho = np.array([share, 1 - share]), 2 * np.array([turn, 1 - turn])
        g = found.gamma[0]
        K_diagonal = 1 + g * laplacians[0].diagonal()
        e = (y + g * (laplacians[0] @ (y - R @ rho)) - R @ a) / K_diagonal
        return np.mean(e**2) + np.mean((y - R @ a) ** 2)

    best = min(minimize(error, s, method="Nelder-Mead").fun for s in rng.normal(size=(8, 2)))
    assert found.error + np.mean((y - R @ found.a) ** 2) <= best * (1 + 1e-5)


def test_no_parameters_do_better_than_those_found():
    """Independently: a general search over a, rho and gamma, from several starts."""
    rng = np.random.default_rng(0)
    n = 60
    laplacians, R = some_graphs(n, 1, rng), rng.normal(size=(n, 2))
    y = np.linalg.solve(np.eye(n) + 4 * laplacians[0].toarray(), R[:, 0] + R[:, 1])
    y += 0.1 * rng.normal(size=n)
    found = learn(laplacians, y, R)

    def error(parameters):
        gamma, rho, share = np.exp(parameters[0]), parameters[1:3] ** 2, parameters[3]
        a = np.array([np.sin(share) ** 2, np.cos(share) ** 2])
        L = laplacians[0]
        K_diagonal = 1 + gamma * L.diagonal()
        e = (y + gamma * (L @ y) - R @ a - gamma * (L @ (R @ rho))) / K_diagonal
        return np.mean(e**2) + np.mean((y - R @ a) ** 2)  # with neighbours and without

    starts = rng.normal(size=(8, 4))
    best = min(
        minimize(error, s, method="Nelder-Mead", options={"maxiter": 4000}).fun for s in starts
    )
    assert found.error + np.mean((y - R @ found.a) ** 2) <= best * (1 + 1e-5)


def test_where_numbers_begin_does_not_matter():
    rng = np.random.default_rng(1)
    laplacians, R = some_graphs(50, 2, rng), rng.normal(size=(50, 2))
    y = R[:, 0] + rng.normal(size=50)
    y[:9] = NAN
    a, b = learn(laplacians, y, R), learn(laplacians, y + 1e5, R + 1e5)
    np.testing.assert_allclose(a.gamma, b.gamma, rtol=1e-3)
    np.testing.assert_allclose(a.residuals, b.residuals, atol=1e-3)


def test_a_graph_that_says_nothing_gets_no_weight():
    rng = np.random.default_rng(2)
    L, r = some_graphs(300, 1, rng)[0], rng.normal(size=(300, 1))
    y = r[:, 0] + 0.5 * rng.normal(size=300) + 0.5 * (L @ rng.normal(size=300))
    found = learn([L], y, r)
    assert found.gamma[0] < 0.05
    assert found.error <= found.error_alone


def test_perfect_base_predictions_have_finite_precision():
    rng = np.random.default_rng(3)
    L, y = some_graphs(30, 1, rng)[0], rng.normal(size=30)
    for criterion in ("leave-one-out", "pseudo-likelihood"):
        found = learn([L], y, y[:, None], criterion=criterion)
        assert np.isfinite(found.alpha) and found.alpha > 0
        assert np.abs(found.residuals).max() < 1e-6


def test_residuals_of_a_model_that_was_learnt_otherwise():
    rng = np.random.default_rng(4)
    laplacians, R = some_graphs(20, 2, rng), rng.normal(size=(20, 1))
    y, gamma, one = rng.normal(size=20), np.array([0.7, 2.0]), np.ones(1)
    terms = residuals(laplacians, y, R[:, 0], gamma)
    mean, variance = left_out(laplacians, y, R, one, np.zeros(1), gamma)
    np.testing.assert_allclose(terms.y, y - mean, atol=1e-9)
    np.testing.assert_allclose(0.5 / terms.precision, variance)


def test_a_part_of_a_large_graph_is_learnt_from(monkeypatch):
    """Edges that lead out of it are left out, so that nothing pulls its border to zero."""
    rng = np.random.default_rng(5)
    n = 1200
    place = rng.uniform(size=(n, 2))
    L = laplacian(normalise(knn_graph(place)))
    truth = 50 + np.sin(5 * place[:, 0]) + 0.1 * rng.normal(size=n)
    y = np.where(rng.uniform(size=n) < 0.3, truth, NAN)
    r = np.full((n, 1), 50.0)
    whole = learn([L], y, r)
    monkeypatch.setattr(leave_one_out, "_LARGEST_PART", 600)
    part = learn([L], y, r)
    assert len(part.residuals) < 0.8 * len(whole.residuals)
    assert part.error == pytest.approx(whole.error, rel=0.2)
    monkeypatch.setattr(leave_one_out, "is_affordable", lambda L: False)
    known = learn([L], y, r)
    assert known.error < 0.5 * known.error_alone
