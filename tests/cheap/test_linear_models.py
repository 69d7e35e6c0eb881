"""Every linear model learns from cheap data; CRFs with the probabilities they have."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from label_problems import STRUCTURES, Enumerated
from trellis import (
    ChainCRF,
    ChainPerceptron,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
)
from trellis.cheap import ActiveLearner, TransferLearner
from trellis.cheap.training import train
from trellis.corpus import as_corpus
from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError
from trellis.features import AttributeEncoder
from trellis.problems import LabelProblem, LogObjective
from trellis.problems.confidence import PROBABILITIES

TAGS = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sat": "V", "ran": "V"}
POOL = [[d, n, v] for d in ("the", "a") for n in ("cat", "dog") for v in ("sat", "ran")]
EDGES = [(0, 1), (1, 2)]
CHAINS = [ChainCRF("word"), ChainPerceptron("word"), MaxMargin("word", l2=0.1)]
OTHERS = [
    TreeCRF("word"),
    TreePerceptron("word"),
    GraphCRF("word", directed=True),
    GraphPerceptron("word", directed=True),
    MaxMargin("word", structure="tree", l2=0.1),
    MaxMargin("word", structure="graph", directed=True, l2=0.1),
]


def name(model):
    return f"{type(model).__name__}-{model.structure}"


def as_pool(model):
    return POOL if model.structure == "chain" else [(words, EDGES) for words in POOL]


def words_of(model, sample):
    return sample if model.structure == "chain" else sample[0]


@pytest.mark.parametrize("model", [*CHAINS, *OTHERS], ids=name)
def test_every_linear_model_learns_actively(model):
    model.set_params(random_state=0)
    pool = as_pool(model)
    learner = ActiveLearner(model, labels=["D", "N", "V"])
    learner.run(pool, lambda i, x: [TAGS[w] for w in words_of(model, x)], max_queries=3)
    assert len(learner.annotated_) == 3
    fitted = learner.finish()
    assert fitted.predict(pool) == [[TAGS[w] for w in words] for words in POOL]
    again = ActiveLearner(model, labels=["D", "N", "V"], retrain_every=1)
    again.run(pool, lambda i, x: [TAGS[w] for w in words_of(model, x)], max_queries=3)
    assert again.model_.predict(pool) == fitted.predict(pool)


@pytest.mark.parametrize("model", [*CHAINS, *OTHERS], ids=name)
def test_finish_fits_as_fit_does(model):
    """On a pool that is annotated in full, the features and their order are the same."""
    model.set_params(random_state=0)
    gold = [[TAGS[w] for w in words] for words in POOL]
    learner = ActiveLearner(model, labels=["D", "N", "V"])
    learner.query((as_pool(model), [[None] * 3] * len(POOL)))
    for i, labels in enumerate(gold):
        learner.tell(i, labels)
    one, other = learner.finish(), type(model)(**model.get_params()).fit(as_pool(model), gold)
    for a, b in zip(one.weights_.arrays(), other.weights_.arrays(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("strategy", PROBABILITIES)
def test_crfs_ask_by_their_probabilities(strategy):
    tags = {"D": "O", "N": "B-N", "V": "B-V"}
    learner = ActiveLearner(ChainCRF("word", random_state=0), strategy, labels=["O", "B-N", "B-V"])
    learner.run(POOL, lambda i, x: [tags[TAGS[w]] for w in x], max_queries=4)
    assert learner.finish().predict(POOL[:1]) == [["O", "B-N", "B-V"]]
    history = learner.average_uncertainty_
    assert len(history) == 4 and all(q > 0 for q in history)


@pytest.mark.parametrize("model", [*CHAINS, *OTHERS], ids=name)
def test_nothing_is_learned_from_nothing(model):
    learner = ActiveLearner(model, labels=["D", "N", "V"])
    learner.query(as_pool(model))
    with pytest.raises(DataError, match="nothing is annotated yet; there is nothing to learn from"):
        learner.finish()


@pytest.mark.parametrize("model", [*CHAINS, *OTHERS], ids=name)
def test_all_that_learn_labels_ask_by_probabilities(model):
    """On the way all learn as a CRF does, so all ask the same."""
    model.set_params(random_state=0)
    pool, crf = as_pool(model), ChainCRF("word", l2=0.1)
    asked = []
    for one, samples in ((model, pool), (crf, POOL)):
        learner = ActiveLearner(one, "token-entropy", labels=["D", "N", "V"])
        for _ in range(4):
            i = learner.query(samples)
            learner.tell(i, [TAGS[w] for w in POOL[i]])
            asked.append(i)
    if model.structure == "chain":
        assert asked[:4] == asked[4:]


def test_cells_have_no_probabilities_of_labels():
    from trellis.tracking import TrackingModel

    with pytest.raises(DataError, match="'entropy' needs probabilities of labels, which Tracking"):
        ActiveLearner(TrackingModel(), "entropy")


@pytest.mark.parametrize(("structure", "more"), STRUCTURES)
@pytest.mark.parametrize("measure", [m for m in PROBABILITIES if m != "span"])
def test_confidence_is_that_of_the_enumerated_labellings(structure, more, measure):
    p = Enumerated(3, structure, **more)
    w = p.weights()
    expected = []
    for s in range(p.n_samples):
        ys = list(p.labellings(s, "compatible"))
        scores = np.array([p.score(w, s, y) for y in ys])
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        n = len(p.own(s))
        if measure == "confidence":
            expected.append(math.log(chances.max()) / n)
        elif measure == "entropy":
            expected.append(float((chances * np.log(chances)).sum()) / n)
        elif measure != "token-entropy":
            marginals = np.array(
                [
                    [
                        sum(c for c, y in zip(chances, ys, strict=True) if y[t] == k)
                        for k in range(3)
                    ]
                    for t in range(n)
                ]
            )
            each = np.log(marginals.reshape(n, 3).max(axis=1)) if n else np.zeros(0)
            if measure == "information-density":
                a = int(p.problem.offsets[s])
                expected.append((each * p.problem.familiarity[a : a + n] ** 2).sum() / (n + 3))
            else:
                expected.append(each.sum() / n)
        else:
            total = 0.0
            for t, k in itertools.product(range(n), range(3)):
                q = sum(c for c, y in zip(chances, ys, strict=True) if y[t] == k)
                total += q * math.log(q) if q > 0 else 0.0
            expected.append(total / n)
    found = p.problem.margins(w, measure, np.arange(p.n_samples))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_surest_span_is_that_of_the_enumerated_labellings():
    corpus = as_corpus([[["a"], ["b"], ["a"]]], [[None, None, "O"]])
    encoded = AttributeEncoder().learn(corpus)
    labels = corpus.labels.recoded(("B-X", "I-X", "O"))
    problem = LabelProblem(encoded, labels, 2)
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    w[: problem.n_features * 3] += np.tile([1.0, 0.5, 0.0], 2)
    ys = [(*y, 2) for y in itertools.product(range(3), repeat=2)]
    weights = problem.weights(w)
    scores = np.array(
        [
            sum(weights.node[f, k] for f, k in zip((0, 1, 0), y, strict=True))
            + sum(weights.transitions[a, b] for a, b in itertools.pairwise(y))
            for y in ys
        ]
    )
    chances = np.exp(scores) / np.exp(scores).sum()
    best = ys[int(scores.argmax())]
    spans = get_scheme("BIO").spans([labels.classes[k] for k in best])
    assert spans
    least = min(
        sum(
            c
            for c, y in zip(chances, ys, strict=True)
            if (kind, a, b) in get_scheme("BIO").spans([labels.classes[k] for k in y])
            and y[a:b] == best[a:b]
        )
        for kind, a, b in spans
    )
    found = problem.margins(w, "span", np.array([0]))
    np.testing.assert_allclose(found, [math.log(least)], atol=1e-9)
    tree = Enumerated(0, "tree").problem
    with pytest.raises(DataError, match="'span' is for chains whose labels follow a tag scheme"):
        tree.margins(np.zeros(tree.n_weights), "span", np.array([0]))


@pytest.mark.parametrize(("structure", "more"), STRUCTURES[:3])
def test_the_log_objective_is_that_of_the_enumerated_labellings(structure, more):
    p = Enumerated(5, structure, **more)
    objective, w = LogObjective(p.problem), p.weights()

    def value(w):
        total = 0.0
        for s in objective.samples:
            every = [p.score(w, s, y) for y in p.labellings(s)]
            fits = [p.score(w, s, y) for y in p.labellings(s, "compatible")]
            total += np.logaddexp.reduce(every) - np.logaddexp.reduce(fits)
        return total

    found, gradient = objective.value_and_gradient(w)
    assert found == pytest.approx(value(w))
    step = 1e-5 * np.eye(len(w))
    numeric = [(value(w + h) - value(w - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.3, 4.0, np.inf])
def test_coupled_crfs_minimise_their_objective(rho):
    problems = [Enumerated(seed, "chain", known=0.9).problem for seed in (1, 2)]
    objectives = [LogObjective(problem) for problem in problems]
    found = train(objectives, l2=0.5, rho=rho, tol=1e-6)
    n = problems[0].n_weights

    def J(x):
        own = x.reshape(2, n) if np.isfinite(rho) else np.tile(x, (2, 1))
        value = sum(o.value_and_gradient(w)[0] for o, w in zip(objectives, own, strict=True))
        if rho in (0.0, np.inf):
            return value + 0.5 * float(x @ x)
        shared = rho * own.sum(axis=0) / (0.5 + 2 * rho)
        return value + 0.5 * shared @ shared + rho * np.square(own - shared).sum()

    start = found.weights.ravel() if np.isfinite(rho) else found.shared
    best = minimize(J, start, method="BFGS").fun
    assert found.objective == pytest.approx(J(start), rel=1e-9)
    assert found.objective <= best * (1 + 1e-5)


def test_crfs_learn_from_related_domains():
    a = ([["we", "can", "fish"], ["we", "fish"]] * 3, [["N", "V", "V"], ["N", "V"]] * 3)
    b = ([["a", "can", "rusts"]], [["D", "N", "V"]])
    learner = TransferLearner(ChainCRF("word", l2=0.1), rho=0.5).fit({"a": a, "b": b})
    assert learner.predict([["a", "can"], ["we", "fish"]], domain="b") == [["D", "N"], ["N", "V"]]
    assert learner.models_["b"].predict_marginals([["a", "can"]])[0].shape == (2, 3)
    with pytest.raises(DataError, match="a perceptron has no objective that several domains"):
        TransferLearner(ChainPerceptron("word"), l2=1.0).fit({"a": a, "b": b})
