"""Predictions of Gaussian CRFs given what was observed, against dense conditional Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from trellis.errors import DataError
from trellis.regression import GCRF, KNN, knn_graph, laplacian, normalise, spectral
from trellis.regression import conditional as conditional_module
from trellis.regression.training_graphs import TrainingGraphs

NAN = np.nan
CHAIN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def a_model(alpha, beta, scale=1.0, rho=None, factors=None):
    """A model as if it had learnt these; with `factors` its graphs have a scale of their own."""
    model = GCRF("precomputed", observed=factors is not None, random_state=0)
    model.alpha_, model.beta_, model.std_scale_, model.bases_ = alpha, beta, scale, []
    model.std_power_, model.std_limit_ = 1.0, np.inf
    model.rho_ = np.zeros(np.size(alpha)) if rho is None else rho
    model._nodes = None
    B, own = np.size(beta), factors is not None
    scales = np.ones(B) if factors is None else factors
    model._graphs = TrainingGraphs(1, scales, (None,) * B, None, own, False)
    return model


def a_graph(n, rng, density=0.3):
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return upper + upper.T


def joint(model, R, graphs, factors=None):
    """Mean and covariance of all nodes, from the definition."""
    alpha, beta = np.atleast_1d(model.alpha_), np.atleast_1d(model.beta_)
    R = R.reshape(len(R), -1)
    Q, b = alpha.sum() * np.eye(len(R)), R @ alpha
    for i, graph in enumerate(graphs):
        total = graph.sum()
        factor = (len(R) / total if total else 1.0) if factors is None else factors[i]
        smoothing = beta[i] * factor * (np.diag(graph.sum(axis=1)) - graph)
        Q += smoothing
        b += smoothing @ R @ model.rho_
    return np.linalg.solve(Q, b), np.linalg.inv(2 * Q)


def conditional(mean, covariance, y):
    """The textbook's formula, which inverts the covariance of what is known."""
    u, o = np.isnan(y), ~np.isnan(y)
    gain = covariance[np.ix_(u, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
    m, v = y.copy(), np.zeros(len(y))
    m[u] = mean[u] + gain @ (y[o] - mean[o])
    v[u] = np.diag(covariance[np.ix_(u, u)] - gain @ covariance[np.ix_(o, u)])
    return m, v


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 14),
    seed=st.integers(0, 10**6),
    bases=st.integers(1, 3),
    graphs=st.integers(1, 3),
    known=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    strength=st.sampled_from([0.0, 0.1, 3.0, 100.0]),
    own=st.booleans(),
)
def test_the_conditional_gaussian(n, seed, bases, graphs, known, strength, own):
    rng = np.random.default_rng(seed)
    factors, rho = (rng.uniform(0.5, 3, graphs), rng.uniform(0, 2, bases)) if own else (None, None)
    alpha, beta = rng.uniform(0.1, 2, bases), strength * rng.uniform(0.1, 2, graphs)
    if bases == graphs == 1:
        alpha, beta = float(alpha[0]), float(beta[0])
    model, R = a_model(alpha, beta, 1.0, rho, factors), rng.normal(size=(n, bases))
    S = [a_graph(n, rng) for _ in range(graphs)]
    y = np.where(rng.uniform(size=n) < known, 3 * rng.normal(size=n), NAN)
    mean, std = model.predict(R, graph=S, return_std=True, observed=y)
    expected, variance = conditional(*joint(model, R, S, factors), y)
    np.testing.assert_allclose(mean, expected, atol=1e-7)
    np.testing.assert_allclose(std**2, variance, atol=1e-7)
    assert (mean[~np.isnan(y)] == y[~np.isnan(y)]).all()
    assert (std[~np.isnan(y)] == 0).all() and (std[np.isnan(y)] > 0).all()
    assert (model.predict(R, graph=S, observed=y) == mean).all()


def test_what_is_known_is_as_a_node_that_its_base_model_is_certain_of():
    """Independently: one more base model, whose weight is huge at the known nodes, as a potential.

    alpha_i (y_i - v_i)^2 with alpha_i -> infinity fixes node i: sum(alpha) I becomes a diagonal.
    """
    rng = np.random.default_rng(3)
    n, alpha, beta = 40, 0.7, 2.5
    S, r = knn_graph(rng.uniform(size=(n, 2))), rng.normal(size=n)
    y = np.where(rng.uniform(size=n) < 0.4, rng.normal(size=n), NAN)
    known = ~np.isnan(y)
    weight = np.where(known, 1e9, 0.0)
    Q = np.diag(alpha + weight) + beta * laplacian(normalise(S)).toarray()
    fixed = np.linalg.solve(Q, alpha * r + weight * np.where(known, y, 0.0))
    mean, std = a_model(alpha, beta).predict(r, graph=S, observed=y, return_std=True)
    np.testing.assert_allclose(mean, fixed, atol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(np.diag(np.linalg.inv(2 * Q))), atol=1e-4)


def test_nothing_known_is_as_before():
    rng = np.random.default_rng(0)
    S, r = knn_graph(rng.uniform(size=(30, 2))), rng.normal(size=30)
    model = a_model(1.0, 2.0)
    before = model.predict(r, graph=S, return_std=True)
    after = model.predict(r, graph=S, return_std=True, observed=np.full(30, NAN))
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_all_known_is_what_was_given():
    y = np.array([5.0, -1.0, 2.0])
    mean, std = a_model(1.0, 2.0).predict(np.zeros(3), graph=CHAIN, return_std=True, observed=y)
    assert (mean == y).all() and (std == 0).all()
    mean[0] = 9.0
    assert y[0] == 5.0


