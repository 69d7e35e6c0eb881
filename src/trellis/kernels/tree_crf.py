"""CRF training on tree-shaped pieces: the twin of :mod:`trellis.kernels.chain_crf`.

Pieces are the nodes [starts[k], ends[k]) of the arrays ``nodes`` (positions of the corpus),
``parent``, ``edge`` and ``down`` (see :mod:`trellis.kernels.tree_lattice`); edge e has the table
``types[e]`` of T (K, L, L) and, with ``rich``, scores of its own
(:mod:`trellis.kernels.tree_edges`).

Mini-batches, chunks, threads, rates, the scale of the weights and the delayed refresh of the
exponentiated tables are as on chains; so is the exact gradient, which is the steps added elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.barrier import meet, take
from trellis.kernels.scoring import longest_piece, look_ahead
from trellis.kernels.tree_edges import add_to_edge_rows, make_symmetric, score_edge
from trellis.kernels.tree_lattice import EXP, GRADIENT, N_WORK, NODE, RAW, fill_table, tree_loss

__all__ = ["score_tree_nodes", "tree_steps"]

Array = np.ndarray[Any, Any]

_CHUNK = 48


@subkernel
def score_tree_nodes(
    indptr: Array,
    indices: Array,
    values: Array,
    W: Array,
    nodes: Array,
    start: int,
    end: int,
    scale: float,
    work: Array,
    queue: Array,
    done: int,
) -> None:
    """Write scale · node scores of the nodes [start, end) into the first rows of work[NODE].

    ``queue`` are all positions in the order of visiting, of which ``done`` came before.
    """
    n_labels = W.shape[1]
    last = queue.size - 1
    for r in range(end - start):
        look_ahead(indptr, indices, W, queue, done + r, last)
        t = nodes[start + r]
        for j in range(n_labels):
            work[NODE, r, j] = 0
        for p in range(indptr[t], indptr[t + 1]):
            f = indices[p]
            v = values[p] if values.size else W.dtype.type(1)
            for j in range(n_labels):
                work[NODE, r, j] += v * W[f, j]
        for j in range(n_labels):
            work[NODE, r, j] *= scale


@kernel
def tree_steps(
    indptr: Array,
    indices: Array,
    values: Array,
    label: Array,
    table: Array,
    nodes: Array,
    parent: Array,
    edge: Array,
    down: Array,
    types: Array,
    starts: Array,
    ends: Array,
    weights: Array,
    W: Array,
    T: Array,
    rich: Any,
    symmetric: bool,
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
    outer: Array,
    pairs: Array,
    losses: Array,
    touched: Array,
    version: Array,
) -> None:
    """Go through the pieces in batches; every thread runs this with its own number ``thread``.

    The parameters are those of :func:`trellis.kernels.chain_crf.crf_steps`; ``outer`` and ``pairs``
    are (C, K, L, L), ``edge_gradient`` (P, L²) with rich edges, else (0, L²). Also shared between
    threads, and zero at first: ``touched`` (C, K), the tables that chunks have added to, and
    ``version`` (K,), which counts the changes of each table.
    """
    n_labels = W.shape[1]
    n_pairs = n_labels * n_labels
    n_types = T.shape[0]
    kind = W.dtype
    n_threads = bounds.size - 1
    low = bounds[thread]
    high = bounds[thread + 1]
    adaptive = gamma.size > 0
    longest = longest_piece(starts, ends)
    work = np.empty((N_WORK, longest, n_labels), kind)
    n_slots = n_types if rich is None else longest
    tables = np.zeros((3, n_slots, n_labels, n_labels), kind)
    peak = np.zeros(n_slots, kind)
    slot = np.zeros(longest, np.int64)
    edge_out = np.zeros((0 if rich is None else longest, n_pairs), kind)
    total = np.zeros((n_types, n_labels, n_labels), np.float64)
    seen = np.zeros(n_types, np.int64)
    if rich is None:
        for k in range(n_types):
            score_edge(T, k, rich, 0, kind.type(1), symmetric, tables[RAW], k)
            fill_table(tables, peak, k)
    first = np.empty(starts.size + 1, np.int64)
    first[0] = 0
    for k in range(starts.size):
        first[k + 1] = first[k] + ends[k] - starts[k]
    queue = np.empty(first[starts.size], np.int64)
    for k in range(starts.size):
        for i in range(ends[k] - starts[k]):
            queue[first[k] + i] = nodes[starts[k] + i]
    scale = state[0]
    counted = np.int64(state[1])
    t_scale = 1.0
    pending = 0
    r = rate
    k0 = 0
    while k0 < starts.size:
        k1 = min(k0 + batch, starts.size)
        n_chunks = min(losses.size, 1 + (first[k1] - first[k0]) // _CHUNK, k1 - k0)
        # 1. Gradients of the scores: whoever is free takes the next chunk.
        c = 0 if n_threads == 1 else take(sync)
        while c < n_chunks:
            a = k0 + c * (k1 - k0) // n_chunks
            r_k = r * decay ** (a - k0)
            for k in range(a, k0 + (c + 1) * (k1 - k0) // n_chunks):
                start = starts[k]
                end = ends[k]
                weight = weights[k]
                score_tree_nodes(
                    indptr, indices, values, W, nodes, start, end, kind.type(scale), work,
                    queue, first[k],
                )  # fmt: skip
                pace = gamma[gamma.size - 1] if adaptive else r_k
                for i in range(end - start):
                    if parent[start + i] >= 0:
                        e = edge[start + i]
                        if rich is None:
                            slot[i] = types[e]
                        else:
                            slot[i] = i
                            score_edge(
                                T, types[e], rich, e, kind.type(scale), symmetric, tables[RAW], i
                            )
                            fill_table(tables, peak, i)
                loss = tree_loss(
                    label, table, nodes, parent, down, start, end, slot, tables, peak, work,
                    weight * pace, outer, pairs, c, edge_out,
                )  # fmt: skip
                losses[c] += weight * loss
                row = first[k] - first[k0]
                step = kind.type(-weight) if adaptive else kind.type(-r_k * weight / scale)
                for i in range(end - start):
                    for j in range(n_labels):
                        gradient[row + i, j] = step * work[GRADIENT, i, j]
                    if parent[start + i] < 0:
                        continue
                    which = types[edge[start + i]]
                    touched[c, which] = 1
                    if rich is not None:
                        for q in range(n_pairs):
                            pairs[c, which, q // n_labels, q % n_labels] += (
                                weight * pace * edge_out[i, q]
                            )
                        if symmetric:
                            make_symmetric(edge_out.reshape(longest, n_labels, n_labels), i)
                        for q in range(n_pairs):
                            edge_gradient[row + i, q] = step * edge_out[i, q]
                r_k *= decay
            c = c + 1 if n_threads == 1 else take(sync)
        meet(sync, n_threads)
        # 2. Steps of the features of this thread.
        for k in range(k0, k1):
            start = starts[k]
            for i in range(start, ends[k]):
                t = nodes[i]
                row = first[k] - first[k0] + i - start
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
                if rich is not None and parent[i] >= 0:
                    add_to_edge_rows(
                        rich, edge[i], edge_gradient, row, R_into, gamma, thread, n_threads
                    )
        keep = 1.0
        for _ in range(k0, k1):
            keep /= 1.0 + 2.0 * r * shrink
            r *= decay
        scale *= keep
        t_scale *= keep
        pending += first[k1] - first[k0]
        renew = pending >= refresh or k1 == starts.size or rich is not None
        if thread == 0:
            sync[2] = 0
            if adaptive:
                for k in range(k0, k1):
                    fired[0, gamma.size - 1] += 1 if ends[k] - starts[k] > 1 else 0
        if renew and thread == 0:
            for which in range(n_types):
                changed = False
                for c in range(losses.size):
                    if not touched[c, which]:
                        continue
                    changed = True
                    touched[c, which] = 0
                    for i in range(n_labels):
                        for j in range(n_labels):
                            total[which, i, j] += pairs[c, which, i, j]
                            if rich is None:
                                total[which, i, j] += (
                                    tables[EXP, which, i, j] * outer[c, which, i, j]
                                )
                            outer[c, which, i, j] = 0
                            pairs[c, which, i, j] = 0
                if changed:
                    version[which] += 1
                    if symmetric:
                        make_symmetric(total, which)
                for i in range(n_labels):
                    for j in range(n_labels):
                        T_into[which, i, j] = t_scale * (T_into[which, i, j] - total[which, i, j])
                        total[which, i, j] = 0
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
            if rich is None:
                # A table nobody has added to only shrinks a little: that can wait.
                for which in range(n_types):
                    if seen[which] != version[which]:
                        seen[which] = version[which]
                        score_edge(T, which, rich, 0, kind.type(1), symmetric, tables[RAW], which)
                        fill_table(tables, peak, which)
            t_scale = 1.0
            pending = 0
        k0 = k1
    if thread == 0:
        state[0] = scale
        state[1] = counted + starts.size
