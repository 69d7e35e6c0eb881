"""Tiny learning problems whose features are crossed with label pairs, and larger random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from chain_problems import ORDINARY, Problem, altered, problems, random_data
from trellis.corpus import Labels
from trellis.problems import EdgeWeights, LabelProblem, Weights

KINDS = ("dense", "sparse", "all pairs")


@st.composite
def rich_problems(draw, numbers=ORDINARY, kinds=KINDS, **options) -> Problem:
    """A problem of ``problems`` with rich edges: some features crossed, for one or both ends.

    ``sparse`` rows have some pairs, none or all; rows of ``all pairs`` have all of them.
    """
    problem = draw(problems(numbers=numbers, **options))
    n_features, n_labels = problem.weights.node.shape
    crossed = draw(st.lists(st.booleans(), min_size=n_features, max_size=n_features))
    row = np.where(crossed, np.cumsum(crossed) - 1, -1).astype(np.int32)
    both = draw(st.booleans())
    n_rows, n_pairs = (1 + both) * sum(crossed), n_labels**2
    kind = draw(st.sampled_from(kinds))
    if kind == "dense":
        ptr, pair = np.zeros(0, np.int64), np.zeros(0, np.int32)
        size = n_rows * n_pairs
    else:
        some = st.sets(st.integers(0, n_pairs - 1))
        rows = [
            range(n_pairs) if kind == "all pairs" else sorted(draw(some)) for _ in range(n_rows)
        ]
        ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        pair = np.array([q for r in rows for q in r], np.int32)
        size = len(pair)
    values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.float64)
    edge = EdgeWeights(row, ptr, pair, values, bool(both))
    weights = Weights(problem.weights.node, problem.weights.transitions, edge)
    data = altered(problem.data, rich=edge)
    return replace(problem, data=data, weights=weights)


def with_all_pairs(weights: Weights) -> Weights:
    """Dense rich edges written as sparse ones whose rows have every pair."""
    edge, n_pairs = weights.edge, weights.node.shape[1] ** 2
    ptr = np.arange(edge.n_rows + 1, dtype=np.int64) * n_pairs
    pair = np.tile(np.arange(n_pairs, dtype=np.int32), edge.n_rows)
    return replace(weights, edge=replace(edge, ptr=ptr, pair=pair))


def random_weights(
    rng: np.random.Generator,
    edges: str,
    *,
    n_features: int = 12,
    n_labels: int = 3,
    size: float = 1.0,
    dtype=np.float64,
) -> Weights:
    """Random weights with ``plain``, ``dense`` or ``sparse`` edges (two features not crossed)."""
    weights = Weights(
        (size * rng.normal(size=(n_features, n_labels))).astype(dtype),
        (size * rng.normal(size=(n_labels, n_labels))).astype(dtype),
    )
    if edges == "plain":
        return weights
    row = np.arange(-1, n_features - 1, dtype=np.int32)
    row[row == n_features - 2] = -1
    n_rows, n_pairs = 2 * (n_features - 2), n_labels**2
    ptr, pair = np.zeros(0, np.int64), np.zeros(0, np.int32)
    n = n_rows * n_pairs
    if edges == "sparse":
        rows = [np.flatnonzero(rng.random(n_pairs) < 0.5) for _ in range(n_rows)]
        ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        pair = np.concatenate(rows).astype(np.int32)
        n = len(pair)
    values = (size * rng.normal(size=n)).astype(dtype)
    return replace(weights, edge=EdgeWeights(row, ptr, pair, values, True))


def partial_data(rng: np.random.Generator, **options) -> LabelProblem:
    """Random data of which some positions have no label, some two, and samples have weights."""
    data = random_data(rng, **options)
    names = [data.labels.classes[i] for i in data.labels.ids]
    chance = rng.random(len(names))
    loose = [
        None if c < 0.2 else {"A", name} if c < 0.4 else name
        for c, name in zip(chance, names, strict=True)
    ]
    labels = Labels.from_lists([loose], list(data.labels.classes))
    n_samples = len(data.sample_weight)
    return altered(data, labels=labels, sample_weight=rng.uniform(0.2, 2, n_samples))
