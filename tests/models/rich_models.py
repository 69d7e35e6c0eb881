"""Tasks whose transitions depend on what is observed, and scores of models with rich edges by hand.

Scores are taken from ``weights_`` alone, labelling by labelling; nothing is shared with the
kernels.
"""

from __future__ import annotations

import itertools

import numpy as np

from chain_problems import chain_problem, node_scores
from trellis.corpus import Labels, as_corpus
from trellis.problems import EdgeWeights, LabelProblem, Weights


def switches(n: int, n_labels: int = 2, seed: int = 0, late: bool = False, length: int = 7):
    """Sequences of symbols; symbol k says that the label moves on by k (round a circle).

    The first position shows its label. No position after it says anything about its label alone,
    so that a chain without rich edges can only guess. With ``late`` a symbol tells the step *from*
    its position, not the step into it.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(2, length + 1))
        step = rng.integers(0, n_labels, size)
        label = int(step[0])
        labels, words = [label], []
        for t in range(size - 1):
            label = (label + step[t if late and t > 0 else t + 1]) % n_labels
            if late and t == 0:
                label = labels[0]  # the first symbol shows the label; it does not move on
            labels.append(int(label))
        for t in range(size):
            words.append(f"start{step[0]}" if t == 0 else f"by{step[t]}")
        X.append(words)
        y.append([f"L{label:02d}" for label in labels])
    return X, y


def edge_weight(edge: EdgeWeights, n_labels: int, feature: int, back: int, a: int, b: int) -> float:
    """Weight of one feature and one pair of labels, looked up by the definition of the arrays."""
    row = int(edge.row[feature])
    if row < 0 or (back and not edge.both):
        return 0.0
    row += back * int((edge.row >= 0).sum())
    if not edge.ptr.size:
        return float(edge.values[(row * n_labels + a) * n_labels + b])
    return sum(
        float(edge.values[q])
        for q in range(edge.ptr[row], edge.ptr[row + 1])
        if edge.pair[q] == a * n_labels + b
    )


def edge_matrices(data: LabelProblem, weights: Weights) -> np.ndarray:
    """S_t (N, L, L) of one sample: transitions and what the features at t and t − 1 add."""
    n_labels = len(weights.transitions)
    e = data.encoded
    n = len(e.indptr) - 1
    found = np.repeat(weights.transitions.astype(np.float64)[None], n, axis=0)
    if weights.edge is None:
        return found
    for t in range(1, n):
        for back in (0, 1):
            for p in range(e.indptr[t - back], e.indptr[t - back + 1]):
                v = float(e.values[p]) if e.values.size else 1.0
                for a, b in itertools.product(range(n_labels), repeat=2):
                    found[t, a, b] += v * edge_weight(
                        weights.edge, n_labels, int(e.indices[p]), back, a, b
                    )
    return found


def rich_scores(model, sample) -> dict[tuple[str, ...], float]:
    """Score of every labelling of one sample under a fitted model, rich edges included."""
    corpus = as_corpus([sample])
    unlabelled = Labels(np.zeros(len(sample), np.int32), (), model.classes_)
    data = chain_problem(model.encoder_.encode(corpus), unlabelled, np.ones(1))
    node = node_scores(data.encoded, model.weights_.node.astype(np.float64))
    edges = edge_matrices(data, model.weights_)
    found = {}
    for y in itertools.product(range(len(model.classes_)), repeat=len(node)):
        total = sum(node[t, label] for t, label in enumerate(y))
        total += sum(edges[t, y[t - 1], y[t]] for t in range(1, len(y)))
        found[tuple(model.classes_[label] for label in y)] = float(total)
    return found


def same_edges(a: EdgeWeights | None, b: EdgeWeights | None) -> bool:
    """Whether two sets of rich edge weights are the same, bit by bit."""
    if a is None or b is None:
        return a is b
    return a.both == b.both and all(
        getattr(a, name).dtype == getattr(b, name).dtype
        and getattr(a, name).tobytes() == getattr(b, name).tobytes()
        for name in ("row", "ptr", "pair", "values")
    )


def same_model(a: Weights, b: Weights) -> bool:
    """Whether all weights are the same, bit by bit."""
    return (
        a.node.shape == b.node.shape
        and a.node.tobytes() == b.node.tobytes()
        and a.transitions.tobytes() == b.transitions.tobytes()
        and same_edges(a.edge, b.edge)
    )
