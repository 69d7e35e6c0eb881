"""CRF training on pieces of chains: gradient steps in mini-batches, one by one or all in one.

Pieces are given as ``starts``, ``ends`` and ``weights`` (K,) in the order of visiting; features,
labels and the loss are those of :mod:`trellis.kernels.scoring` and
:mod:`trellis.kernels.chain_lattice`. W (F, L) are node weights, T (L, L) transitions; rich
edge features have weights in ``dense`` (:mod:`trellis.kernels.rich_edges`) or ``sparse``
(:mod:`trellis.kernels.sparse_edges`), which are None otherwise.

A mini-batch is a number of consecutive pieces whose gradients are taken at the same weights:

1. gradients of the scores of every position, a chunk of pieces at a time (threads take chunks);
2. their addition to the weights, position by position (threads take ranges of features).

A chunk is a fixed part of a batch and a weight belongs to one thread, so every sum is taken in the
same order whatever the number of threads. A batch of one piece is plain stochastic gradient
descent. The exact gradient of the summed loss is the same computation with the steps added
elsewhere: ``W_into``, ``T_into``, ``R_into``.

Transitions belong to all pieces, so recomputing U = e^T for each would make short pieces dear.
Their gradient is collected and applied after ``refresh`` or more positions, so that a pass costs
the same number of refreshes whatever the pieces' size. (Dense rich edges need U at every position
anyway; there they are applied after each batch.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.barrier import meet, take
from trellis.kernels.chain_lattice import (
    GRADIENT,
    N_TABLES,
    N_WORK,
    NODE,
    U,
    exponentiate,
    piece_loss,
)
from trellis.kernels.rich_edges import add_to_row, feature_row, score_edges_into
from trellis.kernels.rich_lattice import rich_piece_loss
from trellis.kernels.scoring import longest_piece, score_into, visiting_queue
from trellis.kernels.sparse_edges import add_to_rows, hit_pairs

__all__ = ["crf_steps"]

Array = np.ndarray[Any, Any]

# Positions that are worth a chunk of their own: each costs an addition of L × L numbers.
_CHUNK = 48


@kernel
def crf_steps(
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
    dense: Any,
    sparse: Any,
    W_into: Array,
    T_into: Array,
    R_into: Array,
    gamma: Array,
    fired: Array,
    state: Array,
    rate: float,
    decay: float,
    shrink: float,
    refresh: int,
    batch: int,
    bounds: Array,
    thread: int,
    sync: Array,
    gradient: Array,
    edge_gradient: Array,
    hits: Any,
    outer: Array,
    pairs: Array,
    losses: Array,
) -> None:
    """Go through the pieces in batches; every thread runs this with its own number ``thread``.

    The k-th piece has the rate ``rate · decay^k``, and all weights are divided by
    1 + 2 · rate_k · shrink, the proximal step of shrink · ‖w‖². True node and edge weights are
    ``state[0]`` times those stored, so that this division costs one multiplication; ``state[1]``
    counts pieces. With ``gamma`` (F + 1,) each feature has a rate of its own instead, the last
    entry being that of the transitions, and ``fired`` (2, F + 1) counts the pieces that each
    occurs in (row 1 remembers the last one counted).

    Threads own the features ``bounds[thread]:bounds[thread + 1]``. Shared between them: ``sync``
    (:mod:`trellis.kernels.barrier`), ``gradient`` (P, L) and, if dense, ``edge_gradient`` (P, L²)
    for the P positions of the largest batch, ``hits`` of a batch or None, and ``outer`` (C, L, L),
    ``pairs`` (C, L, L), ``losses`` (C,), zero at first, for C chunks. The losses, weighted, are in
    ``losses``.
    """
    n_labels = W.shape[1]
    n_pairs = n_labels * n_labels
    kind = W.dtype
    n_threads = bounds.size - 1
    low = bounds[thread]
    high = bounds[thread + 1]
    used = 0
    adaptive = gamma.size > 0
    longest = longest_piece(starts, ends)
    work = np.empty((N_WORK, longest, n_labels), kind)
    tables = np.zeros((N_TABLES, n_labels, n_labels), kind)
    total = np.zeros((n_labels, n_labels), np.float64)
    t_max = exponentiate(T, tables)
    if dense is not None:
        edge = np.zeros((longest, n_pairs), kind)
        scratch = np.empty((2, longest, n_pairs), kind)
    room = 0 if sparse is None else longest
    shares = (np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))
    mark = np.full((2, n_pairs if room else 0), -1, np.int64)
    share = np.zeros(0 if sparse is None else starts.size + 1, np.int64)
    if sparse is not None:
        for k in range(starts.size):
            share[k + 1] = share[k] + sparse[6][ends[k]] - sparse[6][starts[k]]
    queue = visiting_queue(starts, ends)
    first = np.empty(starts.size + 1, np.int64)
    first[0] = 0
    for k in range(starts.size):
        first[k + 1] = first[k] + ends[k] - starts[k]
    scale = state[0]
    counted = np.int64(state[1])
    t_scale = 1.0
    pending = 0
    r = rate
    k0 = 0
    while k0 < starts.size:
        k1 = min(k0 + batch, starts.size)
        n_chunks = min(losses.size, 1 + (first[k1] - first[k0]) // _CHUNK, k1 - k0)
        used = max(used, n_chunks)
        # 1. Gradients of the scores: whoever is free takes the next chunk.
        c = 0 if n_threads == 1 else take(sync)
        while c < n_chunks:
            a = k0 + c * (k1 - k0) // n_chunks
            r_k = r * decay ** (a - k0)
            for k in range(a, k0 + (c + 1) * (k1 - k0) // n_chunks):
                start = starts[k]
                end = ends[k]
                weight = weights[k]
                score_into(
                    indptr, indices, values, W, start, end, kind.type(scale), work, NODE,
                    queue, first[k],
                )  # fmt: skip
                pace = gamma[gamma.size - 1] if adaptive else r_k
                if sparse is not None:
                    hit_pairs(
                        indptr, indices, values, tables, sparse, start, end, kind.type(scale),
                        label, hits, share[k] - share[k0],
                        shares[0], shares[1], shares[2], mark, queue, first[k],
                    )  # fmt: skip
                if dense is None:
                    loss = piece_loss(
                        T, t_max, label, start, end, table, weight * pace,
                        work, tables, outer, pairs, c, hits, shares,
                    )  # fmt: skip
                else:
                    score_edges_into(
                        indptr, indices, values, T, dense, start, end, kind.type(scale), edge,
                        queue, first[k],
                    )  # fmt: skip
                    loss = rich_piece_loss(label, start, end, table, work, edge, scratch)
                losses[c] += weight * loss
                row = first[k] - first[k0]
                step = kind.type(-weight) if adaptive else kind.type(-r_k * weight / scale)
                for t in range(end - start):
                    for j in range(n_labels):
                        gradient[row + t, j] = step * work[GRADIENT, t, j]
                if sparse is not None:
                    for t in range(1, end - start):
                        for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                            hits[4][h] *= step
                if dense is not None:
                    for t in range(1, end - start):
                        for q in range(n_pairs):
                            edge_gradient[row + t, q] = step * edge[t, q]
                        for i in range(n_labels):
                            for j in range(n_labels):
                                pairs[c, i, j] += weight * pace * edge[t, i * n_labels + j]
                r_k *= decay
            c = c + 1 if n_threads == 1 else take(sync)
        meet(sync, n_threads)
        # 2. Steps of the features of this thread.
        for k in range(k0, k1):
            start = starts[k]
            end = ends[k]
            for t in range(start, end):
                row = first[k] - first[k0] + t - start
                for p in range(indptr[t], indptr[t + 1]):
                    f = indices[p]
                    if f < low or f >= high:
                        continue
                    v = values[p] if values.size else kind.type(1)
                    if adaptive:
                        v *= kind.type(gamma[f])
                        if fired[1, f] != counted + k:
                            fired[1, f] = counted + k
                            fired[0, f] += 1
                    for j in range(n_labels):
                        W_into[f, j] += v * gradient[row, j]
                    if dense is not None:
                        i = feature_row(dense[0], f)
                        if i >= 0:
                            if t > start:
                                add_to_row(R_into, i, v, edge_gradient, row)
                            if dense[3] and t + 1 < end:
                                add_to_row(R_into, dense[2] + i, v, edge_gradient, row + 1)
            if sparse is not None:
                add_to_rows(
                    indptr, indices, values, sparse, start, end, hits, share[k] - share[k0],
                    R_into, gamma, low, high,
                )  # fmt: skip
        keep = 1.0
        for _ in range(k0, k1):
            keep /= 1.0 + 2.0 * r * shrink
            r *= decay
        scale *= keep
        t_scale *= keep
        pending += first[k1] - first[k0]
        renew = pending >= refresh or k1 == starts.size or dense is not None
        if thread == 0:
            sync[2] = 0
            if adaptive:
                for k in range(k0, k1):
                    fired[0, gamma.size - 1] += 1 if ends[k] - starts[k] > 1 else 0
            if renew:
                for c in range(used):
                    for i in range(n_labels):
                        for j in range(n_labels):
                            total[i, j] += tables[U, i, j] * outer[c, i, j] + pairs[c, i, j]
                            outer[c, i, j] = 0
                            pairs[c, i, j] = 0
                for i in range(n_labels):
                    for j in range(n_labels):
                        T_into[i, j] = t_scale * (T_into[i, j] - total[i, j])
                        total[i, j] = 0
        if scale < 1e-4:  # long before float32 loses digits
            meet(sync, n_threads)
            if thread == 0:
                for f in range(W_into.shape[0]):
                    for j in range(n_labels):
                        W_into[f, j] *= scale
                for q in range(R_into.size):
                    R_into[q] *= scale
            scale = 1.0
        meet(sync, n_threads)
        if renew:
            if dense is None:
                t_max = exponentiate(T, tables)
            t_scale = 1.0
            pending = 0
            used = 0
        k0 = k1
    if thread == 0:
        state[0] = scale
        state[1] = counted + starts.size
