"""The averaged perceptron against a plain one that keeps every weight vector it ever had."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis.kernels.perceptron as kernels
import trellis.solvers.passes as passes_module
from chain_problems import (
    Problem,
    add_counts,
    chain_problem,
    edge_scores,
    node_scores,
    problems,
    random_data,
    same_bits,
    same_weights,
)
from rich_problems import random_weights, rich_problems
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, WholeSamples
from trellis.features import Encoded
from trellis.problems import LabelProblem, PerceptronLoss, Weights
from trellis.problems.edge_weights import cross
from trellis.problems.visits import Visits
from trellis.solvers import AveragedPerceptron, Passes

# Sums of these are exact in float32, so ties are the same ties for the kernel and the oracle.
EXACT = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
EXACT_WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


def best_labelling(scores: np.ndarray, edges: np.ndarray, allowed: np.ndarray) -> tuple[int, ...]:
    """The best by listing; among equals the lowest label at the last position, then before it."""
    labels = [np.flatnonzero(row).tolist() for row in allowed]
    return max(
        itertools.product(*labels),
        key=lambda y: (
            sum(scores[t, y[t]] for t in range(len(y)))
            + sum(edges[t, y[t - 1], y[t]] for t in range(1, len(y))),
            [-label for label in reversed(y)],
        ),
    )


def naive_perceptron(problem: Problem, batch_size: int = 1) -> tuple[float, Weights, Weights]:
    """Wrong positions, last weights, and the mean of the weights after each visit.

    Visits of a batch look at the weights from before it, and change them one after the other.
    """
    data, visits = problem.data, problem.visits
    w = problem.weights.copy()
    allowed = problem.allowed
    history = []
    wrong = 0.0
    for k, (start, end, weight) in enumerate(
        zip(visits.starts, visits.ends, visits.weights, strict=True)
    ):
        if k % batch_size == 0:
            all_scores, all_edges = node_scores(data.encoded, w.node), edge_scores(data, w)
        scores, edges = all_scores[start:end], all_edges[start:end]
        everything = np.ones_like(allowed[start:end])
        found = best_labelling(scores, edges, everything)
        errors = sum(not allowed[start + t, label] for t, label in enumerate(found))
        if errors:
            wrong += weight * errors
            good = best_labelling(scores, edges, allowed[start:end])
            add_counts(data, int(start), good, weight, w)
            add_counts(data, int(start), found, -weight, w)
        history.append(w.copy())
    steps = zip(*(h.arrays() for h in history), strict=True)
    return wrong, w, w.map(lambda _: np.mean(next(steps), axis=0))


def agree(problem: Problem, kind: str, batch_size: int) -> None:
    wrong, last, mean = naive_perceptron(problem, batch_size)
    start = problem.weights.map(lambda a: a.astype(kind))
    learner = AveragedPerceptron(PerceptronLoss(problem.data), start, batch_size=batch_size)
    assert one_pass(learner, problem.visits) == pytest.approx(wrong)
    same_weights(start, last, rtol=0)  # in place, and exact
    found = learner.weights()
    assert all(a.dtype == np.dtype(kind) for a in found.arrays())
    same_weights(found, mean, rtol=1e-6, atol=1e-6)
    learner.averaged = False
    assert same_bits(learner.weights(), start)


def one_pass(learner: AveragedPerceptron, visits: Visits, number: int = 0) -> float:
    met = learner.visit(visits, number, 0, len(visits))
    learner.end_window(number, len(visits), len(visits))
    return met + learner.end_pass(number)


@given(
    problems(numbers=EXACT, sample_weights=EXACT_WEIGHTS),
    st.sampled_from(["f4", "f8"]),
    st.sampled_from([1, 2, 5]),
)
def test_lazy_averages_are_the_mean_of_all_weights(problem, kind, batch_size):
    agree(problem, kind, batch_size)


@given(rich_problems(numbers=EXACT, sample_weights=EXACT_WEIGHTS), st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_rich_edges_take_the_same_steps(problem, batch_size):
    agree(problem, "f4", batch_size)


def test_averages_run_over_all_passes():
    data = random_data(np.random.default_rng(0), n_samples=8)
    rng = np.random.default_rng(1)
    learner = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(12, 3))
    passes = []
    for number in range(3):
        visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
        passes.append(visits)
        one_pass(learner, visits, number)
    together = Visits(
        *(
            np.concatenate([getattr(v, name) for v in passes])
            for name in ("starts", "ends", "weights")
        )
    )
    problem = Problem(data, Weights.zeros(12, 3, float), together)
    same_weights(learner.weights(), naive_perceptron(problem)[2], rtol=1e-5, atol=1e-5)


def test_blocks_change_nothing(monkeypatch):
    data = random_data(np.random.default_rng(0), n_samples=30)
    ends = []
    for block in (1 << 17, 5):
        monkeypatch.setattr(passes_module, "BLOCK", block)
        learner = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(12, 3))
        rng = np.random.default_rng(0)
        Passes(learner, ChainPieces(2.5), rng).run(max_passes=3, tol=-np.inf)
        ends.append(learner.weights())
    assert same_bits(*ends)


def separable(n_samples: int = 30) -> LabelProblem:
    """Each position has the feature of its label, and one of noise."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    gold = rng.integers(0, 3, n)
    indices = np.stack([gold, 3 + rng.integers(0, 5, n)], axis=1).astype(np.int32).ravel()
    encoded = Encoded(offsets, np.arange(0, 2 * n + 1, 2), indices, np.zeros(0, np.float32))
    labels = Labels.from_lists([["ABC"[g] for g in gold]], "ABC")
    return chain_problem(encoded, labels, np.ones(n_samples))


