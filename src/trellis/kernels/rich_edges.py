"""Rich edge features: weights of features for pairs of labels.

    S_t(y′, y) = T[y′, y] + Σ_{f ∈ x_t} v_tf · R[f, (y′, y)] + Σ_{f ∈ x_{t−1}} v · R′[f, (y′, y)]

(the second sum only if ``both``). Position 0 of a piece has no edge. Here are the functions for
weights that every crossed feature has for all L² pairs; for many labels see
:mod:`trellis.kernels.sparse_edges`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import fragment, inner, kernel
from trellis.kernels.prefetch import prefetch
from trellis.kernels.row_products import add_scaled
from trellis.kernels.scoring import Features
from trellis.kernels.visits import Visits

__all__ = [
    "RichEdges",
    "add_to_dense_rows",
    "feature_row",
    "find_pair",
    "score_dense_edges",
    "score_edge_into",
    "score_edges",
]

Array = np.ndarray[Any, Any]

_AHEAD, _LINE = 3, 16


class RichEdges(NamedTuple):
    """Weights of crossed features on chains.

    ``row`` (F,) is the row of each feature, −1 if it is not crossed, and empty if row f is feature
    f. Row i has the pairs ``pair[ptr[i]:ptr[i + 1]]`` and its weights in the same places of ``R``,
    or, if ``ptr`` is empty, all pairs: (y′, y) at i · L² + y′ · L + y. The rows of R′ follow the
    ``n_crossed`` rows of R.
    """

    row: Array
    ptr: Array
    pair: Array
    R: Array
    n_crossed: int
    both: bool


@inner
def feature_row(row: Array, f: int) -> int:
    """Row of a feature, −1 if it is not crossed."""
    return np.int64(row[f]) if row.size else np.int64(f)  # type: ignore[return-value]  # is an int


@inner
def find_pair(ptr: Array, pair: Array, i: int, wanted: int, n_pairs: int) -> int:
    """Place in R of a pair of row i, −1 if the row lacks it; with ptr empty, rows have all."""
    if ptr.size == 0:
        return int(i) * n_pairs + wanted
    for q in range(ptr[i], ptr[i + 1]):
        if pair[q] == wanted:
            return int(q)
    return -1


@fragment
def score_dense_edges(
    features: Features,
    T: Array,
    dense: RichEdges,
    visits: Visits,
    k: int,
    scale: float,
    edge: Array,
) -> None:
    """Write the scores of the edges of piece k, which has all pairs, to the rows 1 … of ``edge``.

    True weights are scale · R. The rows of the positions to come are fetched on the way.
    """
    indptr, indices, values = features
    row, _, _, R, n_crossed, both = dense
    start = visits.starts[k]
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    for t in range(start, visits.ends[k]):
        at = t - start
        soon = visits.queue[min(visits.first[k] + at + _AHEAD, visits.queue.size - 1)]
        for p in range(indptr[soon], indptr[soon + 1]):
            i = max(feature_row(row, indices[p]), 0)
            for q in range(0, n_pairs, _LINE):
                prefetch(R, i * n_pairs + q, 0)
        if at == 0:
            continue
        for q in range(n_pairs):
            edge[at, q] = 0
        for back in range(2 if both else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i < 0:
                    continue
                base = (i + back * n_crossed) * n_pairs
                v = values[p] if values.size else edge.dtype.type(1)
                add_scaled(edge, at * edge.shape[1], n_pairs, v, R, base)
        for i in range(n_labels):
            for j in range(n_labels):
                edge[at, i * n_labels + j] = scale * edge[at, i * n_labels + j] + T[i, j]


@inner
def add_to_dense_rows(
    features: Features,
    dense: RichEdges,
    t: int,
    gradient: Array,
    at: int,
    low: int,
    high: int,
    gamma: Array,
    R_into: Array,
) -> None:
    """Add the gradient of the edge into t to the rows of the features low … high − 1 at its ends.

    The gradient is in row ``at``.
    """
    indptr, indices, values = features
    n_pairs = gradient.shape[1]
    for back in range(2 if dense.both else 1):
        for p in range(indptr[t - back], indptr[t - back + 1]):
            f = indices[p]
            i = feature_row(dense.row, f)
            if f < low or f >= high or i < 0:
                continue
            v = values[p] if values.size else R_into.dtype.type(1)
            if gamma.size:
                v *= R_into.dtype.type(gamma[f])
            base = (i + back * dense.n_crossed) * n_pairs
            add_scaled(R_into, base, n_pairs, v, gradient, at * n_pairs)


@inner
def score_edge_into(
    features: Features, T: Array, rich: RichEdges, t: int, edge: Array, at: int
) -> None:
    """Write the scores of the edge into position t, for both kinds of weights, to ``edge[at]``."""
    indptr, indices, values = features
    row, ptr, pair, R, n_crossed, both = rich
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    for i in range(n_labels):
        for j in range(n_labels):
            edge[at, i * n_labels + j] = T[i, j]
    for back in range(2 if both else 1):
        for p in range(indptr[t - back], indptr[t - back + 1]):
            i = feature_row(row, indices[p])
            if i < 0:
                continue
            i += back * n_crossed
            v = values[p] if values.size else edge.dtype.type(1)
            if ptr.size:
                for q in range(ptr[i], ptr[i + 1]):
                    edge[at, pair[q]] += v * R[q]
            else:
                add_scaled(edge, at * edge.shape[1], n_pairs, v, R, i * n_pairs)


@kernel
def score_edges(features: Features, T: Array, rich: RichEdges, first: int, last: int) -> Array:
    """Edge scores (last − first, L, L) of positions first..last.

    The edge into a position is that from the position before it, whatever sample that is in; the
    one into the first is T alone.
    """
    n_labels = T.shape[0]
    edge = np.empty((last - first, n_labels * n_labels), T.dtype)
    for i in range(n_labels if last > first else 0):
        for j in range(n_labels):
            edge[0, i * n_labels + j] = T[i, j]
    for t in range(first + 1, last):
        score_edge_into(features, T, rich, t, edge, t - first)
    return edge.reshape(last - first, n_labels, n_labels)
