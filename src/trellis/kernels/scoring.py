"""Node scores from sparse features, and steps of their weights.

node[t, y] = Σ_{f ∈ x_t} v_tf · W[f, y],   W (F, L)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import fragment, inner, kernel
from trellis.kernels.lanes import load, load_half, put, spread, spread_half, store
from trellis.kernels.prefetch import prefetch
from trellis.kernels.row_products import add_scaled

__all__ = [
    "Features",
    "add_to_features",
    "count_features",
    "score_allowed",
    "score_into",
    "score_nodes",
]

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
    n_labels = W.shape[1]
    node = np.empty((last - first, n_labels), W.dtype)
    features = Features(indptr, indices, values)
    queue = np.arange(first, last)
    score_into(features, W, queue, 0, last - first, W.dtype.type(1), node, 0, n_labels)
    return node


@kernel
def score_allowed(features: Features, W: Array, allowed: Array, first: int) -> Array:
    """Node scores (n, L) of the positions from ``first`` on, −inf where not ``allowed`` (n, L).

    What is not allowed costs nothing where it is most of the labels.
    """
    n, n_labels = allowed.shape
    node = np.full((n, n_labels), -np.inf, W.dtype)
    queue = np.arange(first, first + n)
    few = np.empty(n_labels, np.int64)
    for r in range(n):
        k = 0
        for j in range(n_labels):
            few[k] = j
            k += allowed[r, j]
        if 8 * k > n_labels:
            score_into(features, W, queue, r, 1, W.dtype.type(1), node, r * n_labels, n_labels)
            for j in range(n_labels):
                if not allowed[r, j]:
                    node[r, j] = -np.inf
            continue
        p0, p1 = features.indptr[first + r], features.indptr[first + r + 1]
        for q in range(k):
            x = W.dtype.type(0)
            for p in range(p0, p1):
                x += _value(features, p, W) * W[features.indices[p], few[q]]
            node[r, few[q]] = x
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
    to: int,
    width: int,
) -> None:
    """Write scale · node scores of the positions queue[done:done + n] to rows of ``work``.

    These begin at the place ``to``, ``width`` numbers apart. What the positions after them need is
    fetched on the way, whatever piece they are in.
    """
    indptr = features.indptr
    n_labels = W.shape[1]
    for r in range(n):
        _look_ahead(features, W, queue, done + r)
        t = queue[done + r]
        p0 = indptr[t]
        p1 = indptr[t + 1]
        j = 0
        while n_labels - j > 16:
            last = min(j + 16, n_labels - 8)
            _sum_24(features, W, p0, p1, j, last, scale, work, to)
            j += 24
        if n_labels - j > 8:
            _sum_16(features, W, p0, p1, j, n_labels - 8, scale, work, to)
        elif n_labels - j > 0 and n_labels >= 8:
            _sum_16(features, W, p0, p1, n_labels - 8, n_labels - 8, scale, work, to)
        elif n_labels >= 4 and n_labels < 8:
            _sum_8(features, W, p0, p1, n_labels - 4, scale, work, to)
        elif n_labels < 4:
            for j in range(n_labels):
                sum_j = W.dtype.type(0)
                for p in range(p0, p1):
                    sum_j += _value(features, p, W) * W[features.indices[p], j]
                put(work, to + j, scale * sum_j)
        to += width


@fragment
def _value(features: Features, p: int, W: Array) -> float:
    """Value of a feature."""
    value: float = features.values[p] if features.values.size else W.dtype.type(1)
    return value


# Sums of some labels over the features p0 … p1 − 1 of a position, in registers.


@fragment
def _sum_24(
    features: Features,
    W: Array,
    p0: int,
    p1: int,
    j: int,
    last: int,
    scale: float,
    work: Array,
    to: int,
) -> None:
    """Labels j … j + 15 and last … last + 7."""
    x = y = z = spread(W.dtype.type(0))
    for p in range(p0, p1):
        row = np.int64(features.indices[p]) * W.shape[1]
        v = spread(_value(features, p, W))
        x += v * load(W, row + j)
        y += v * load(W, row + j + 8)
        z += v * load(W, row + last)
    by = spread(scale)
    store(work, to + j, by * x)
    store(work, to + j + 8, by * y)
    store(work, to + last, by * z)


@fragment
def _sum_16(
    features: Features,
    W: Array,
    p0: int,
    p1: int,
    j: int,
    last: int,
    scale: float,
    work: Array,
    to: int,
) -> None:
    """Labels j … j + 7 and last … last + 7."""
    x = y = spread(W.dtype.type(0))
    for p in range(p0, p1):
        row = np.int64(features.indices[p]) * W.shape[1]
        v = spread(_value(features, p, W))
        x += v * load(W, row + j)
        y += v * load(W, row + last)
    by = spread(scale)
    store(work, to + j, by * x)
    store(work, to + last, by * y)


@fragment
def _sum_8(
    features: Features,
    W: Array,
    p0: int,
    p1: int,
    last: int,
    scale: float,
    work: Array,
    to: int,
) -> None:
    """Labels 0 … 3 and last … last + 3."""
    x = y = spread_half(W.dtype.type(0))
    for p in range(p0, p1):
        row = np.int64(features.indices[p]) * W.shape[1]
        v = spread_half(_value(features, p, W))
        x += v * load_half(W, row)
        y += v * load_half(W, row + last)
    by = spread_half(scale)
    store(work, to, by * x)
    store(work, to + last, by * y)


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
        prefetch(W, indices[p], W.shape[1] - 1)  # rows do not begin where lines do


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
    n = W_into.shape[1]
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
        add_scaled(W_into, np.int64(f) * n, n, v, steps, row * steps.shape[1])
