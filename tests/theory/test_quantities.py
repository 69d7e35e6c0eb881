"""The quantities of a fitted model: exact values, and that the bounds on them really bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from chain_problems import chain_problem, problems, toy_language
from trellis import ChainCRF, ChainPerceptron
from trellis.corpus import as_corpus
from trellis.decompose import WholeSamples
from trellis.errors import DataError
from trellis.problems import LogLikelihood, Weights
from trellis.theory import (
    Quantities,
    mini_sample_stability_bound,
    overfit_bound,
    point_losses,
    sample_stability_bound,
    sgd_iterations,
)
from trellis.theory.quantities import FeatureSizes

X, Y = toy_language(12, seed=1)
LENGTHS = [len(x) for x in X]


@pytest.fixture(scope="module")
def model():
    return ChainCRF("word; word[-1]", piece_size=2.5, l2=0.5, random_state=0).fit(X, Y)


def test_exact_quantities(model):
    q = Quantities.from_model(model, (X, Y))
    mean = sum(LENGTHS) / len(LENGTHS)
    assert (q.m, q.n, q.v, q.tau) == (12, pytest.approx(mean), 1.0, 1.0)
    assert q.d == model.n_features_ + 1
    assert q.alpha == pytest.approx(mean / 2.5)
    assert q.lam == pytest.approx(2 * 0.5 / sum(LENGTHS))  # λ/2 · mn is l2
    assert q.rho == pytest.approx(math.sqrt(2))
    assert q.a0 == pytest.approx(model.weights_.squared_norm())
    assert q.c == pytest.approx(2 * 0.5 / (12 * q.alpha))
    # At most two features and the transition are active; a piece has at most three positions.
    assert q.kappa == pytest.approx(math.sqrt(2 * 3))
    assert q.q == pytest.approx(q.c + 9 * 3 / 2)


def test_longest_and_sparse(model):
    q = Quantities.from_model(model, (X, Y), complexity="max", sparse=True)
    assert q.n == max(LENGTHS)
    assert q.d == 3
    assert q.lam == pytest.approx(1.0 / (12 * max(LENGTHS)))
    whole = ChainCRF("word", random_state=0).fit(X, Y)
    assert Quantities.from_model(whole, (X, Y)).alpha == 1
    large = ChainCRF("word", piece_size=1000, random_state=0).fit(X, Y)
    found = Quantities.from_model(large, (X, Y))
    assert found.alpha == 1
    assert found.q == pytest.approx(found.c + max(LENGTHS) ** 2 * 2 / 2)


def test_losses_are_those_of_the_marginals(model):
    losses = point_losses(model, (X, Y))
    expected = [
        -math.log(p[model.classes_.index(label)])
        for found, labels in zip(model.predict_marginals(X), Y, strict=True)
        for p, label in zip(found, labels, strict=True)
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    q = Quantities.from_model(model, as_corpus(X, Y))
    assert q.gamma == losses.max()
    assert q.empirical_risk == losses.mean()


def test_a_set_of_labels_has_the_probability_of_the_set(model):
    partial = point_losses(model, ([["the", "Ada"]], [[None, {"B-PER", "I-PER"}]]))
    found = model.predict_marginals([["the", "Ada"]])[0]
    assert partial[0] == pytest.approx(0, abs=1e-12)
    assert partial[1] == pytest.approx(-math.log(found[1, :2].sum()))


def test_methods_are_the_functions(model):
    q = Quantities.from_model(model, (X, Y), sparse=True)
    core = {k: getattr(q, k) for k in ("m", "n", "d", "alpha", "lam", "v", "rho", "tau")}
    assert q.overfit_bound() == overfit_bound(**core, gamma=q.gamma)
    assert q.overfit_bound(delta=0.2, variant="nips2014") == overfit_bound(
        **core, gamma=q.gamma, delta=0.2, variant="nips2014"
    )
    assert q.mini_sample_stability_bound() == mini_sample_stability_bound(**core)
    assert q.sample_stability_bound() == sample_stability_bound(**core)
    assert q.sgd_iterations(0.1, beta=0.5) == sgd_iterations(
        n=q.n, alpha=q.alpha, epsilon=0.1, c=q.c, q=q.q, kappa=q.kappa, a0=q.a0, beta=0.5
    )


def test_feature_sizes_with_values_and_repeats():
    values = [{"a": 3.0, "b": -4.0}, {"b": 2.0}, {}]
    crf = ChainCRF(random_state=0).fit([values], [["A", "B", "A"]])
    found = crf.encoder_.encode(as_corpus([values]))
    sizes = FeatureSizes.of(found, 2)
    scaled = found.values.astype(float)
    assert sizes.active == 3
    assert sizes.largest == pytest.approx(max(1, abs(scaled).max()))
    assert sizes.norm == pytest.approx(math.sqrt((scaled[:2] ** 2).sum() + 1))
    twice = ChainCRF(random_state=0).fit([[["a", "a"], ["b"]]], [["A", "B"]])
    again = FeatureSizes.of(twice.encoder_.encode(as_corpus([[["a", "a"], ["b"]]])), 2)
    assert again.largest == 2
    assert again.norm == pytest.approx(math.sqrt(5))


@settings(max_examples=30)
@given(problems(partial=False))
def test_gradient_and_curvature_bounds_hold(problem):
    """‖∇L_z‖ ≤ κ|z| and the Hessian of L_z is at most (Σ‖x̃_t‖)²/2, for every piece."""
    data, weights, visits = problem.data, problem.weights, problem.visits
    sizes = FeatureSizes.of(data.encoded, len(weights.node))
    loss = LogLikelihood(data)
    rng = np.random.default_rng(0)
    for k in range(len(visits)):
        one = visits[k : k + 1]
        one = type(one)(one.starts, one.ends, np.ones(1))
        size = int(one.ends[0] - one.starts[0])
        _, g = loss.value_and_gradient(weights, one)
        assert g.squared_norm() ** 0.5 <= math.sqrt(2) * sizes.norm * size + 1e-9
        step = Weights(
            1e-4 * rng.normal(size=weights.node.shape),
            1e-4 * rng.normal(size=weights.transitions.shape),
        )
        moved = Weights(weights.node + step.node, weights.transitions + step.transitions)
        _, h = loss.value_and_gradient(moved, one)
        change = Weights(h.node - g.node, h.transitions - g.transitions)
        limit = (size * sizes.norm) ** 2 / 2 * step.squared_norm() ** 0.5
        assert change.squared_norm() ** 0.5 <= limit * (1 + 1e-6) + 1e-9


def test_the_bound_on_the_gradient_is_nearly_reached():
    """At large wrong weights the gradient of one position has the norm √2 ‖x_t‖."""
    corpus = as_corpus([["a"]], [["A"]])
    labels = corpus.labels.recoded(("A", "B"))
    crf = ChainCRF("word", random_state=0).fit(corpus)
    data = chain_problem(crf.encoder_.encode(corpus), labels, np.ones(1))
    wrong = Weights(np.array([[-50.0, 50.0]]), np.zeros((2, 2)))
    pieces = data.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    _, g = LogLikelihood(data).value_and_gradient(wrong, pieces)
    assert g.squared_norm() == pytest.approx(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: Quantities.from_model(m, (X, Y), complexity="median"),
            "complexity must be 'mean' or 'max', got 'median'",
        ),
        (
            lambda m: Quantities.from_model(ChainPerceptron("word").fit(X, Y), (X, Y)),
            "the bounds are for a ChainCRF, which has a penalty; got ChainPerceptron",
        ),
        (
            lambda m: Quantities.from_model(ChainCRF("word", l2=0).fit(X, Y), (X, Y)),
            "the bounds divide by the strength of the penalty, but l2 is 0.0; fit with l2 > 0",
        ),
        (
            lambda m: Quantities.from_model(m, X),
            r"labels are needed: pass a corpus that carries them or a pair \(X, y\)",
        ),
        (
            lambda m: point_losses(m, ([[]], [[]])),
            "the corpus has no positions; at least one sequence is needed",
        ),
        (lambda m: point_losses(m, ([["a"]], [["X"]])), "label 'X' is unknown; known labels"),
        (
            lambda m: point_losses(
                ChainCRF("word", scheme="BIO", random_state=0).fit(X, Y),
                ([["the"], ["the", "a"]], [["O"], ["I-PER", "O"]]),
            ),
            "the label of sample 1, position 0 has probability 0, so its loss is infinite; use a "
            "model without a scheme",
        ),
    ],
)
def test_refusals(model, call, message):
    with pytest.raises(DataError, match=message):
        call(model)


def test_an_unfitted_model_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        Quantities.from_model(ChainCRF("word"), (X, Y))
    with pytest.raises(NotFittedError):
        point_losses(ChainCRF("word"), (X, Y))
