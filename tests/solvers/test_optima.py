"""All solvers reach the optimum that others find: a proximal method, BFGS and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from chain_problems import CLASSES, chain_problem, random_data
from rich_problems import random_weights
from trellis.corpus import Labels
from trellis.decompose import WholeSamples
from trellis.features import Encoded
from trellis.problems import LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.visits import Visits
from trellis.solvers import (
    AdaptiveFrequency,
    LimitedMemoryBFGS,
    Passes,
    StochasticGradient,
)

PENALTIES = [Penalty(l2=0.5), Penalty(l1=1.0), Penalty(l2=0.2, l1=0.6)]


def all_of(data: LabelProblem) -> Visits:
    return data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))


def objective(data: LabelProblem, weights: Weights, penalty: Penalty) -> float:
    weights = weights.map(lambda a: a.astype(float))
    return LogLikelihood(data).value_and_gradient(weights, all_of(data))[0] + penalty.value(weights)


def accelerated_proximal(data: LabelProblem, like: Weights, penalty: Penalty) -> float:
    """The least objective by FISTA (Beck & Teboulle 2009) with restarts, written out in NumPy."""
    loss, visits = LogLikelihood(data), all_of(data)
    shape = [a.shape for a in like.arrays()]
    bounds = np.cumsum([0, *(int(np.prod(s)) for s in shape)])

    def unpack(x):
        parts = iter(
            x[a:b].reshape(s) for a, b, s in zip(bounds[:-1], bounds[1:], shape, strict=True)
        )
        return like.map(lambda _: next(parts))

    def smooth(x):
        value, g = loss.value_and_gradient(unpack(x), visits)
        slope = np.concatenate([a.ravel() for a in g.arrays()])
        return value + penalty.l2 * x @ x, slope + 2 * penalty.l2 * x

    x = y = np.zeros(bounds[-1])
    momentum, step, best = 1.0, 1.0, np.inf
    for _ in range(3000):
        value, slope = smooth(y)
        while True:
            z = y - step * slope
            z = np.sign(z) * np.maximum(abs(z) - step * penalty.l1, 0)
            d = z - y
            if smooth(z)[0] <= value + slope @ d + d @ d / (2 * step) + 1e-12 * abs(value):
                break
            step /= 2
        total = smooth(z)[0] + penalty.l1 * abs(z).sum()
        if total > best:
            momentum, y = 1.0, x
            continue
        if best - total < 1e-12 * total and momentum > 5:
            return float(total)
        after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        y = z + (momentum - 1) / after * (z - x)
        x, momentum, best = z, after, total
    return float(best)


def lbfgs(data: LabelProblem, start: Weights, penalty: Penalty) -> Weights:
    solver = LimitedMemoryBFGS(LogLikelihood(data), start, all_of(data), penalty=penalty)
    solver.run(max_passes=2000, tol=1e-13)
    return solver.weights()


def sgd(data: LabelProblem, start: Weights, penalty: Penalty, **options) -> Weights:
    learner = StochasticGradient(
        LogLikelihood(data), start, learning_rate=0.2, decay=0.96, penalty=penalty, **options
    )
    rng = np.random.default_rng(0)
    Passes(learner, WholeSamples(), rng).run(max_passes=150, tol=-np.inf)
    return learner.weights()


@pytest.mark.parametrize("edges", ["plain", "sparse"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=["l2", "l1", "elastic"])
def test_lbfgs_and_sgd_reach_the_optimum_of_a_chain(penalty, edges):
    data = random_data(np.random.default_rng(6), n_samples=40)
    like = random_weights(np.random.default_rng(0), edges).zeros_like(float)
    least = accelerated_proximal(data, like, penalty)
    found = lbfgs(data, like.copy(), penalty)
    assert objective(data, found, penalty) == pytest.approx(least, rel=1e-6)
    for batch_size in (1, 4):
        found = sgd(data, like.copy(), penalty, batch_size=batch_size)
        reached = objective(data, found, penalty)
        assert least * (1 - 1e-6) <= reached < least * (1 + 1e-3)


def test_bfgs_of_another_kind_agrees():
    data = random_data(np.random.default_rng(6), n_samples=40)
    loss, visits = LogLikelihood(data), all_of(data)

    def f(x):
        m = x.reshape(-1, 3)
        value, g = loss.value_and_gradient(Weights(m[:12], m[12:]), visits)
        slope = np.concatenate([g.node, g.transitions]).ravel()
        return value + 0.5 * x @ x, slope + x

    least = minimize(f, np.zeros(45), jac=True, method="BFGS", options={"gtol": 1e-7}).fun
    like = Weights.zeros(12, 3, float)
    assert accelerated_proximal(data, like, PENALTIES[0]) == pytest.approx(least, rel=1e-9)
    assert objective(data, lbfgs(data, like, PENALTIES[0]), PENALTIES[0]) == pytest.approx(
        least, rel=1e-8
    )


# ------------------------------------------------------------------------- single positions


def single_positions(n: int = 400, n_features: int = 80) -> tuple[LabelProblem, np.ndarray]:
    """Samples of one position with two features each: multinomial logistic regression."""
    rng = np.random.default_rng(3)
    indices = np.stack([rng.choice(n_features, 2, replace=False) for _ in range(n)])
    truth = rng.normal(size=(n_features, 3))
    gold = (truth[indices].sum(axis=1) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    encoded = Encoded(
        np.arange(n + 1),
        np.arange(0, 2 * n + 1, 2),
        indices.astype(np.int32).ravel(),
        np.zeros(0, np.float32),
    )
    labels = Labels.from_lists([[CLASSES[g] for g in gold]], CLASSES[:3])
    return chain_problem(encoded, labels, np.ones(n)), gold


def regression(data: LabelProblem, gold: np.ndarray, penalty: Penalty, n_features: int) -> Weights:
    """The same problem solved by scikit-learn."""
    e = data.encoded
    X = np.zeros((len(gold), n_features))
    X[np.repeat(np.arange(len(gold)), 2), e.indices] = 1
    strength = penalty.l1 + 2 * penalty.l2
    model = LogisticRegression(
        C=1 / strength,
        l1_ratio=penalty.l1 / strength,
        solver="saga",
        fit_intercept=False,
        tol=1e-9,
        max_iter=20_000,
    ).fit(X, gold)
    return Weights(model.coef_.T.copy(), np.zeros((3, 3)))


@pytest.mark.parametrize("penalty", PENALTIES, ids=["l2", "l1", "elastic"])
def test_all_solvers_agree_with_logistic_regression(penalty):
    data, gold = single_positions()
    theirs = regression(data, gold, penalty, 80)
    least = objective(data, theirs, penalty)
    found = lbfgs(data, Weights.zeros(80, 3, float), penalty)
    assert objective(data, found, penalty) == pytest.approx(least, rel=1e-6)
    assert not found.transitions.any()
    np.testing.assert_allclose(found.node, theirs.node, atol=2e-2)
    reached = objective(data, sgd(data, Weights.zeros(80, 3, float), penalty), penalty)
    assert least * (1 - 1e-6) <= reached < least * (1 + 1e-3)
    learner = AdaptiveFrequency(
        LogLikelihood(data), Weights.zeros(80, 3, float), learning_rate=0.3, penalty=penalty
    )
    rng = np.random.default_rng(0)
    Passes(learner, WholeSamples(), rng).run(max_passes=60, tol=-np.inf)
    reached = objective(data, learner.weights(), penalty)
    assert least * (1 - 1e-6) <= reached < least * (1 + 5e-3)


@pytest.mark.parametrize("solve", [lbfgs, sgd])
def test_l1_leaves_zeros_where_the_optimum_has_them(solve):
    data, gold = single_positions()
    theirs = regression(data, gold, PENALTIES[1], 80).node
    mine = solve(data, Weights.zeros(80, 3, float), PENALTIES[1]).node
    assert 60 < (theirs == 0).sum() < 230
    if solve is lbfgs:
        assert (mine == 0).tolist() == (theirs == 0).tolist()
    else:  # one or two may still be on their way
        assert (mine[theirs == 0] == 0).mean() > 0.95
        assert (mine[theirs != 0] != 0).mean() > 0.95


def test_adf_comes_close_on_chains():
    """Its rates fall too fast to end in the optimum: those of transitions by 0.6 a window."""
    data = random_data(np.random.default_rng(6), n_samples=300, n_features=60)
    penalty = Penalty(l2=0.5)
    like = Weights.zeros(60, 3, float)
    least = objective(data, lbfgs(data, like.copy(), penalty), penalty)
    before = objective(data, like, penalty)
    learner = AdaptiveFrequency(LogLikelihood(data), like, learning_rate=0.2, penalty=penalty)
    rng = np.random.default_rng(0)
    records = Passes(learner, WholeSamples(), rng).run(max_passes=30, tol=-np.inf).records
    reached = objective(data, learner.weights(), penalty)
    assert reached - least < 0.1 * (before - least)
    assert records[-1].objective == pytest.approx(reached, rel=0.02)
