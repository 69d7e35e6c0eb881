"""Any number of labels: rows are worked on by eights, with a rest, in halves or one by one.

The oracle is forward–backward in NumPy, in logarithms; nothing is shared with the kernels but the
arrays that go in. A path as a tree has the loss of the chain.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from chain_problems import edge_entries, edge_scores, node_scores, same_weights
from rich_problems import random_weights
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, GraphPieces
from trellis.features import Encoded
from trellis.problems import LabelProblem, LogLikelihood, PerceptronLoss, Weights

COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 48, 50, 57]


def problem(n_labels, partly, structure="chain", n_samples=6):
    rng = np.random.default_rng(n_labels)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, n_samples))]).astype(np.int64)
    n = int(offsets[-1])
    values = rng.normal(size=3 * n).astype(np.float32)
    indices = rng.integers(0, 12, 3 * n).astype(np.int32)
    encoded = Encoded(offsets, np.arange(0, 3 * n + 1, 3), indices, values)
    classes = [f"{i:02d}" for i in range(n_labels)]
    names = [
        set(rng.choice(classes, rng.integers(1, n_labels + 1), replace=False).tolist())
        if partly and rng.random() < 0.5
        else str(rng.choice(classes))
        for _ in range(n)
    ]
    more = {}
    if structure == "tree":
        first = np.setdiff1d(np.arange(n - 1), offsets[1:] - 1)
        more = {"structure": "tree", "edges": np.stack([first, first + 1], axis=1)}
    return LabelProblem(encoded, Labels.from_lists([names], classes), 12, **more)


def log_marginals(node, edge):
    """Log Z, marginals (n, L) and pair marginals (n, L, L) of a chain."""
    n, n_labels = node.shape
    alpha, beta = node.copy(), np.zeros((n, n_labels))
    for t in range(1, n):
        alpha[t] += logsumexp(alpha[t - 1][:, None] + edge[t], axis=0)
    for t in range(n - 1, 0, -1):
        beta[t - 1] = logsumexp(edge[t] + node[t] + beta[t], axis=1)
    log_z = logsumexp(alpha[-1])
    pairs = np.zeros((n, n_labels, n_labels))
    for t in range(1, n):
        pairs[t] = np.exp(alpha[t - 1][:, None] + edge[t] + node[t] + beta[t] - log_z)
    return log_z, np.exp(alpha + beta - log_z), pairs


def oracle(data, weights, visits):
    """Loss and gradient of the log-likelihood."""
    scores, edges = node_scores(data.encoded, weights.node), edge_scores(data, weights)
    allowed, total = data.labels.allowed(), 0.0
    gradient = weights.zeros_like(np.float64)
    e = data.encoded
    for a, b, weight in zip(visits.starts, visits.ends, visits.weights, strict=True):
        if allowed[a:b].all():
            continue
        for sign, node in (
            (1, scores[a:b]),
            (-1, np.where(allowed[a:b], scores[a:b], -np.inf)),
        ):
            with np.errstate(divide="ignore"):
                log_z, chance, pairs = log_marginals(node, edges[a:b])
            total += sign * weight * log_z
            for t in range(a, b):
                for p in range(e.indptr[t], e.indptr[t + 1]):
                    gradient.node[e.indices[p]] += sign * weight * e.values[p] * chance[t - a]
                if t > a:
                    gradient.transitions[...] += sign * weight * pairs[t - a]
                    for place, pair, v, _ in edge_entries(data, weights, t):
                        gradient.edge.values[place] += (
                            sign * weight * v * pairs[t - a].reshape(-1)[pair]
                        )
    return total, gradient


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
@pytest.mark.parametrize("n_labels", COUNTS)
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
