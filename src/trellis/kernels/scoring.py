"""Node scores from sparse features: node[t, y] = Σ_{f ∈ x_t} v_tf · W[f, y].

Features are in CSR over positions: ``indptr`` (N+1,), ``indices``, and ``values`` or an empty array
when every feature is an indicator; W is (F, L).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.prefetch import prefetch

__all__ = ["longest_piece", "look_ahead", "score_into", "score_nodes", "visiting_queue"]

Array = np.ndarray[Any, Any]


# Fetching ahead, in positions: weights, then feature ids, then row pointers; floats in a line.
_WEIGHTS_AHEAD, _FEATURES_AHEAD, _POINTERS_AHEAD = 3, 10, 20
_LINE = 16


@kernel
def score_nodes(
    indptr: Array, indices: Array, values: Array, W: Array, first: int, last: int
) -> Array:
    """Node scores (last − first, L) of positions first..last."""
    work = np.empty((1, last - first, W.shape[1]), W.dtype)
    queue = np.arange(first, last)
    score_into(indptr, indices, values, W, first, last, W.dtype.type(1), work, 0, queue, 0)
    node: Array = work[0]
    return node


@subkernel
def longest_piece(starts: Array, ends: Array) -> int:
    """Positions of the longest piece (at least 1)."""
    longest = 1
    for k in range(starts.size):
        longest = max(longest, ends[k] - starts[k])
    return longest


@subkernel
def visiting_queue(starts: Array, ends: Array) -> Array:
    """All positions of the pieces in the order of visiting."""
    total = 0
    for k in range(starts.size):
        total += ends[k] - starts[k]
    queue = np.empty(total, np.int64)
    i = 0
    for k in range(starts.size):
        for t in range(starts[k], ends[k]):
            queue[i] = t
            i += 1
    return queue


@subkernel
def score_into(
    indptr: Array,
    indices: Array,
    values: Array,
    W: Array,
    first: int,
    last: int,
    scale: float,
    work: Array,
    plane: int,
    queue: Array,
    done: int,
) -> None:
    """Write scale · node scores of positions first..last into the first rows of work[plane].

    ``queue`` are all positions in the order of visiting, of which ``done`` came before: what the
    following ones need is fetched on the way, whatever piece they are in.
    """
    n_labels = W.shape[1]
    end = queue.size - 1
    for t in range(first, last):
        r = t - first
        look_ahead(indptr, indices, W, queue, done + r, end)
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


@subkernel
def look_ahead(indptr: Array, indices: Array, W: Array, queue: Array, i: int, end: int) -> None:
    """Fetch what the positions soon to come in the queue need."""
    prefetch(indptr, queue[min(i + _POINTERS_AHEAD, end)], 0)
    later = queue[min(i + _FEATURES_AHEAD, end)]
    for p in range(indptr[later], indptr[later + 1], _LINE):
        prefetch(indices, p, 0)
    soon = queue[min(i + _WEIGHTS_AHEAD, end)]
    for p in range(indptr[soon], indptr[soon + 1]):
        for j in range(0, W.shape[1], _LINE):
            prefetch(W, indices[p], j)
