"""The averaged perceptron against a plain one that keeps every weight vector it ever had."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis.kernels.chain_perceptron as kernels
import trellis.solvers.perceptron as perceptron_module
from chain_problems import (
    Problem,
    add_counts,
    node_scores,
    problems,
    random_data,
    same_bits,
    same_weights,
)
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, WholeSamples
from trellis.features import Encoded
from trellis.objectives import ChainData, ChainWeights, PerceptronLoss
from trellis.objectives.chain import Visits
from trellis.solvers import AveragedPerceptron, run_passes

# Sums of these are exact in float32, so ties are the same ties for the kernel and the oracle.
EXACT = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
EXACT_WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


def best_labelling(scores: np.ndarray, trans: np.ndarray, allowed: np.ndarray) -> tuple[int, ...]:
    """The best by listing; among equals the lowest label at the last position, then before it."""
    labels = [np.flatnonzero(row).tolist() for row in allowed]
    return max(
        itertools.product(*labels),
        key=lambda y: (
            sum(scores[t, y[t]] for t in range(len(y)))
            + sum(trans[a, b] for a, b in itertools.pairwise(y)),
            [-label for label in reversed(y)],
        ),
    )


def naive_perceptron(problem: Problem) -> tuple[float, ChainWeights, ChainWeights]:
    """Wrong positions, last weights, and the mean of the weights after each visit."""
    data, visits = problem.data, problem.visits
    w = problem.weights.copy()
    allowed = problem.allowed
    history = []
    wrong = 0.0
    for start, end, weight in zip(visits.starts, visits.ends, visits.weights, strict=True):
        scores = node_scores(data, w.node)[start:end]
        everything = np.ones_like(allowed[start:end])
        found = best_labelling(scores, w.transitions, everything)
        errors = sum(not allowed[start + t, label] for t, label in enumerate(found))
        if errors:
            wrong += weight * errors
            good = best_labelling(scores, w.transitions, allowed[start:end])
            add_counts(data, int(start), good, weight, w)
            add_counts(data, int(start), found, -weight, w)
        history.append(w.copy())
    mean = ChainWeights(
        np.mean([h.node for h in history], axis=0),
        np.mean([h.transitions for h in history], axis=0),
    )
    return wrong, w, mean


@given(problems(numbers=EXACT, sample_weights=EXACT_WEIGHTS), st.sampled_from(["f4", "f8"]))
def test_lazy_averages_are_the_mean_of_all_weights(problem, kind):
    wrong, last, mean = naive_perceptron(problem)
    start = ChainWeights(
        problem.weights.node.astype(kind), problem.weights.transitions.astype(kind)
    )
    learner = AveragedPerceptron(PerceptronLoss(problem.data), start)
    assert learner.one_pass(problem.visits, 0) == pytest.approx(wrong)
    same_weights(start, last, rtol=0)  # in place, and exact
    found = learner.weights()
    assert found.node.dtype == found.transitions.dtype == np.dtype(kind)
    same_weights(found, mean, rtol=1e-6, atol=1e-6)


def test_averages_run_over_all_passes():
    data = random_data(np.random.default_rng(0), n_samples=8)
    rng = np.random.default_rng(1)
    learner = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(12, 3))
    passes = []
    for number in range(3):
        visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
        passes.append(visits)
        learner.one_pass(visits, number)
    together = Visits(
        *(
            np.concatenate([getattr(v, name) for v in passes])
            for name in ("starts", "ends", "weights")
        )
    )
    problem = Problem(data, ChainWeights.zeros(12, 3, float), together)
    same_weights(learner.weights(), naive_perceptron(problem)[2], rtol=1e-5, atol=1e-5)


def test_blocks_change_nothing(monkeypatch):
    data = random_data(np.random.default_rng(0), n_samples=30)
    ends = []
    for block in (1 << 17, 5):
        monkeypatch.setattr(perceptron_module, "BLOCK", block)
        learner = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(12, 3))
        rng = np.random.default_rng(0)
        list(run_passes(learner, ChainPieces(2.5), rng, max_passes=3, tol=-np.inf))
        ends.append(learner.weights())
    assert same_bits(*ends)


def separable(n_samples: int = 30) -> ChainData:
    """Each position has the feature of its label, and one of noise."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    gold = rng.integers(0, 3, n)
    indices = np.stack([gold, 3 + rng.integers(0, 5, n)], axis=1).astype(np.int32).ravel()
    encoded = Encoded(offsets, np.arange(0, 2 * n + 1, 2), indices, np.zeros(0, np.float32))
    labels = Labels.from_lists([["ABC"[g] for g in gold]], "ABC")
    return ChainData(encoded, labels, np.ones(n_samples))


@pytest.mark.parametrize("size", [None, 1, 2.5])
def test_separable_data_reach_zero_errors(size):
    data = separable()
    learner = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(8, 3))
    part = WholeSamples() if size is None else ChainPieces(size)
    records = list(run_passes(learner, part, np.random.default_rng(0), max_passes=30, tol=-np.inf))
    assert records[0].objective > 0
    # Of the weights themselves: the average may lose where they win by a tie.
    assert records[-1].objective == 0


def test_before_any_visit_the_weights_are_those_given():
    start = ChainWeights(np.ones((12, 3), np.float32), np.ones((3, 3), np.float32))
    learner = AveragedPerceptron(PerceptronLoss(random_data(np.random.default_rng(0))), start)
    found = learner.weights()
    assert same_bits(found, start)
    found.node += 1
    assert (start.node == 1).all()  # a copy


def test_another_learner_goes_on_where_one_stopped():
    """Two halves of a stream, the second with more features, average like the whole."""
    data = random_data(np.random.default_rng(0), n_samples=10)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    whole = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(14, 3))
    whole.one_pass(visits, 0)
    first = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(12, 3))
    first.one_pass(visits[slice(0, 6)], 0)
    second = AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(14, 3))
    second.resume(first)
    second.one_pass(visits[slice(6, None)], 0)
    assert same_bits(second.weights(), whole.weights())


def test_an_interrupt_leaves_the_average_of_the_visits_made(monkeypatch):
    """Ctrl-C strikes while the kernel runs, and is raised before the count can be returned."""
    data = random_data(np.random.default_rng(5))
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    learners = [
        AveragedPerceptron(PerceptronLoss(data), ChainWeights.zeros(12, 3)) for _ in range(2)
    ]
    learners[0].one_pass(visits, 0)
    real = kernels.averaged_perceptron

    def interrupted(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "averaged_perceptron", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learners[1].one_pass(visits, 0)
    assert same_bits(learners[0].weights(), learners[1].weights())
