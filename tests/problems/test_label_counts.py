"""Any number of labels: rows are worked on by eights, with a rest, in halves or one by one.

A path as a tree has the loss of the chain.
"""

from __future__ import annotations

import numpy as np
import pytest

from chain_problems import edge_entries, edge_scores, node_scores, same_weights
from counted_problems import COUNTS, oracle, problem
from rich_problems import random_weights
from trellis.decompose import ChainPieces, GraphPieces
from trellis.problems import LogLikelihood, PerceptronLoss, Weights


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("edges", ["plain", "dense", "sparse"])
@pytest.mark.parametrize("n_labels", COUNTS)
def test_loss_and_gradient_of_chains(n_labels, edges, partly):
    data, rng = problem(n_labels, partly), np.random.default_rng(0)
    weights = random_weights(rng, edges, n_labels=n_labels, size=0.7)
    visits = data.visits(ChainPieces(4.5).draw(data.offsets, rng))
    value, gradient = LogLikelihood(data).value_and_gradient(weights, visits)
    wanted, exact = oracle(data, weights, visits)
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    same_weights(gradient, exact, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_labels", COUNTS)
def test_steps_in_float32_are_those_of_the_gradient(n_labels):
    """One batch of all pieces: the weights move by the rate times the gradient."""
    data, rng = problem(n_labels, True), np.random.default_rng(0)
    visits = data.visits(ChainPieces(3.5).draw(data.offsets, rng))
    for edges in ("plain", "dense", "sparse"):
        start = random_weights(rng, edges, n_labels=n_labels, size=0.5, dtype=np.float32)
        _, gradient = oracle(data, start.map(lambda a: a.astype(np.float64)), visits)
        w = start.copy()
        LogLikelihood(data).descend(
            w, visits, np.array([1.0, 0.0]), rate=0.1, batch_size=len(visits)
        )
        for after, before, g in zip(w.arrays(), start.arrays(), gradient.arrays(), strict=True):
            np.testing.assert_allclose(after, before - 0.1 * g, atol=2e-5)


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("n_labels", COUNTS)
def test_a_path_as_a_tree_is_a_chain(n_labels, partly):
    chain, tree = problem(n_labels, partly), problem(n_labels, partly, "tree")
    rng = np.random.default_rng(0)
    weights = random_weights(rng, "plain", n_labels=n_labels, size=0.7)
    whole = chain.visits(ChainPieces(1e9).draw(chain.offsets, rng))
    pieces = tree.visits(GraphPieces(tree.edges, None).draw(tree.offsets, rng))
    of_tree = Weights(weights.node, weights.transitions[None])
    value, gradient = LogLikelihood(tree).value_and_gradient(of_tree, pieces)
    wanted, exact = LogLikelihood(chain).value_and_gradient(weights, whole)
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient.node, exact.node, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gradient.transitions[0], exact.transitions, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("edges", ["plain", "dense"])
@pytest.mark.parametrize("n_labels", [*COUNTS, 64, 71, 80])
def test_the_perceptron_moves_to_gold_from_the_best(n_labels, edges):
    data, rng = problem(n_labels, False, n_samples=1), np.random.default_rng(1)
    start = random_weights(rng, edges, n_labels=n_labels, dtype=np.float32)
    visits = data.visits(ChainPieces(1e9).draw(data.offsets, rng))
    w, sums = start.copy(), start.zeros_like(np.float64)
    PerceptronLoss(data).descend(w, sums, visits, np.zeros(1))
    node, pair = node_scores(data.encoded, start.node.astype(float)), edge_scores(data, start)
    n = len(node)
    best, back = node[0], np.zeros((n, n_labels), int)
    for t in range(1, n):
        reach = best[:, None] + pair[t]
        back[t], best = reach.argmax(axis=0), reach.max(axis=0) + node[t]
    path = [int(best.argmax())]
    for t in range(n - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    path, gold, e = path[::-1], data.labels.ids, data.encoded
    wanted = start.map(lambda a: a.astype(np.float64))
    for sign, y in ((1, gold), (-1, path)):
        for t in range(n):
            for p in range(e.indptr[t], e.indptr[t + 1]):
                wanted.node[e.indices[p], y[t]] += sign * e.values[p]
            if t > 0:
                wanted.transitions[y[t - 1], y[t]] += sign
                for place, of, v, _ in edge_entries(data, start, t):
                    if of == y[t - 1] * n_labels + y[t]:
                        wanted.edge.values[place] += sign * v
    same_weights(w, wanted, atol=1e-5)