def test_isolated_nodes():
    """One without neighbours keeps its base prediction; one among known nodes only is no such."""
    S = np.zeros((5, 5))
    S[0, 1] = S[1, 0] = S[1, 2] = S[2, 1] = 1.0
    model, r = a_model(1.0, 2.0), np.arange(5.0)
    y = np.array([4.0, NAN, 8.0, NAN, 7.0])
    mean, std = model.predict(r, graph=S, return_std=True, observed=y)
    weight = 2.0 * 5 / 4  # beta, over the average degree
    assert mean[1] == pytest.approx((r[1] + weight * (4.0 + 8.0)) / (1 + 2 * weight))
    assert std[1] == pytest.approx(np.sqrt(0.5 / (1 + 2 * weight)))
    assert mean[3] == r[3] and std[3] == pytest.approx(np.sqrt(0.5))
    assert mean[4] == 7.0 and std[4] == 0


def test_knowing_more_never_widens_an_interval():
    rng = np.random.default_rng(1)
    S, r = knn_graph(rng.uniform(size=(60, 2))), rng.normal(size=60)
    model, before = a_model(1.0, 5.0), np.full(60, np.inf)
    order = rng.permutation(60)
    for count in (0, 1, 10, 40, 59):
        y = np.full(60, NAN)
        y[order[:count]] = 1.0
        _, std = model.predict(r, graph=S, return_std=True, observed=y)
        assert (std <= before + 1e-12).all()
        before = std


def test_calibration_multiplies_conditional_deviations():
    y = np.array([4.0, NAN, NAN])
    plain = a_model(1.0, 2.0).predict(np.zeros(3), graph=CHAIN, return_std=True, observed=y)
    scaled = a_model(1.0, 2.0, 1.5).predict(np.zeros(3), graph=CHAIN, return_std=True, observed=y)
    assert (plain[0] == scaled[0]).all()
    np.testing.assert_allclose(scaled[1], 1.5 * plain[1])


def test_large_graphs_are_estimated(monkeypatch):
    rng = np.random.default_rng(2)
    S, r = knn_graph(rng.uniform(size=(300, 2))), rng.normal(size=300)
    y = np.where(rng.uniform(size=300) < 0.2, rng.normal(size=300), NAN)
    model = a_model(1.0, 3.0).set_params(n_probes=200)
    mean, exact = model.predict(r, graph=S, return_std=True, observed=y)
    monkeypatch.setattr(spectral, "_EXACT_DIAGONAL_UP_TO", 20)
    monkeypatch.setattr(conditional_module, "is_affordable", lambda L: False)
    again, estimate = model.predict(r, graph=S, return_std=True, observed=y)
    np.testing.assert_allclose(mean, again, atol=1e-9)
    assert (estimate != exact).any()
    np.testing.assert_allclose(estimate, exact, rtol=0.1)
    assert (estimate[~np.isnan(y)] == 0).all()


def test_very_strong_ties():
    """Beyond conjugate gradients: an unknown stretch between two known ends is a straight line."""
    n = 400
    chain = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    y = np.full(n, NAN)
    y[0], y[-1] = 0.0, n - 1.0
    mean, std = a_model(1e-9, 1.0).predict(np.zeros(n), graph=chain, return_std=True, observed=y)
    np.testing.assert_allclose(mean, np.arange(n), atol=0.01)
    assert np.isfinite(std).all()


def test_fitted_models_use_neighbours_that_the_base_model_does_not_know():
    rng = np.random.default_rng(0)
    where, X = rng.uniform(size=(400, 2)), rng.normal(size=(400, 1))
    y = X[:, 0] + 3 * np.sin(5 * where[:, 0]) + 0.1 * rng.normal(size=400)
    known = np.arange(400) < 200
    features = np.column_stack([where, X])
    model = GCRF(
        [LinearRegression(), LinearRegression(fit_intercept=False)],
        graph=[KNN(5, columns=[0, 1]), KNN(8, columns=[0, 1])],
        random_state=0,
    ).fit(features[known], y[known])
    new = features[~known]
    error = [np.mean((p - y[~known]) ** 2) for p in (model.predict_base(new), model.predict(new))]
    assert error[1] < 0.1 * error[0]
    assert model.leave_one_out_error_ == pytest.approx(error[1], rel=0.4)
    assert model.base_error_ == pytest.approx(error[0], rel=0.4)


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        ([1.0, NAN], "observed must have one number for each of the 3 rows"),
        ([[1.0, NAN, NAN]], "observed must have one number for each of the 3 rows"),
        (1.0, "observed must have one number for each of the 3 rows"),
        ([1.0, NAN, np.inf], "1 of 3 observed values are infinite .* row 2.*NaN says"),
        (["a", NAN, NAN], "the observed values are not numbers"),
    ],
)
def test_bad_input(observed, message):
    with pytest.raises(DataError, match=message):
        a_model(1.0, 2.0).predict(np.zeros(3), graph=CHAIN, observed=observed)
