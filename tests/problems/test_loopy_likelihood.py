"""The CRF loss on pieces of trees and graphs: against enumeration, and the same for any threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import EXTREME, same_bits, same_weights
from graph_problems import GraphProblem, brute_force, graph_problems
from trellis.problems import FeatureRates, LogLikelihood


def value_and_gradient(problem: GraphProblem, n_jobs: int = 1):
    loss = LogLikelihood(problem.data, n_jobs)
    return loss.value_and_gradient(problem.weights, problem.visits)


@given(graph_problems())
@settings(max_examples=60)
def test_value_and_gradient_on_trees(problem):
    value, gradient = value_and_gradient(problem)
    expected, slope = brute_force(problem)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    same_weights(gradient, slope, rtol=1e-8, atol=1e-9)


@given(graph_problems(numbers=EXTREME))
@settings(max_examples=40)
def test_extreme_scores_on_trees(problem):
    value, gradient = value_and_gradient(problem)
    expected, slope = brute_force(problem)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-6)
    same_weights(gradient, slope, rtol=1e-6, atol=1e-6)


@given(graph_problems(loops=True))
@settings(max_examples=30)
def test_value_and_gradient_on_graphs(problem):
    value, gradient = value_and_gradient(problem)
    expected, slope = brute_force(problem)
    assert value == pytest.approx(expected, rel=1e-8, abs=1e-8)
    same_weights(gradient, slope, rtol=1e-6, atol=1e-8)


@given(st.booleans().flatmap(lambda loops: graph_problems(loops=loops)))
@settings(max_examples=30)
def test_zero_weights_cost_what_is_said(problem):
    loss, zero = LogLikelihood(problem.data), problem.weights.zeros_like(np.float64)
    value, _ = loss.value_and_gradient(zero, problem.visits)
    assert loss.at_zero(problem.visits) == pytest.approx(value, abs=1e-9)


@given(graph_problems(loops=False), st.integers(1, 4), st.booleans())
@settings(max_examples=30)
def test_steps_are_gradients_at_the_weights_of_the_batch(problem, batch, adaptive):
    """A batch of all pieces moves by the exact gradient; float64, so that it can be compared."""
    data = problem.data
    _, slope = brute_force(problem)
    weights = problem.weights.copy()
    loss = LogLikelihood(data)
    n = len(problem.visits)
    if adaptive:
        rates = FeatureRates.constant(len(weights.node), 0.1)
        loss.descend(weights, problem.visits, np.array([1.0, 0.0]), batch_size=n, rates=rates)
        met = np.zeros(len(weights.node) + 1, int)
        e = data.encoded
        for k in range(n):
            nodes = problem.visits.nodes[problem.visits.starts[k] : problem.visits.ends[k]]
            here = {int(f) for v in nodes for f in e.indices[e.indptr[v] : e.indptr[v + 1]]}
            for f in here:
                met[f] += 1
            met[-1] += len(nodes) > 1
        assert rates.fired[0].tolist() == met.tolist()
    else:
        loss.descend(weights, problem.visits, np.array([1.0, 0.0]), rate=0.1, batch_size=n)
    step = slope.map(lambda a: -0.1 * a)
    moved = [new - old for new, old in zip(weights.arrays(), problem.weights.arrays(), strict=True)]
    for found, expected in zip(moved, step.arrays(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    # One piece after the other: each at the weights that the ones before left.
    weights = problem.weights.copy()
    one_by_one = problem.weights.copy()
    loss.descend(
        weights, problem.visits, np.array([1.0, 0.0]), rate=0.1, decay=0.9, batch_size=batch
    )
    rate = 0.1
    for first in range(0, n, batch):
        loss.descend(
            one_by_one, problem.visits[first : first + batch], np.array([1.0, 0.0]), rate=rate,
            decay=0.9, batch_size=batch,
        )  # fmt: skip
        rate *= 0.9 ** min(batch, n - first)
    if data.n_types == 1 or problem.weights.edge is not None:
        # (With few nodes, tables are refreshed at the end of a call only.)
        np.testing.assert_allclose(weights.node.shape, one_by_one.node.shape)
    if problem.weights.edge is not None:
        same_weights(weights, one_by_one, rtol=1e-7, atol=1e-9)


@given(graph_problems(loops=True))
@settings(max_examples=25)
def test_loopy_steps_are_those_of_the_gradient(problem):
    _, slope = brute_force(problem)
    weights = problem.weights.copy()
    state = np.array([0.5, 0.0])  # true node and edge weights are half of those stored
    doubled = problem.weights.copy()
    doubled.node *= 2
    if doubled.edge is not None:
        doubled.edge.values *= 2
    loss = LogLikelihood(problem.data)
    loss.descend(
        doubled, problem.visits, state, rate=0.1, batch_size=max(1, len(problem.visits)),
    )  # fmt: skip
    np.testing.assert_allclose(
        doubled.node * 0.5, weights.node - 0.1 * slope.node, rtol=1e-7, atol=1e-8
    )
    np.testing.assert_allclose(
        doubled.transitions, weights.transitions - 0.1 * slope.transitions, rtol=1e-7, atol=1e-8
    )
    assert state[1] == len(problem.visits)


@given(graph_problems(), st.sampled_from([2, 3, 5]))
@settings(max_examples=40)
def test_same_bits_for_any_number_of_threads(problem, n_jobs):
    alone, slope = value_and_gradient(problem)
    value, gradient = value_and_gradient(problem, n_jobs)
    assert value == alone
    assert same_bits(slope, gradient)
    results = []
    for jobs in (1, n_jobs):
        weights = problem.weights.map(lambda a: a.astype(np.float32))
        LogLikelihood(problem.data, jobs).descend(
            weights, problem.visits, np.array([1.0, 0.0]), rate=0.2, shrink=0.1, batch_size=3
        )
        results.append(weights)
    assert same_bits(*results)


@given(graph_problems(), st.floats(0.01, 0.5))
@settings(max_examples=30)
def test_the_penalty_shrinks_all_weights(problem, shrink):
    """A step on pieces of weight zero is the proximal step of the penalty alone."""
    visits = problem.visits
    silent = visits.__class__(
        visits.starts, visits.ends, np.zeros(len(visits)), visits.nodes, visits.forest
    )
    weights, state = problem.weights.copy(), np.array([1.0, 0.0])
    LogLikelihood(problem.data).descend(weights, silent, state, rate=0.5, shrink=shrink)
    keep = (1 + 2 * 0.5 * shrink) ** -len(visits)
    np.testing.assert_allclose(state[0] * weights.node, keep * problem.weights.node, rtol=1e-6)
    np.testing.assert_allclose(weights.transitions, keep * problem.weights.transitions, rtol=1e-6)
