"""Network lasso against independent solvers on tiny problems."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from trellis import DataError
from trellis.regression import KNN, NetworkLasso, geometric_median, knn_graph


def problem(seed, n=6, d=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = 2 + X[:, 0] + np.where(np.arange(n) < n // 2, 0.0, 4.0) + 0.1 * rng.standard_normal(n)
    W = np.triu(rng.uniform(0.2, 1.5, (n, n)) * (rng.random((n, n)) < 0.6), 1)
    return X, y, W + W.T


def objective(x, X, y, W, lam, mu, link):
    A = np.column_stack([X, np.ones(len(X))])
    x = x.reshape(A.shape)
    i, j = np.nonzero(np.triu(W, 1))
    d = np.linalg.norm(x[i] - x[j], axis=1)
    fit = ((A * x).sum(1) - y) ** 2
    return fit.sum() + mu * (x[:, :-1] ** 2).sum() + lam * (W[i, j] * link(d)).sum()


def smooth_optimum(X, y, W, lam, mu):
    """The convex problem with d replaced by √(d² + δ²), δ going to 0: at most λ Σw δ too large."""
    x = np.zeros(len(X) * (X.shape[1] + 1))
    for delta in (1.0, 0.1, 1e-2, 1e-3, 1e-5):
        link = lambda d, delta=delta: np.sqrt(d**2 + delta**2)  # noqa: E731
        found = minimize(objective, x, (X, y, W, lam, mu, link), method="L-BFGS-B",
                         options={"maxiter": 5000, "maxfun": 200_000, "ftol": 1e-15})  # fmt: skip
        x = found.x
    return objective(x, X, y, W, lam, mu, lambda d: d)


@pytest.mark.parametrize(("seed", "lam"), [(0, 0.05), (1, 0.5), (2, 0.5), (3, 5.0)])
def test_convex_optimum(seed, lam):
    X, y, W = problem(seed, n=4, d=1)
    model = NetworkLasso(lam, 0.5, max_iter=20_000, tol=1e-9).fit(X, y, graph=W)
    ours = objective(model.coef_.ravel(), X, y, W, lam, 0.5, lambda d: d)
    assert ours == pytest.approx(model.objective_, rel=1e-12)
    assert ours == pytest.approx(smooth_optimum(X, y, W, lam, 0.5), rel=1e-4)
    assert model.converged_


@pytest.mark.parametrize("seed", range(3))
def test_convex_optimum_has_a_certificate(seed):
    """Forces v_jk on the edges, none above λw, give a lower bound, here of a smoothed problem's.

    Σ_i min_x (a_iᵀx − y_i)² + xᵀRx + q_iᵀx, where q_i is the sum of forces at i, is in closed form.
    """
    X, y, W = problem(seed, n=30)
    lam, mu = 0.3, 0.5
    A, R = np.column_stack([X, np.ones(30)]), np.diag([mu, mu, 0.0])
    i, j = np.nonzero(np.triu(W, 1))
    c = lam * W[i, j]
    D = np.zeros((len(i), 30))
    D[range(len(i)), i], D[range(len(i)), j] = 1, -1

    def smooth(x, delta):
        x = x.reshape(A.shape)
        apart, r = D @ x, (A * x).sum(1) - y
        d = np.sqrt((apart**2).sum(1) + delta**2)
        slope = 2 * r[:, None] * A + 2 * x @ R + D.T @ ((c / d)[:, None] * apart)
        return r @ r + np.einsum("ij,jk,ik->", x, R, x) + c @ d, slope.ravel()

    x = np.zeros(A.size)
    for delta in (1.0, 0.1, 1e-2, 1e-3, 1e-4):
        x = minimize(smooth, x, (delta,), jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "maxcor": 30, "ftol": 1e-15}).x  # fmt: skip
    apart = D @ x.reshape(A.shape)
    v = (c / np.sqrt((apart**2).sum(1) + delta**2))[:, None] * apart
    M, b = A[:, :, None] * A[:, None, :] + R, y[:, None] * A - 0.5 * D.T @ v
    bound = (y**2).sum() - (b * np.linalg.solve(M, b[:, :, None])[:, :, 0]).sum()
    model = NetworkLasso(lam, mu, max_iter=20_000, tol=1e-9).fit(X, y, graph=W)
    assert bound <= model.objective_ * (1 + 1e-10)
    assert model.objective_ <= bound * (1 + 1e-6)


def test_no_pull_is_a_fit_for_each_node():
    X, y, W = problem(1)
    model = NetworkLasso(0.0, 0.5, max_iter=500, tol=1e-10).fit(X, y, graph=W)
    # The unpunished intercept takes everything.
    np.testing.assert_allclose(model.coef_, np.column_stack([0 * X, y]), atol=1e-5)


def test_strong_pull_is_one_ridge_regression():
    X, y, W = problem(2)
    W = np.ones((6, 6)) - np.eye(6)
    model = NetworkLasso(50.0, 0.5, max_iter=20_000, tol=1e-9).fit(X, y, graph=W)
    A = np.column_stack([X, np.ones(6)])
    one = np.linalg.solve(A.T @ A + 3 * np.diag([1, 1, 0]), A.T @ y)  # mu at each of six nodes
    np.testing.assert_allclose(model.coef_, np.tile(one, (6, 1)), atol=1e-5)


@pytest.mark.parametrize("convex", [True, False])
def test_small_targets_do_not_stop_it_at_once(convex):
    """With y, λ and ε in other units the problem is the same, and so are the iterates."""
    X, y, W = problem(1, n=30)
    models = []
    for unit in (0.1, 1e-6):
        lam = 5.0 * (unit if convex else unit**2)
        model = NetworkLasso(lam, convex=convex, rho=2.0, epsilon=0.01 * unit)
        models.append(model.fit(X, unit * y, graph=W))
    large, small = models
    assert small.n_iter_ == large.n_iter_ > 20
    assert small.objective_ == pytest.approx(1e-10 * large.objective_, rel=1e-6)


def test_convergence_is_no_illusion_with_features_in_degrees():
    """Parameters are then about 0.01: once they were less than the absolute bound."""
    X, y, W = problem(2, n=30)
    model = NetworkLasso(1.0, fit_intercept=False).fit(X + 120, y / 3, graph=W)
    assert model.n_iter_ > 5
    best = NetworkLasso(1.0, fit_intercept=False, tol=1e-9, max_iter=20_000)
    best.fit(X + 120, y / 3, graph=W)
    assert model.objective_ < 1.1 * best.objective_


@pytest.mark.parametrize("seed", range(2))
def test_nonconvex_beats_many_searches(seed):
    X, y, W = problem(seed, n=4, d=1)
    lam, eps = 0.2, 0.5
    model = NetworkLasso(lam, convex=False, search=True, epsilon=eps, max_iter=3000, tol=1e-8)
    model.fit(X, y, graph=W)
    link = lambda d: np.log1p(d / eps)  # noqa: E731
    assert objective(model.coef_.ravel(), X, y, W, lam, 0.5, link) == pytest.approx(
        model.objective_
    )
    rng = np.random.default_rng(seed)
    starts = [model.coef_.ravel(), *(2 * rng.standard_normal((4, 8)))]
    found = [minimize(objective, s, (X, y, W, lam, 0.5, link), "Nelder-Mead").fun for s in starts]
    assert model.objective_ <= min(found) + 0.02 * abs(min(found))


@given(st.floats(0.0, 5.0), st.floats(0.001, 3.0))
def test_nonconvex_step_is_the_minimum_on_a_grid(d0, c):
    model = NetworkLasso(convex=False, search=True, epsilon=0.3)
    z = model._pull(np.array([[d0, 0.0]]), np.zeros((1, 2)), np.array([c]), convex=False)
    d = np.linalg.norm(z[0] - z[1])
    cost = lambda d: c * np.log1p(d / 0.3) + 0.25 * (d0 - d) ** 2  # noqa: E731
    assert cost(d) <= cost(np.linspace(0, d0, 400)).min() + 1e-9


def test_the_best_iterate_is_kept():
    X, y, W = problem(3)
    values = [
        NetworkLasso(2.0, convex=False, search=False, max_iter=k, tol=0)
        .fit(X, y, graph=W)
        .objective_
        for k in (5, 20, 60)
    ]
    assert values == sorted(values, reverse=True)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 3))
def test_geometric_median(seed, k, p):
    rng = np.random.default_rng(seed)
    P, w = rng.integers(-2, 3, (2, k, p)).astype(float), rng.uniform(0.1, 2, (2, k))
    x = geometric_median(P, w, max_iter=2000, tol=1e-12)
    for points, weights, found in zip(P, w, x, strict=True):
        cost = lambda z, q=points, v=weights: v @ np.linalg.norm(q - z, axis=1)  # noqa: E731
        starts = [min(points, key=cost), np.average(points, axis=0, weights=weights)]
        best = min(minimize(cost, s, method="Nelder-Mead").fun for s in starts)
        assert cost(found) <= best + 1e-5


def test_prediction_takes_the_parameters_of_the_nearest():
    X, y, W = problem(0)
    coords = np.arange(6.0)[:, None]
    model = NetworkLasso(0.5, n_neighbors=1).fit(X, y, graph=csr_array(W), coords=coords)
    new = np.array([[0.3, -1.0], [2.0, 0.5]])
    A = np.column_stack([new, np.ones(2)])
    expected = (A * model.coef_[[4, 0]]).sum(1)
    np.testing.assert_allclose(model.predict(new, coords=[[4.2], [-3.0]]), expected)
    # Weights of neighbours far away do not underflow.
    far = NetworkLasso(0.5).fit(X, y, graph=W, coords=coords).predict(new, coords=[[4.2e5], [-3e5]])
    assert np.isfinite(far).all()


def test_inverse_weights_and_haversine():
    X, y, W = problem(5)
    coords = np.column_stack([np.linspace(38.2, 39.0, 6), np.full(6, -121.0)])
    model = NetworkLasso(0.5, metric="haversine", weight="inverse", n_neighbors=3)
    model.fit(X, y, graph=W, coords=coords)
    k = 5
    d = 6371.0088 * np.radians(abs(coords[:, 0] - coords[k, 0]))[[5, 4, 3]]
    x = geometric_median(model.coef_[None, [5, 4, 3]], 1 / (d[None] + 0.1))[0]
    found = model.predict(X[[k]], coords=coords[[k]])
    np.testing.assert_allclose(found, [np.append(X[k], 1.0) @ x], rtol=1e-6)


def test_scale_of_targets_is_that_of_lambda():
    X, y, W = problem(0)
    exact = {"max_iter": 20_000, "tol": 1e-10}
    a = NetworkLasso(5.0, y_scale=10.0, **exact).fit(X, y, graph=W)
    b = NetworkLasso(0.5, **exact).fit(X, y, graph=W)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


def test_chosen_features_without_intercept():
    X, y, W = problem(0)
    model = NetworkLasso(0.5, features=(1,), fit_intercept=False).fit(X, y, graph=W)
    assert model.coef_.shape == (6, 1)
    assert model.predict(X).shape == (6,)


def test_parameters_survive_cloning():
    model = clone(NetworkLasso(2.0, convex=False, search=True, features=(1,)))
    assert repr(model) == "NetworkLasso(lam=2.0, convex=False, search=True, features=(1,))"


def test_isolated_nodes_fit_themselves():
    X, y, W = problem(0)
    W[0], W[:, 0] = 0, 0
    model = NetworkLasso(5.0).fit(X, y, graph=W)
    assert model.coef_[0] @ np.append(X[0], 1.0) == pytest.approx(y[0], abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": -1.0}, "lam must be a number of at least 0, got -1.0"),
        ({"l2": 0.0}, "l2 must be a positive number, got 0.0"),
        ({"epsilon": 0.0}, "epsilon must be a positive number, got 0.0"),
        ({"y_scale": 0.0}, "y_scale must be a positive number, got 0.0"),
        ({"rho": "large"}, "rho must be 'auto' or a positive number, got 'large'"),
        ({"rho": -1.0}, "rho must be 'auto' or a positive number, got -1.0"),
        ({"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive integer, got 0"),
        ({"metric": "taxi"}, "metric must be 'euclidean', 'manhattan' or 'haversine', got 'taxi'"),
        ({"weight": "one"}, "weight must be 'exp' or 'inverse', got 'one'"),
        ({"features": (0, 7)}, "X has 2 columns, features names (0, 7)"),
    ],
)
def test_wrong_parameters(options, message):
    X, y, W = problem(0)
    with pytest.raises(DataError, match=re.escape(message)):
        NetworkLasso(**options).fit(X, y, graph=W)


def test_a_builder_makes_the_graph():
    X, y, _ = problem(0)
    model = NetworkLasso(graph=KNN(n_neighbors=2)).fit(X, y)
    given = NetworkLasso().fit(X, y, graph=knn_graph(X, 2))
    np.testing.assert_array_equal(model.coef_, given.coef_)
    with pytest.raises(DataError, match="no graph: pass graph=S"):
        NetworkLasso().fit(X, y)
    where = np.random.default_rng(1).random((6, 2))
    model = NetworkLasso(graph=KNN(n_neighbors=2)).fit(X, y, coords=where)
    given = NetworkLasso().fit(X, y, graph=knn_graph(where, 2), coords=where)
    np.testing.assert_array_equal(model.coef_, given.coef_)


def test_the_old_ways_work_for_one_release():
    X, y, W = problem(0)
    new = NetworkLasso(2.0, l2=0.3, tol=1e-5).fit(X, y, graph=W, coords=X)
    with pytest.warns(FutureWarning, match="mu is now called l2"):
        old = NetworkLasso(2.0, mu=0.3, tol=1e-5)
    with pytest.warns(FutureWarning, match=r"NetworkLasso.fit: give coords= by name"):
        old.fit(X, y, W, X)
    with pytest.warns(FutureWarning, match=r"NetworkLasso.predict: give coords= by name"):
        np.testing.assert_array_equal(old.predict(X, X), new.predict(X, coords=X))
    with pytest.warns(FutureWarning, match="is now called tol"):
        assert NetworkLasso(abs_tol=1e-2).tol == NetworkLasso(rel_tol=1e-3).tol == 1e-3


def test_wrong_input():
    X, y, W = problem(0)

    def refused(message, X, y, W, **more):
        with pytest.raises(DataError, match=re.escape(message)):
            NetworkLasso().fit(X, y, graph=W, **more)

    refused("X must have the shape (n, d) with n >= 1, got (6,)", X[:, 0], y, W)
    bad = X.copy()
    bad[3, 1] = np.nan
    refused("row 3 of X holds a NaN or an infinite value", bad, y, W)
    refused("y must have one number for each of the 6 rows, got (5,)", X, y[:5], W)
    endless = np.where(np.arange(6) == 2, np.inf, y)
    refused("1 of 6 targets are missing or infinite (the first in row 2)", X, endless, W)
    refused("the graph has 5 nodes but X has 6 rows", X, y, W[:5, :5])
    refused("is negative; similarities are at least 0", X, y, -W)
    refused("the graph is not symmetric", X, y, np.triu(W))
    refused("coords has 5 rows, X has 6", X, y, W, coords=X[:5])
    refused("X has numbers beyond 1e+70", 1e100 * X, y, W, coords=X)
    refused("y times y_scale has numbers beyond 1e+70", X, 1e300 * y, W)
    refused("lam times graph has numbers beyond 1e+70", X, y, 1e300 * W)
    refused("coords are beyond 1e+150", X, y, W, coords=1e160 * X)
    for places in (np.zeros((6, 3)), np.full((6, 2), 91.0)):
        with pytest.raises(DataError, match=re.escape("two columns, latitude (-90 to 90)")):
            NetworkLasso(metric="haversine").fit(X, y, graph=W, coords=places)
    with pytest.raises(NotFittedError, match="this NetworkLasso is not fitted yet"):
        NetworkLasso().predict(X)
    model = NetworkLasso().fit(X, y, graph=W, coords=X)
    with pytest.raises(DataError, match=re.escape("coords has shape (6, 1), expected (6, 2)")):
        model.predict(X, coords=X[:, :1])
    with pytest.raises(DataError, match="X gives 2 parameters a node, the model has 3"):
        model.predict(X[:, :1], coords=X)
    with pytest.raises(DataError, match=r"points and weights have shapes \(2, 2\) and \(2,\)"):
        geometric_median(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(DataError, match="weights must not be negative, and not all 0"):
        geometric_median(np.zeros((1, 2, 1)), np.zeros((1, 2)))
