"""Edge scores of tree-shaped pieces: tables shared by type, or one for each edge.

Without rich edges an edge of type k has the scores T[k] (first, second). With them, edge e has

    M_e = T[k] + Σ_{(r, v) of e} v · R[r],

``rich`` being :class:`RichRows` or None. Edges without direction have M + Mᵀ (``symmetric``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import inner
from trellis.kernels.row_products import add_scaled

__all__ = ["RichRows", "add_to_edge_rows", "make_symmetric", "score_edge"]

Array = np.ndarray[Any, Any]


class RichRows(NamedTuple):
    """Rows of rich weights that each edge of a graph meets, and the weights.

    In CSR over edges: the row r, the value v (empty: all are 1) and the feature of each entry. Row
    r has the pairs ``pair[ptr[r]:ptr[r + 1]]`` and its weights in the same places of ``R``, or all
    L² pairs if ``ptr`` is empty.
    """

    indptr: Array
    rows: Array
    values: Array
    features: Array
    ptr: Array
    pair: Array
    R: Array


@inner
def score_edge(
    T: Array, k: int, rich: Any, e: int, scale: float, symmetric: bool, out: Array, at: int
) -> None:
    """Write the scores of edge e, of type k, to out[at] (L, L); true rich weights are scale · R."""
    n_labels = T.shape[1]
    for i in range(n_labels):
        for j in range(n_labels):
            out[at, i, j] = 0
    if rich is not None:
        indptr, rows, values, _, ptr, pair, R = rich
        for p in range(indptr[e], indptr[e + 1]):
            r = rows[p]
            v = values[p] if values.size else out.dtype.type(1)
            if ptr.size:
                for q in range(ptr[r], ptr[r + 1]):
                    out[at, pair[q] // n_labels, pair[q] % n_labels] += v * R[q]
            else:
                base = np.int64(r) * n_labels * n_labels
                first = at * out.shape[1] * out.shape[2]
                for i in range(n_labels):
                    add_scaled(out, first + i * out.shape[2], n_labels, v, R, base + i * n_labels)
    for i in range(n_labels):
        for j in range(n_labels):
            out[at, i, j] = out[at, i, j] * scale + T[k, i, j]
    if symmetric:
        make_symmetric(out, at)


@inner
def make_symmetric(matrices: Array, at: int) -> None:
    """M ← M + Mᵀ for the matrix ``at``."""
    n = matrices.shape[1]
    for i in range(n):
        matrices[at, i, i] *= 2
        for j in range(i):
            both = matrices[at, i, j] + matrices[at, j, i]
            matrices[at, i, j] = both
            matrices[at, j, i] = both


@inner
def add_to_edge_rows(
    rich: RichRows,
    e: int,
    gradient: Array,
    at: int,
    gamma: Array,
    thread: int,
    n: int,
    R_into: Array,
) -> None:
    """R_into += v · gradient[at] for the rows of edge e that are this thread's, of n threads."""
    indptr, rows, values, features, ptr, pair, _ = rich
    n_pairs = gradient.shape[1]
    for p in range(indptr[e], indptr[e + 1]):
        r = rows[p]
        if r % n != thread:
            continue
        v = values[p] if values.size else gradient.dtype.type(1)
        if gamma.size:
            v *= gradient.dtype.type(gamma[features[p]])
        if ptr.size:
            for q in range(ptr[r], ptr[r + 1]):
                R_into[q] += v * gradient[at, pair[q]]
        else:
            add_scaled(R_into, r * n_pairs, n_pairs, v, gradient, at * n_pairs)
