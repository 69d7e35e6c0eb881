"""Gaussian CRFs as published: a joint search finds the same, dense matrices predict the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

from trellis.errors import DataError
from trellis.regression import GCRF, KNN, check_graph, knn_graph, laplacian, likelihood, normalise
from trellis.regression.likelihood import (
    Many,
    dense_profile,
    search,
    search_factorised,
    search_stochastic,
)
from trellis.regression.spectral import solve


def published(base="precomputed", **options):
    """A model as in the literature."""
    return GCRF(base, observed=False, **{"base_predictions": "in-sample"} | options)


def field(n, seed, alpha=2.0, gamma=3.0, k=4):
    """Draw a graph, base predictions and targets from the model itself."""
    rng = np.random.default_rng(seed)
    S = knn_graph(rng.uniform(size=(n, 2)) * 10, k)
    r = rng.normal(size=n) * 2
    K = np.eye(n) + gamma * laplacian(normalise(S)).toarray()
    noise = np.linalg.cholesky(np.linalg.inv(2 * alpha * K)) @ rng.normal(size=n)
    return S, r, np.linalg.solve(K, r) + noise


def minus_log_likelihood(parameters, L, y, r):
    alpha, beta = np.exp(parameters)
    Q = alpha * np.eye(len(y)) + beta * L
    e = y - np.linalg.solve(Q, alpha * r)
    return e @ Q @ e - 0.5 * np.linalg.slogdet(Q)[1]


@pytest.mark.parametrize("seed", range(3))
def test_one_dimensional_search_is_the_joint_optimum(seed):
    S, r, y = field(60, seed)
    model = published("precomputed").fit(r, y, graph=S)
    L = laplacian(normalise(S)).toarray()
    joint = minimize(
        minus_log_likelihood,
        [0.0, 0.0],
        (L, y, r),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000},
    )
    assert np.log([model.alpha_, model.beta_]) == pytest.approx(joint.x, abs=1e-5)
    full = -joint.fun - 30 * np.log(np.pi)
    assert model.log_likelihood_ == pytest.approx(full, abs=1e-8)


def test_mean_and_variance_are_those_of_the_gaussian():
    S, r, y = field(80, 5)
    model = published("precomputed").fit(r, y, graph=S)
    S2, r2, _ = field(50, 6)
    mean, std = model.predict(r2, graph=S2, return_std=True)
    Q = model.alpha_ * np.eye(50) + model.beta_ * laplacian(normalise(S2)).toarray()
    np.testing.assert_allclose(mean, np.linalg.solve(Q, model.alpha_ * r2), atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(np.linalg.inv(2 * Q)), atol=1e-9)
    assert (model.predict(r2, graph=S2) == mean).all()


def test_scaling_the_graph_changes_nothing():
    S, r, y = field(50, 1)
    a, b = (published("precomputed").fit(r, y, graph=c * S) for c in (1, 1000))
    assert a.beta_ == pytest.approx(b.beta_, rel=1e-6)


def test_exact_and_stochastic_agree():
    S, r, y = field(400, 2)
    exact = published("precomputed", method="exact").fit(r, y, graph=S)
    sampled = published("precomputed", method="stochastic", random_state=0).fit(r, y, graph=S)
    assert sampled.alpha_ == pytest.approx(exact.alpha_, rel=0.03)
    assert sampled.beta_ == pytest.approx(exact.beta_, rel=0.06)
    assert sampled.log_likelihood_ == pytest.approx(exact.log_likelihood_, abs=3)
    assert sampled.beta_ != exact.beta_
    other = published("precomputed", method="stochastic", random_state=0).fit(r, y, graph=S)
    assert other.beta_ == sampled.beta_


def test_the_path_is_chosen_by_size(monkeypatch):
    S, r, y = field(60, 0)
    exact = published("precomputed").fit(r, y, graph=S)
    monkeypatch.setattr(likelihood, "_DENSE_UP_TO", 20)
    L = laplacian(normalise(S))
    factorised = search_factorised(L, y, r)
    model = published("precomputed", random_state=0).fit(r, y, graph=S)
    assert model.alpha_ == factorised.alpha
    assert model.alpha_ == pytest.approx(exact.alpha_, rel=1e-6)
    monkeypatch.setattr(likelihood, "is_affordable", lambda L: False)
    found = search_stochastic(L, y, r)
    model = published("precomputed", random_state=0).fit(r, y, graph=S)
    assert model.alpha_ == found.alpha != exact.alpha_


@pytest.mark.parametrize("seed", range(4))
def test_sparse_factors_and_eigenvalues_find_the_same(seed):
    S, r, y = field(200, seed, gamma=[0.0, 0.3, 3.0, 40.0][seed])
    L = laplacian(normalise(S))
    eigen, sparse = search(dense_profile(L, y, r)), search_factorised(L, y, r)
    assert sparse.log_likelihood == pytest.approx(eigen.log_likelihood, abs=1e-7)
    assert sparse.gamma == pytest.approx(eigen.gamma, rel=1e-3, abs=1e-6)
    assert search_factorised(L, y, y).gamma == 0  # a perfect fit needs no neighbours


def test_useless_graph_gets_no_weight():
    S, r, _ = field(100, 0)
    # The targets differ between neighbours more than the base predictions do.
    y = r + 0.5 * (laplacian(normalise(S)) @ r)
    model = published("precomputed").fit(r, y, graph=S)
    assert model.beta_ == 0
    assert (model.predict(r, graph=S) == r).all()
    assert model.alpha_ == pytest.approx(50 / np.sum((y - r) ** 2))


def test_perfect_base_predictions_are_capped():
    S, _, y = field(50, 0)
    model = published("precomputed").fit(y, y, graph=S)
    mean, std = model.predict(y, graph=S, return_std=True)
    assert np.isfinite(model.alpha_)
    np.testing.assert_allclose(mean, y)
    np.testing.assert_allclose(std, 1e-5 * y.std(), rtol=1e-6)
    assert np.isfinite(model.log_likelihood_)


def test_isolated_nodes_keep_the_base_prediction():
    S, r, y = field(60, 3)
    dense = S.toarray()
    dense[7], dense[:, 7] = 0, 0
    model = published("precomputed").fit(r, y, graph=dense)
    mean, std = model.predict(r, graph=dense, return_std=True)
    assert model.beta_ > 0
    assert mean[7] == r[7]
    assert std[7] == pytest.approx(np.sqrt(1 / (2 * model.alpha_)))
    alone = published("precomputed").fit(r, y, graph=np.zeros((60, 60)))
    assert (alone.predict(r, graph=np.zeros((60, 60))) == r).all()


def test_gradient_of_several_graphs_and_bases():
    S, r, y = field(30, 0)
    S2, r2, _ = field(30, 1)
    laplacians = [laplacian(normalise(g)) for g in (S, S2)]
    many = Many(laplacians, y, np.column_stack([r, r2, y**2]))
    at = np.array([0.7, 0.2, 0.1, 1.3, 0.4])
    _, gradient = many.value_and_gradient(at)
    numeric = approx_fprime(at, lambda p: many.value_and_gradient(p)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)
    alpha, beta = at[:1], at[3:4]
    one = Many(laplacians[:1], y, r[:, None])
    value, _ = one.value_and_gradient(np.concatenate([alpha, beta]))
    dense = laplacians[0].toarray()
    assert value == pytest.approx(minus_log_likelihood(np.log([0.7, 1.3]), dense, y, r))


def test_several_reduce_to_one():
    S, r, y = field(80, 4)
    noise = np.random.default_rng(9).normal(size=80) * 100
    one = published("precomputed").fit(r, y, graph=S)
    other = check_graph(np.roll(np.eye(80), 1, 0) + np.roll(np.eye(80), -1, 0))  # means nothing
    many = published("precomputed").fit(np.column_stack([r, noise]), y, graph=[S, other])
    assert many.alpha_[1] < 1e-3 * many.alpha_[0]
    assert many.alpha_[0] == pytest.approx(one.alpha_, rel=0.1)
    assert many.beta_[0] == pytest.approx(one.beta_, rel=0.2)
    assert many.log_likelihood_ >= one.log_likelihood_ - 1e-4
    X2 = np.column_stack([r, noise])
    mean, std = many.predict(X2, graph=[S, other], return_std=True)
    Q = many.alpha_.sum() * np.eye(80)
    for beta, graph in zip(many.beta_, (S, other), strict=True):
        Q += beta * laplacian(normalise(graph)).toarray()
    np.testing.assert_allclose(mean, np.linalg.solve(Q, X2 @ many.alpha_), atol=1e-8)
    np.testing.assert_allclose(std**2, np.diag(np.linalg.inv(2 * Q)), atol=1e-8)


def test_sampled_value_of_several_graphs(monkeypatch):
    S, r, y = field(100, 4)
    laplacians = [laplacian(normalise(g)) for g in (S, field(100, 5)[0])]
    R = np.column_stack([r, np.roll(r, 1)])
    at = np.array([0.7, 0.2, 1.3, 0.4])
    exact, _ = Many(laplacians, y, R).value_and_gradient(at)
    monkeypatch.setattr(likelihood, "_DENSE_UP_TO", 20)
    assert Many(laplacians, y, R).value(at) == pytest.approx(exact, abs=1e-8)
    monkeypatch.setattr(likelihood, "is_affordable", lambda L: False)
    assert Many(laplacians, y, R).value(at) == pytest.approx(exact, abs=2)


def test_several_on_a_large_graph(monkeypatch):
    S, r, y = field(100, 4)
    R = np.column_stack([r, np.roll(r, 1)])
    exact = published("precomputed").fit(R, y, graph=S)
    monkeypatch.setattr(likelihood, "_DENSE_UP_TO", 20)
    factorised = published("precomputed").fit(R, y, graph=S)
    assert factorised.log_likelihood_ == pytest.approx(exact.log_likelihood_, abs=1e-3)
    monkeypatch.setattr(likelihood, "is_affordable", lambda L: False)
    sampled = published("precomputed").fit(R, y, graph=S)
    assert sampled.alpha_[0] == pytest.approx(exact.alpha_[0], rel=0.15)
    assert sampled.beta_[0] == pytest.approx(exact.beta_[0], rel=0.2)


@pytest.mark.parametrize("base", [[], (), np.zeros(0)])
def test_a_list_of_no_base_models(base):
    with pytest.raises(DataError, match="base is a list without a model; give one at least"):
        published(base).fit(np.zeros((3, 1)), np.arange(3.0), graph=np.ones((3, 3)) - np.eye(3))


@pytest.mark.parametrize("how", ["in-sample", "cv"])
def test_what_a_base_model_refuses_is_a_data_error(how):
    S, words = np.ones((4, 4)) - np.eye(4), np.array([["a"], ["b"], ["c"], ["d"]])
    model = published(LinearRegression(), base_predictions=how, cv=2)
    with pytest.raises(DataError, match="the base model LinearRegression refuses the data: "):
        model.fit(words, np.arange(4.0), graph=S)
    model.fit(np.arange(4.0)[:, None], np.arange(4.0) ** 2, graph=S)
    with pytest.raises(DataError, match="refuses the data: "):
        model.predict(words, graph=S)


def test_base_models_are_fitted_and_smoothed():
    rng = np.random.default_rng(0)
    where, X = rng.uniform(size=(300, 2)), rng.normal(size=(300, 2))
    y = X[:, 0] + 3 * np.sin(5 * where[:, 0]) + 0.1 * rng.normal(size=300)
    S = knn_graph(where)
    model = published(LinearRegression()).fit(X, y, graph=S)
    base = LinearRegression().fit(X, y).predict(X)
    L = laplacian(normalise(S))
    np.testing.assert_allclose(
        model.predict(X, graph=S), solve(L, model.beta_ / model.alpha_, base)
    )
    residual = y - model.predict(X, graph=S)
    assert model.score(X, y, graph=S) == pytest.approx(1 - residual @ residual / (300 * y.var()))
    both = published([LinearRegression(), None]).fit(X, y, graph=S)
    assert both.alpha_.shape == (4,)  # None is three
    assert len(both.bases_) == 4


def test_out_of_fold_predictions_calibrate_the_intervals():
    rng = np.random.default_rng(1)
    n = 400
    X = rng.normal(size=(2 * n, 4))
    rough = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=2 * n)
    where = rng.uniform(size=(2 * n, 2))
    graphs = [knn_graph(where[:n]), knn_graph(where[n:])]
    y = [
        solve(laplacian(normalise(S)), 2.0, rough[i * n : (i + 1) * n])
        for i, S in enumerate(graphs)
    ]
    covered = {}
    for kind in ("in-sample", "cv"):
        forest = RandomForestRegressor(15, random_state=0)
        model = published(forest, base_predictions=kind).fit(X[:n], y[0], graph=graphs[0])
        mean, std = model.predict(X[n:], graph=graphs[1], return_std=True)
        covered[kind] = np.mean(np.abs(y[1] - mean) < 1.6449 * std)
    assert 0.85 <= covered["cv"] <= 0.95
    assert covered["in-sample"] < 0.8


def test_calibration_fits_the_training_residuals():
    S, r, y = field(200, 3)
    plain = published("precomputed").fit(r, y, graph=S)
    scaled = published("precomputed", calibrate=True).fit(r, y, graph=S)
    mean, std = plain.predict(r, graph=S, return_std=True)
    mean2, std2 = scaled.predict(r, graph=S, return_std=True)
    assert plain.std_scale_ == 1
    assert (mean == mean2).all()
    np.testing.assert_allclose(std2, scaled.std_scale_ * std)
    assert np.mean(np.abs(y - mean) < 1.6449 * std2) == pytest.approx(0.9, abs=0.006)


def test_least_error():
    S, r, y = field(150, 3)
    model = published("precomputed", criterion="error").fit(r, y, graph=S)
    L = laplacian(normalise(S))

    def error(gamma):
        return np.sum((y - solve(L, gamma, r)) ** 2)

    gamma = model.beta_ / model.alpha_
    assert error(gamma) < min(error(gamma * 1.01), error(gamma / 1.01), error(0.0))
    e = y - solve(L, gamma, r)
    assert model.alpha_ == pytest.approx(75 / (e @ e + gamma * e @ (L @ e)))
    assert published("precomputed", criterion="error").fit(y, y, graph=S).beta_ == 0
    with pytest.raises(DataError, match="one base model and one graph"):
        published("precomputed", criterion="error").fit(r, y, graph=[S, S])


def test_scikit_learn_manners():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=120)
    model = published(LinearRegression(), graph=KNN(n_neighbors=3))
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    assert repr(clone(model).graph) == "KNN(n_neighbors=3)"
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_profile_is_the_definition():
    S, r, y = field(40, 8)
    L = laplacian(normalise(S))
    gammas = np.array([0.0, 1e-4, 1.0, 50.0])
    sums, log_dets = dense_profile(L, y, r)(gammas)
    for gamma, total, log_det in zip(gammas, sums, log_dets, strict=True):
        K = np.eye(40) + gamma * L.toarray()
        assert total == pytest.approx(y @ K @ y - 2 * y @ r + r @ np.linalg.solve(K, r))
        assert log_det == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-9)
    assert search(dense_profile(L, y, r)).gamma > 0


GOOD = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
R3 = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(R3, [1, np.nan, 2], graph=GOOD), "1 of 3 targets .* row 1"),
        (lambda m: m.fit(R3, [2, 2, 2], graph=GOOD), "all targets are 2"),
        (lambda m: m.fit(R3, [1, 2], graph=GOOD), "one number for each of the 3 rows"),
        (lambda m: m.fit(R3, ["a", "b", "c"], graph=GOOD), "targets are not numbers"),
        (lambda m: m.fit(R3[:2], [1, 2], graph=GOOD), "3 nodes but X has 2 rows"),
        (lambda m: m.fit(R3, [1, 2, 3]), "no graph"),
        (lambda m: m.fit(R3, [1, 2, 3], graph=np.triu(GOOD)), "not symmetric"),
        (lambda m: m.fit(R3, [1, 2, 3], graph=-GOOD), "negative"),
        (lambda m: m.fit(R3 * np.nan, [1, 2, 3], graph=GOOD), "base prediction of row 0"),
        (lambda m: m.fit(np.empty((0, 1)), [], graph=GOOD), "X has no rows"),
        (lambda m: m.fit(object(), [1], graph=GOOD), "X is of type object; expected a table"),
        (lambda m: m.fit(np.array(3.0), [1], graph=GOOD), "X is of type ndarray; expected a table"),
        (lambda m: m.set_params(base="svm").fit(R3, [1, 2, 3], graph=GOOD), "base must be"),
        (
            lambda m: m.set_params(base_predictions="loo").fit(R3, [1, 2, 3], graph=GOOD),
            "base_predictions must be",
        ),
        (
            lambda m: m.set_params(criterion="mse").fit(R3, [1, 2, 3], graph=GOOD),
            "criterion must be",
        ),
        (
            lambda m: m.set_params(method="dense").fit(R3, [1, 2, 3], graph=GOOD),
            "method must be",
        ),
        (
            lambda m: m.fit(R3, [1, 2, 4], graph=GOOD).predict(R3, graph=[GOOD, GOOD]),
            r"1 graph\(s\), got 2",
        ),
        (
            lambda m: m.fit(R3, [1, 2, 4], graph=GOOD).predict(np.eye(3), graph=GOOD),
            r"1 base prediction\(s\), got 3",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(DataError, match=message):
        call(published("precomputed"))
