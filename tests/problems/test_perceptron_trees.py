"""Perceptron updates on tree-shaped pieces: against a perceptron that lists all labellings."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chain_problems import same_weights
from graph_problems import GraphProblem, add_counts, graph_problems, labellings, pieces_of
from trellis.problems import PerceptronLoss

# Odd numbers, so that no two labellings have the same score but by accident.
UNEVEN = st.integers(-3000, 3000).map(lambda n: n * 0.0012345678 + n**2 * 1e-9)


def reference(problem: GraphProblem, batch: int):
    """Weights, sums and mistakes of a perceptron that knows nothing of trees."""
    weights, sums = problem.weights.copy(), problem.weights.zeros_like(np.float64)
    pieces = pieces_of(problem.visits)
    mistakes = 0.0
    for first in range(0, len(pieces), batch):
        found = []
        now = GraphProblem(problem.data, weights.copy(), problem.visits)
        for nodes, edges, weight in pieces[first : first + batch]:
            listed = sorted(labellings(now, nodes, edges), key=lambda x: -x[1])
            for one, other in itertools.pairwise(listed):
                assume(one[1] - other[1] > 1e-3)  # in float32 a near tie could go either way
            best = listed[0][0]
            allowed = problem.data.labels.allowed()
            wrong = sum(not allowed[v, y] for v, y in best.items())
            gold = next(y for y, _, good in listed if good)
            found.append((edges, weight, wrong, gold, best))
        for k, (edges, weight, wrong, gold, best) in enumerate(found, first):
            mistakes += weight * wrong
            if wrong and weight:
                for y, sign in ((gold, 1.0), (best, -1.0)):
                    add_counts(problem, edges, y, sign * weight, weights)
                    add_counts(problem, edges, y, sign * weight * k, sums)
    return weights, sums, mistakes


@given(graph_problems(numbers=UNEVEN), st.integers(1, 3))
@settings(max_examples=40)
def test_updates_are_those_of_a_perceptron_by_enumeration(problem, batch):
    expected, expected_sums, mistakes = reference(problem, batch)
    weights = problem.weights.map(lambda a: a.astype(np.float32))
    sums = problem.weights.zeros_like(np.float64)
    count = np.zeros(1)
    loss = PerceptronLoss(problem.data)
    met = loss.descend(weights, sums, problem.visits, count, batch_size=batch)
    assert abs(met - mistakes) < 1e-9
    assert count[0] == len(problem.visits)
    same_weights(weights, expected, rtol=1e-5, atol=1e-4)
    same_weights(sums, expected_sums, rtol=1e-5, atol=1e-4)
