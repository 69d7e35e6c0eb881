"""Averaged structured perceptron on pieces of chains (Collins 2002).

For each piece: ŷ = argmax s(y); if ŷ leaves the annotation, w ← w + φ(y*) − φ(ŷ), where y* is the
gold labelling or, under partial annotation, the best one allowed. The result is the average of w
over all visits, kept lazily: with visits numbered c and updates Δ_k made at visit c_k,

    average = w − Σ_k (c_k − 1) Δ_k / c.

Pieces come in mini-batches, all of whose paths are found with the same weights; work is divided
among threads as in :mod:`trellis.kernels.chain_crf`: pieces first, then ranges of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.barrier import meet
from trellis.kernels.chain_lattice import FULLY, NOTHING, annotation
from trellis.kernels.rich_edges import feature_row
from trellis.kernels.scoring import longest_piece, score_into, visiting_queue
from trellis.kernels.sparse_edges import find_pair

__all__ = ["averaged_perceptron"]

Array = np.ndarray[Any, Any]

# Planes of the workspace (2, longest piece, L): node scores, and scores of the best paths so far.
NODE, SCORE = range(2)


@subkernel
def _best_path(work: Array, T: Array, edge: Array, n: int, path: Array, at: int) -> None:
    """Viterbi of one piece without back-pointers: the winner is found again on the way back.

    Edge scores are T, or edge[t] if that is not empty; the path goes to path[at:at + n].
    """
    n_labels = T.shape[0]
    rich = edge.size > 0
    for j in range(n_labels):
        work[SCORE, 0, j] = work[NODE, 0, j]
    for t in range(1, n):
        for j in range(n_labels):
            work[SCORE, t, j] = -np.inf
        if rich:
            for i in range(n_labels):
                a = work[SCORE, t - 1, i]
                for j in range(n_labels):
                    work[SCORE, t, j] = max(work[SCORE, t, j], a + edge[t, i * n_labels + j])
        else:
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
    path[at + n - 1] = np.argmax(work[SCORE, n - 1])
    for t in range(n - 2, -1, -1):
        y = path[at + t + 1]
        best = -np.inf
        path[at + t] = 0
        for i in range(n_labels):
            s = work[SCORE, t, i] + (edge[t + 1, i * n_labels + y] if rich else T[i, y])
            if s > best:
                best = s
                path[at + t] = i


@subkernel
def _score_edges(
    indptr: Array,
    indices: Array,
    values: Array,
    T: Array,
    rich: Any,
    R: Array,
    start: int,
    end: int,
    edge: Array,
) -> None:
    """Write the edge scores into positions start + 1 … end − 1 to the rows 1 … of ``edge``."""
    row, ptr, pair, n_crossed, both = rich
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    for t in range(start + 1, end):
        at = t - start
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
                    for q in range(n_pairs):
                        edge[at, q] += v * R[i * n_pairs + q]


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
    rich: Any,
    W_sum: Array,
    T_sum: Array,
    R: Array,
    R_sum: Array,
    state: Array,
    batch: int,
    bounds: Array,
    thread: int,
    sync: Array,
    path: Array,
    gold: Array,
    wrong: Array,
) -> None:
    """Visit the pieces in batches; every thread runs this with its own number ``thread``.

    ``rich`` is (row, ptr, pair, n_crossed, both), see :mod:`trellis.kernels.sparse_edges`, with an
    empty ``ptr`` if rows have all pairs; or None. ``state[0]`` counts visits; W, T, R, their lazy
    sums and state change in place. Shared between threads: ``path`` and ``gold`` (P,) for the
    positions of a batch, and ``wrong`` (K,), which gets the (weighted) number of positions of each
    piece labelled wrongly.
    """
    n_labels = W.shape[1]
    n_threads = bounds.size - 1
    low = bounds[thread]
    high = bounds[thread + 1]
    longest = longest_piece(starts, ends)
    work = np.empty((2, longest, n_labels), W.dtype)
    edge = np.zeros((0 if rich is None else longest, n_labels * n_labels), W.dtype)
    one = W.dtype.type(1)
    count = state[0]
    queue = visiting_queue(starts, ends)
    first = np.empty(starts.size + 1, np.int64)
    first[0] = 0
    for k in range(starts.size):
        first[k + 1] = first[k] + ends[k] - starts[k]
    k0 = 0
    while k0 < starts.size:
        k1 = min(k0 + batch, starts.size)
        for k in range(k0 + thread, k1, n_threads):
            start = starts[k]
            end = ends[k]
            n = end - start
            at = first[k] - first[k0]
            wrong[k] = 0
            kind = annotation(label, start, end, n_labels)
            if kind == NOTHING:
                continue
            score_into(indptr, indices, values, W, start, end, one, work, NODE, queue, first[k])
            if rich is not None:
                _score_edges(indptr, indices, values, T, rich, R, start, end, edge)
            _best_path(work, T, edge, n, path, at)
            errors = 0
            for t in range(n):
                if not table[label[start + t], path[at + t]]:
                    errors += 1
            if errors == 0:
                continue
            wrong[k] = weights[k] * errors
            if kind == FULLY:
                for t in range(n):
                    gold[at + t] = label[start + t]
            else:
                for t in range(n):
                    for j in range(n_labels):
                        if not table[label[start + t], j]:
                            work[NODE, t, j] = -np.inf
                _best_path(work, T, edge, n, gold, at)
        meet(sync, n_threads)
        for k in range(k0, k1):
            if wrong[k] == 0:
                continue
            start = starts[k]
            at = first[k] - first[k0]
            step = W.dtype.type(weights[k])
            late = (count + k) * weights[k]
            for t in range(ends[k] - start):
                good = gold[at + t]
                bad = path[at + t]
                good_pair = -1
                bad_pair = -1
                if t > 0:
                    good_pair = gold[at + t - 1] * n_labels + good
                    bad_pair = path[at + t - 1] * n_labels + bad
                if good == bad and good_pair == bad_pair:
                    continue
                if good != bad:
                    for p in range(indptr[start + t], indptr[start + t + 1]):
                        f = indices[p]
                        if f < low or f >= high:
                            continue
                        v = values[p] if values.size else one
                        W[f, good] += step * v
                        W[f, bad] -= step * v
                        W_sum[f, good] += late * v
                        W_sum[f, bad] -= late * v
                if good_pair != bad_pair:
                    if thread == 0:
                        T[good_pair // n_labels, good] += step
                        T[bad_pair // n_labels, bad] -= step
                        T_sum[good_pair // n_labels, good] += late
                        T_sum[bad_pair // n_labels, bad] -= late
                    if rich is not None:
                        for back in range(2 if rich[4] else 1):
                            for p in range(indptr[start + t - back], indptr[start + t - back + 1]):
                                f = indices[p]
                                i = feature_row(rich[0], f)
                                if f < low or f >= high or i < 0:
                                    continue
                                v = values[p] if values.size else one
                                i += back * rich[3]
                                q = find_pair(rich[1], rich[2], i, good_pair, n_labels * n_labels)
                                if q >= 0:
                                    R[q] += step * v
                                    R_sum[q] += late * v
                                q = find_pair(rich[1], rich[2], i, bad_pair, n_labels * n_labels)
                                if q >= 0:
                                    R[q] -= step * v
                                    R_sum[q] -= late * v
        meet(sync, n_threads)
        k0 = k1
    if thread == 0:
        state[0] = count + starts.size
