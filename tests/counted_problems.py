"""Chains with any number of labels, and their log-likelihood in NumPy, in logarithms.

Nothing is shared with the kernels but the arrays that go in.
"""

from __future__ import annotations

import numpy as np

from chain_problems import edge_rows, edge_scores, node_scores
from trellis.corpus import Labels
from trellis.features import Encoded
from trellis.problems import LabelProblem

COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 48, 50, 57]


def problem(n_labels, partly, structure="chain", n_samples=6, **more):
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
    if structure == "tree":
        first = np.setdiff1d(np.arange(n - 1), offsets[1:] - 1)
        more |= {"structure": "tree", "edges": np.stack([first, first + 1], axis=1)}
    return LabelProblem(encoded, Labels.from_lists([names], classes), 12, **more)


def log_marginals(node, edge):
    """Log Z, marginals (n, L) and pair marginals (n, L, L) of a chain."""
    n, n_labels = node.shape
    alpha, beta = node.copy(), np.zeros((n, n_labels))
    for t in range(1, n):
        alpha[t] += np.logaddexp.reduce(alpha[t - 1][:, None] + edge[t], axis=0)
    for t in range(n - 1, 0, -1):
        beta[t - 1] = np.logaddexp.reduce(edge[t] + node[t] + beta[t], axis=1)
    log_z = np.logaddexp.reduce(alpha[-1])
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
                    for places, of, v, _ in edge_rows(data, weights, t):
                        gradient.edge.values[places] += (
                            sign * weight * v * pairs[t - a].reshape(-1)[of]
                        )
    return total, gradient
