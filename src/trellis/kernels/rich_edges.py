"""Rich edge features with all label pairs: every crossed feature has L² weights.

    S_t(y′, y) = T[y′, y] + Σ_{f ∈ x_t} v_tf · R[f, (y′, y)] + Σ_{f ∈ x_{t−1}} v · R′[f, (y′, y)]

(the second sum only if ``both``). ``dense`` is the tuple (row, R, n_crossed, both), or None for a
model without such weights: ``row`` (F,) is the row of each feature, −1 if it is not crossed, and
empty if row f is feature f; R (rows · L²,) has pair (y′, y) of row i at i · L² + y′ · L + y; the
rows of R′ follow the ``n_crossed`` rows of R. Position 0 of a piece has no edge.

For many labels see :mod:`trellis.kernels.sparse_edges`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.prefetch import prefetch

__all__ = ["add_to_row", "feature_row", "score_edges", "score_edges_into"]

Array = np.ndarray[Any, Any]

_AHEAD, _LINE = 3, 16


@subkernel
def feature_row(row: Array, f: int) -> int:
    """Row of a feature, −1 if it is not crossed."""
    return np.int64(row[f]) if row.size else np.int64(f)  # type: ignore[return-value]  # is an int


@subkernel
def score_edges_into(
    indptr: Array,
    indices: Array,
    values: Array,
    T: Array,
    dense: Any,
    first: int,
    last: int,
    scale: float,
    edge: Array,
    queue: Array,
    done: int,
) -> None:
    """Write the edge scores into positions first + 1 … last − 1 to the rows 1 … of ``edge``.

    True weights are scale · R; ``queue`` and ``done`` as in ``score_into``.
    """
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    row, R, n_crossed, both = dense
    for t in range(first, last):
        soon = queue[min(done + t - first + _AHEAD, queue.size - 1)]
        for p in range(indptr[soon], indptr[soon + 1]):
            i = max(feature_row(row, indices[p]), 0)
            for q in range(0, n_pairs, _LINE):
                prefetch(R, i * n_pairs + q, 0)
        if t == first:
            continue
        at = t - first
        for q in range(n_pairs):
            edge[at, q] = 0
        for back in range(2 if both else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i < 0:
                    continue
                base = (i + back * n_crossed) * n_pairs
                v = values[p] if values.size else edge.dtype.type(1)
                for q in range(n_pairs):
                    edge[at, q] += v * R[base + q]
        for i in range(n_labels):
            for j in range(n_labels):
                edge[at, i * n_labels + j] = scale * edge[at, i * n_labels + j] + T[i, j]


@subkernel
def add_to_row(R_into: Array, i: int, v: float, edge: Array, at: int) -> None:
    """Row i of R_into += v · edge[at]."""
    base = i * edge.shape[1]
    for q in range(edge.shape[1]):
        R_into[base + q] += v * edge[at, q]


@kernel
def score_edges(
    indptr: Array,
    indices: Array,
    values: Array,
    T: Array,
    row: Array,
    ptr: Array,
    pair: Array,
    R: Array,
    n_crossed: int,
    both: bool,
    first: int,
    last: int,
) -> Array:
    """Edge scores (last − first, L, L) of positions first..last, for both kinds of weights.

    The edge into a position is that from the position before it, whatever sample that is in; the
    one into the first is T alone.
    """
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    edge = np.empty((last - first, n_labels, n_labels), T.dtype)
    for t in range(first, last):
        flat = edge[t - first].reshape(n_pairs)
        for i in range(n_labels):
            for j in range(n_labels):
                flat[i * n_labels + j] = T[i, j]
        for back in range(2 if both else 1):
            if t == first:
                continue
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i < 0:
                    continue
                i += back * n_crossed
                v = values[p] if values.size else edge.dtype.type(1)
                if ptr.size:
                    for q in range(ptr[i], ptr[i + 1]):
                        flat[pair[q]] += v * R[q]
                else:
                    for q in range(n_pairs):
                        flat[q] += v * R[i * n_pairs + q]
    return edge
