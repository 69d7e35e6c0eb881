"""Node scores from sparse features, and steps of their weights.

node[t, y] = Σ_{f ∈ x_t} v_tf · W[f, y],   W (F, L)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import inner, kernel
from trellis.kernels.prefetch import prefetch

__all__ = ["Features", "add_to_features", "count_features", "score_into", "score_nodes"]

Array = np.ndarray[Any, Any]


# Fetching ahead, in positions: weights, then feature ids, then row pointers; floats in a line.
_WEIGHTS_AHEAD, _FEATURES_AHEAD, _POINTERS_AHEAD = 3, 10, 20
_LINE = 16


class Features(NamedTuple):
    """Features of all positions in CSR; ``values`` is empty if all are indicators."""

    indptr: Array
    indices: Array
    values: Array


@kernel
def score_nodes(
    indptr: Array, indices: Array, values: Array, W: Array, first: int, last: int
) -> Array:
    """Node scores (last − first, L) of positions first..last."""
    work = np.empty((1, last - first, W.shape[1]), W.dtype)
    features = Features(indptr, indices, values)
    score_into(features, W, np.arange(first, last), 0, last - first, W.dtype.type(1), work, 0)
    node: Array = work[0]
    return node


@kernel
def count_features(features: Features, rows: Array, labels: Array, share: Array, n: Array) -> None:
    """n[f, labels[r]] += share[r] · v_tf of all features f of the positions t = rows[r]."""
    indptr, indices, values = features
    for r in range(rows.size):
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            v = share[r] * values[p] if values.size else share[r]
            n[indices[p], labels[r]] += v


@inner
def score_into(
    features: Features,
    W: Array,
    queue: Array,
    done: int,
    n: int,
    scale: float,
    work: Array,
    plane: int,
) -> None:
    """Write scale · node scores of the positions queue[done:done + n] to the rows of work[plane].

    What the positions after them need is fetched on the way, whatever piece they are in.
    """
    indptr, indices, values = features
    n_labels = W.shape[1]
    for r in range(n):
        _look_ahead(features, W, queue, done + r)
        t = queue[done + r]
        start = indptr[t]
        stop = indptr[t + 1]
        if start == stop:
            for j in range(n_labels):
                work[plane, r, j] = 0
            continue
        f = indices[start]
        v = values[start] if values.size else W.dtype.type(1)
        for j in range(n_labels):
            work[plane, r, j] = v * W[f, j]
        # The test stands outside of the loop, because indicators need no multiplication.
        if values.size:
            for p in range(start + 1, stop):
                f = indices[p]
                v = values[p]
                for j in range(n_labels):
                    work[plane, r, j] += v * W[f, j]
        else:
            for p in range(start + 1, stop):
                f = indices[p]
                for j in range(n_labels):
                    work[plane, r, j] += W[f, j]
        for j in range(n_labels):
            work[plane, r, j] *= scale


@inner
def _look_ahead(features: Features, W: Array, queue: Array, i: int) -> None:
    """Fetch what the positions soon to come in the queue need."""
    indptr, indices, _ = features
    end = queue.size - 1
    prefetch(indptr, queue[min(i + _POINTERS_AHEAD, end)], 0)
    later = queue[min(i + _FEATURES_AHEAD, end)]
    for p in range(indptr[later], indptr[later + 1], _LINE):
        prefetch(indices, p, 0)
    soon = queue[min(i + _WEIGHTS_AHEAD, end)]
    for p in range(indptr[soon], indptr[soon + 1]):
        for j in range(0, W.shape[1], _LINE):
            prefetch(W, indices[p], j)


@inner
def add_to_features(
    features: Features,
    t: int,
    steps: Array,
    row: int,
    low: int,
    high: int,
    gamma: Array,
    fired: Array,
    visit: int,
    W_into: Array,
) -> None:
    """W_into[f] += v · steps[row] for the features f of position t with low ≤ f < high.

    With ``gamma`` the step of f is multiplied by its own rate, and the visit counted in ``fired``.
    """
    indptr, indices, values = features
    kind = W_into.dtype
    for p in range(indptr[t], indptr[t + 1]):
        f = indices[p]
        if f < low or f >= high:
            continue
        v = values[p] if values.size else kind.type(1)
        if gamma.size:
            v *= kind.type(gamma[f])
            if fired[1, f] != visit:
                fired[1, f] = visit
                fired[0, f] += 1
        for j in range(W_into.shape[1]):
            W_into[f, j] += v * steps[row, j]