@pytest.mark.parametrize("size", [None, 1, 2.5])
def test_separable_data_reach_zero_errors(size):
    data = separable()
    learner = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(8, 3))
    part = WholeSamples() if size is None else ChainPieces(size)
    passes = Passes(learner, part, np.random.default_rng(0))
    records = passes.run(max_passes=30, tol=-np.inf).records
    assert records[0].objective > 0
    # Of the weights themselves: the average may lose where they win by a tie.
    assert records[-1].objective == 0


def test_before_any_visit_the_weights_are_those_given():
    start = Weights(np.ones((12, 3), np.float32), np.ones((3, 3), np.float32))
    learner = AveragedPerceptron(PerceptronLoss(random_data(np.random.default_rng(0))), start)
    found = learner.weights()
    assert same_bits(found, start)
    found.node += 1
    assert (start.node == 1).all()  # a copy


def test_another_learner_goes_on_where_one_stopped():
    """Two halves of a stream, the second with more features, average like the whole."""
    data = random_data(np.random.default_rng(0), n_samples=10)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    whole = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(14, 3))
    one_pass(whole, visits)
    first = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(12, 3))
    one_pass(first, visits[slice(0, 6)])
    second = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(14, 3))
    second.resume(first)
    one_pass(second, visits[slice(6, None)])
    assert same_bits(second.weights(), whole.weights())


@pytest.mark.parametrize("edges", ["dense", "sparse"])
def test_rich_edges_go_on_where_they_stopped(edges):
    """The second learner has the rows of two more features, at the end of each family."""
    data = random_data(np.random.default_rng(0), n_samples=10)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    rng = np.random.default_rng(0)
    first = AveragedPerceptron(
        PerceptronLoss(data), random_weights(rng, edges, n_features=13, dtype=np.float32)
    )
    one_pass(first, visits[slice(0, 6)])
    more = cross(
        data.encoded,
        data.labels,
        np.ones(15, bool),
        both=True,
        dense=edges == "dense",
        negatives=1,
        rng=rng,
        known=first._weights.edge,
    )
    grown = Weights.zeros(15, 3)
    grown.edge = more.like(np.zeros_like(more.values))
    second = AveragedPerceptron(PerceptronLoss(data), grown)
    second.resume(first)
    old = {(back, row, pair): v for back, row, pair, v in entries(first._weights)}
    new = {(back, row, pair): v for back, row, pair, v in entries(second._weights)}
    assert old.items() <= new.items() and len(new) > len(old)
    assert not any(new[key] for key in new.keys() - old.keys())
    one_pass(second, visits[slice(6, None)])
    assert second._count.tolist() == [10]


def entries(weights: Weights):
    """Every edge weight with its family, row in the family and pair."""
    edge, n_pairs = weights.edge, weights.node.shape[1] ** 2
    bounds = edge.rows()
    for row in range(edge.n_rows):
        for place in range(bounds[row], bounds[row + 1]):
            pair = edge.pair[place] if edge.ptr.size else place % n_pairs
            yield row // edge.n_crossed, row % edge.n_crossed, int(pair), edge.values[place]


def test_an_interrupt_leaves_the_average_of_the_visits_made(monkeypatch):
    """Ctrl-C strikes while the kernel runs, and is raised before the count can be returned."""
    data = random_data(np.random.default_rng(5))
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    learners = [AveragedPerceptron(PerceptronLoss(data), Weights.zeros(12, 3)) for _ in range(2)]
    one_pass(learners[0], visits)
    real = kernels.averaged_perceptron

    def interrupted(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "averaged_perceptron", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one_pass(learners[1], visits)
    assert same_bits(learners[0].weights(), learners[1].weights())
