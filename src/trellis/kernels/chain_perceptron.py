"""Averaged structured perceptron on pieces of chains (Collins 2002).

For each piece: ŷ = argmax s(y); if ŷ leaves the annotation, w ← w + φ(y*) − φ(ŷ), where y* is the
gold labelling or, under partial annotation, the best one allowed. The result is the average of w
over all visits, kept lazily: with visits numbered c and updates Δ_k made at visit c_k,

    average = w − Σ_k (c_k − 1) Δ_k / c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.chain_lattice import FULLY, NOTHING, annotation
from trellis.kernels.scoring import longest_piece, score_into, visiting_queue

__all__ = ["averaged_perceptron"]

Array = np.ndarray[Any, Any]

# Rows of the workspace (2, longest piece, L): node scores, and scores of the best paths so far.
NODE, SCORE = range(2)


@subkernel
def _best_path(work: Array, T: Array, n: int, path: Array) -> None:
    """Viterbi of one piece without back-pointers: the winner is found again on the way back."""
    n_labels = T.shape[0]
    for j in range(n_labels):
        work[SCORE, 0, j] = work[NODE, 0, j]
    for t in range(1, n):
        for j in range(n_labels):
            work[SCORE, t, j] = -np.inf
        i = 0
        while i + 2 <= n_labels:
            a = work[SCORE, t - 1, i]
            b = work[SCORE, t - 1, i + 1]
            for j in range(n_labels):
                work[SCORE, t, j] = max(work[SCORE, t, j], a + T[i, j], b + T[i + 1, j])
            i += 2
        if i < n_labels:
            a = work[SCORE, t - 1, i]
            for j in range(n_labels):
                work[SCORE, t, j] = max(work[SCORE, t, j], a + T[i, j])
        for j in range(n_labels):
            work[SCORE, t, j] += work[NODE, t, j]
    path[n - 1] = np.argmax(work[SCORE, n - 1])
    for t in range(n - 2, -1, -1):
        y = path[t + 1]
        best = -np.inf
        path[t] = 0
        for i in range(n_labels):
            s = work[SCORE, t, i] + T[i, y]
            if s > best:
                best = s
                path[t] = i


@kernel
def averaged_perceptron(
    indptr: Array,
    indices: Array,
    values: Array,
    label: Array,
    table: Array,
    starts: Array,
    ends: Array,
    weights: Array,
    W: Array,
    T: Array,
    W_sum: Array,
    T_sum: Array,
    state: Array,
) -> float:
    """Visit the pieces in turn; returns the (weighted) number of positions labelled wrongly.

    ``state[0]`` counts visits; W, T, W_sum, T_sum (the lazy sums) and state change in place.
    """
    n_labels = W.shape[1]
    longest = longest_piece(starts, ends)
    work = np.empty((2, longest, n_labels), W.dtype)
    path = np.empty(longest, np.int32)
    gold = np.empty(longest, np.int32)
    count = state[0]
    wrong = 0.0
    queue = visiting_queue(starts, ends)
    seen = 0
    for k in range(starts.size):
        start = starts[k]
        end = ends[k]
        n = end - start
        weight = weights[k]
        count += 1
        done = seen
        seen += n
        kind = annotation(label, start, end, n_labels)
        if kind == NOTHING:
            continue
        score_into(indptr, indices, values, W, start, end, W.dtype.type(1), work, NODE, queue, done)
        _best_path(work, T, n, path)
        errors = 0
        for t in range(n):
            if not table[label[start + t], path[t]]:
                errors += 1
        if errors == 0:
            continue
        wrong += weight * errors
        if kind == FULLY:
            for t in range(n):
                gold[t] = label[start + t]
        else:
            for t in range(n):
                for j in range(n_labels):
                    if not table[label[start + t], j]:
                        work[NODE, t, j] = -np.inf
            _best_path(work, T, n, gold)
        step = W.dtype.type(weight)
        late = (count - 1) * weight
        for t in range(n):
            good = gold[t]
            bad = path[t]
            if good != bad:
                for p in range(indptr[start + t], indptr[start + t + 1]):
                    f = indices[p]
                    v = values[p] if values.size else W.dtype.type(1)
                    W[f, good] += step * v
                    W[f, bad] -= step * v
                    W_sum[f, good] += late * v
                    W_sum[f, bad] -= late * v
            if t > 0 and (good != bad or gold[t - 1] != path[t - 1]):
                T[gold[t - 1], good] += step
                T[path[t - 1], bad] -= step
                T_sum[gold[t - 1], good] += late
                T_sum[path[t - 1], bad] -= late
    state[0] = count
    return wrong
