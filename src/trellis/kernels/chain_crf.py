"""CRF training on pieces of chains: stochastic gradient steps, and the exact summed gradient.

Pieces are given as ``starts``, ``ends`` and ``weights`` (K,) in the order of visiting; features,
labels and the loss are those of :mod:`trellis.kernels.scoring` and
:mod:`trellis.kernels.chain_lattice`. W (F, L) are node weights, T (L, L) transitions.

Transitions belong to all pieces, so recomputing U = e^T for each would make short pieces dear.
Their gradient is collected and applied after every ``refresh`` positions, so that a pass costs the
same number of refreshes whatever the pieces' size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.chain_lattice import (
    GRADIENT,
    N_TABLES,
    N_WORK,
    NODE,
    OUTER,
    U,
    exponentiate,
    piece_loss,
)
from trellis.kernels.scoring import longest_piece, score_into, visiting_queue

__all__ = ["crf_gradient", "crf_sgd"]

Array = np.ndarray[Any, Any]


@kernel
def crf_sgd(
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
    state: Array,
    rate: float,
    decay: float,
    shrink: float,
    refresh: int,
) -> float:
    """Take one gradient step for each piece in turn; returns the summed weighted loss.

    The k-th step has the rate ``rate · decay^k`` and divides all weights by
    1 + 2 · rate_k · shrink, the proximal step of shrink · ‖w‖². True node weights are
    ``state[0] · W``, so that this division costs one multiplication. W, T, state change in place.
    """
    n_labels = W.shape[1]
    kind = W.dtype
    work = np.empty((N_WORK, longest_piece(starts, ends), n_labels), kind)
    tables = np.zeros((N_TABLES, n_labels, n_labels), kind)
    pairs = np.zeros((n_labels, n_labels), np.float64)
    t_max = exponentiate(T, tables)
    queue = visiting_queue(starts, ends)
    done = 0
    scale = state[0]
    t_scale = 1.0
    pending = 0
    loss = 0.0
    r = rate
    for k in range(starts.size):
        start = starts[k]
        end = ends[k]
        weight = weights[k]
        score_into(
            indptr, indices, values, W, start, end, kind.type(scale), work, NODE, queue, done
        )
        done += end - start
        loss += weight * piece_loss(
            T, t_max, label, start, end, table, weight * r, work, tables, pairs
        )
        step = kind.type(-r * weight / scale)
        for t in range(start, end):
            row = t - start
            for j in range(n_labels):
                work[GRADIENT, row, j] *= step
            if values.size:
                for p in range(indptr[t], indptr[t + 1]):
                    f = indices[p]
                    v = values[p]
                    for j in range(n_labels):
                        W[f, j] += v * work[GRADIENT, row, j]
            else:
                for p in range(indptr[t], indptr[t + 1]):
                    f = indices[p]
                    for j in range(n_labels):
                        W[f, j] += work[GRADIENT, row, j]
        keep = 1.0 / (1.0 + 2.0 * r * shrink)
        scale *= keep
        t_scale *= keep
        pending += end - start
        if pending >= refresh or k == starts.size - 1:
            for i in range(n_labels):
                for j in range(n_labels):
                    expected = tables[U, i, j] * tables[OUTER, i, j]
                    T[i, j] = t_scale * (T[i, j] - expected - pairs[i, j])
                    tables[OUTER, i, j] = 0
                    pairs[i, j] = 0
            t_max = exponentiate(T, tables)
            t_scale = 1.0
            pending = 0
        if scale < 1e-4:  # long before float32 loses digits
            for f in range(W.shape[0]):
                for j in range(n_labels):
                    W[f, j] *= scale
            scale = 1.0
        r *= decay
    state[0] = scale
    return loss


@kernel
def crf_gradient(
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
    G: Array,
    GT: Array,
) -> float:
    """Summed weighted loss of all pieces; its gradient is added to G (F, L) and GT (L, L)."""
    n_labels = W.shape[1]
    kind = W.dtype
    work = np.empty((N_WORK, longest_piece(starts, ends), n_labels), kind)
    tables = np.zeros((N_TABLES, n_labels, n_labels), kind)
    pairs = np.zeros((n_labels, n_labels), np.float64)
    t_max = exponentiate(T, tables)
    queue = visiting_queue(starts, ends)
    done = 0
    loss = 0.0
    for k in range(starts.size):
        start = starts[k]
        end = ends[k]
        score_into(indptr, indices, values, W, start, end, kind.type(1), work, NODE, queue, done)
        done += end - start
        loss += weights[k] * piece_loss(
            T, t_max, label, start, end, table, weights[k], work, tables, pairs
        )
        for t in range(start, end):
            for p in range(indptr[t], indptr[t + 1]):
                v = weights[k] * (values[p] if values.size else 1.0)
                f = indices[p]
                for j in range(n_labels):
                    G[f, j] += v * work[GRADIENT, t - start, j]
    for i in range(n_labels):
        for j in range(n_labels):
            GT[i, j] += tables[U, i, j] * tables[OUTER, i, j] + pairs[i, j]
    return loss
