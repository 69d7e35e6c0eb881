"""CRF training on pieces: gradient steps in mini-batches, one by one or all in one.

A mini-batch is a number of consecutive pieces whose gradients are taken at the same weights:

1. gradients of the scores of every position, a chunk of pieces at a time (threads take chunks);
2. their addition to the weights, position by position (threads take ranges of features).

A chunk is a fixed part of a batch and a weight belongs to one thread, so every sum is taken in the
same order whatever the number of threads. A batch of one piece is plain stochastic gradient
descent. The exact gradient of the summed loss is the same computation with the steps added
elsewhere.

Transitions belong to all pieces, so recomputing e^T for each would make short pieces dear. Their
gradient is collected and applied after ``refresh`` or more positions, so that a pass costs the same
number of refreshes whatever the pieces' size. (Edges that have scores of their own are
exponentiated one by one anyway; there it is applied after each batch.)

Pieces are of chains or of trees. The loop is the same; what differs, the gradient of one piece and
the refresh, is in :mod:`trellis.kernels.chain_crf` and :mod:`trellis.kernels.tree_crf`. Numba drops
a branch that is taken only if an argument is not None, where it is None: so the loop is compiled
apart for both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import inner, kernel
from trellis.kernels.barrier import meet, take
from trellis.kernels.chain_crf import add_chain_edges, apply_chain_steps, chain_gradient, hit_bounds
from trellis.kernels.chain_edges import DENSE, LISTED
from trellis.kernels.chain_lattice import add_held, chain_space, exponentiate
from trellis.kernels.listed_pairs import apply_listed_steps
from trellis.kernels.prefetch import prefetch
from trellis.kernels.scoring import Features, add_to_features, score_into
from trellis.kernels.tree_crf import (
    add_tree_edges,
    apply_tree_steps,
    exponentiate_tables,
    tree_gradient,
)
from trellis.kernels.tree_lattice import tree_space
from trellis.kernels.visits import LabelSets, Pieces, longest_piece, visits_of

__all__ = ["Rates", "Shared", "Steps", "crf_steps"]

Array = np.ndarray[Any, Any]

# Positions that are worth a chunk of their own: each costs an addition of L × L numbers.
_CHUNK = 48
# Pieces whose labels are fetched ahead.
_PIECES_AHEAD = 2
# Stored weights are multiplied by the scale when it falls below: long before float32 loses digits.
_LEAST_SCALE = 1e-4


class Rates(NamedTuple):
    """How far the steps go, and what the penalty takes.

    The k-th piece has the rate ``rate · decay^k``, and all weights are divided by
    1 + 2 · rate_k · shrink, the proximal step of shrink · ‖w‖². With ``gamma`` (F + 1,) each
    feature has a rate of its own instead, the last entry being that of the transitions, and
    ``fired`` (2, F + 1) counts the pieces that each occurs in (row 1: the last one counted).
    """

    rate: float
    decay: float
    shrink: float
    gamma: Array
    fired: Array


class Steps(NamedTuple):
    """Where steps are added: node weights (F, L), transitions and rich weights (flat)."""

    node: Array
    transitions: Array
    rich: Array


class Shared(NamedTuple):
    """What all threads write to and read from, zero at first.

    ``sync`` is that of :mod:`trellis.kernels.barrier`. For the P positions of the largest batch:
    ``gradient`` (P, L) and, for edges with scores of their own, ``edge_gradient`` (P, L²), else
    (0, L²). For C chunks: ``outer`` and ``pairs``, (C, L, L), (C, K, L, L) or (C, 1, pairs listed),
    parts of the gradient of the transitions, and ``losses`` (C,), the weighted losses. For the K
    tables of trees: ``touched`` (C, K), those that chunks have added to, and ``version`` (K,),
    which counts the changes of each.
    """

    sync: Array
    gradient: Array
    edge_gradient: Array
    outer: Array
    pairs: Array
    losses: Array
    touched: Array
    version: Array


@kernel
def crf_steps(
    features: Features,
    sets: LabelSets,
    pieces: Pieces,
    chain: Any,
    forest: Any,
    W: Array,
    T: Array,
    edges: Any,
    rich: Any,
    symmetric: bool,
    into: Steps,
    rates: Rates,
    state: Array,
    refresh: int,
    batch: int,
    bounds: Array,
    thread: int,
    shared: Shared,
) -> None:
    """Go through the pieces in batches; every thread runs this with its own number ``thread``.

    Either ``chain`` is True or a ``forest`` is given; the other is None. W (F, L) are node weights,
    T (L, L) the transitions of chains and (K, L, L) the tables of trees.
    ``edges`` are those of chains that are not plain (:mod:`trellis.kernels.chain_edges`), ``rich``
    those of trees (:mod:`trellis.kernels.tree_edges`), else None. Edges of trees may be
    ``symmetric``.

    True node and rich weights are ``state[0]`` times those stored, so that shrinking them costs
    one multiplication; ``state[1]`` counts pieces. Threads own the features
    ``bounds[thread]:bounds[thread + 1]``.
    """
    n_pieces = pieces.starts.size
    kind = W.dtype
    n_threads = bounds.size - 1
    low = bounds[thread]
    high = bounds[thread + 1]
    adaptive = rates.gamma.size > 0
    sync, losses = shared.sync, shared.losses
    visits = visits_of(pieces, forest)
    first = visits.first
    total = np.zeros(T.shape, np.float64)
    space: Any
    if chain is not None:
        space = chain_space(W, longest_piece(pieces), edges)
        shares = hit_bounds(visits, edges)
        exponentiate(T, edges, space)
    if forest is not None:
        space = tree_space(W, len(T), longest_piece(pieces), rich)
        seen = np.full(len(T), -1, np.int64)
        if rich is None:
            exponentiate_tables(T, symmetric, shared.version, seen, space)
    scale = state[0]
    counted: Any = np.int64(state[1])
    t_scale = 1.0
    pending = 0
    used = 0
    r = rates.rate
    k0 = 0
    while k0 < n_pieces:
        k1 = min(k0 + batch, n_pieces)
        n_chunks = min(losses.size, 1 + (first[k1] - first[k0]) // _CHUNK, k1 - k0)
        used = max(used, n_chunks)
        last = pending + first[k1] - first[k0] >= refresh or k1 == n_pieces
        # 1. Gradients of the scores: whoever is free takes the next chunk.
        c = 0 if n_threads == 1 else take(sync)
        while c < n_chunks:
            a = k0 + c * (k1 - k0) // n_chunks
            r_k = r if a == k0 else r * rates.decay ** (a - k0)
            end = k0 + (c + 1) * (k1 - k0) // n_chunks
            for k in range(a, end):
                weight = pieces.weights[k]
                soon = min(k + _PIECES_AHEAD, n_pieces - 1)
                prefetch(sets.ids, visits.queue[first[soon]], 0)
                pace = rates.gamma[rates.gamma.size - 1] if adaptive else r_k
                step = kind.type(-weight) if adaptive else kind.type(-r_k * weight / scale)
                score_into(
                    features, W, visits.queue, first[k], first[k + 1] - first[k],
                    kind.type(scale), space.work, 0, space.work.shape[2],
                )  # fmt: skip
                if chain is not None:
                    loss = chain_gradient(
                        features, sets, visits, k, k0, T, edges, shares, kind.type(scale),
                        weight * pace, step, space, shared, c,
                    )  # fmt: skip
                if forest is not None:
                    loss = tree_gradient(
                        sets, visits, k, k0, forest, T, rich, symmetric, kind.type(scale),
                        weight * pace, step, space, shared, c,
                    )  # fmt: skip
                losses[c] += weight * loss
                r_k *= rates.decay
                if chain is not None and (edges is None or edges.kind != DENSE):
                    # The next batch of one chunk and one thread adds to the same sums: that can
                    # wait, while there is room.
                    over = space.filled[0] + 2 * space.work.shape[1] > space.held.shape[1]
                    if over or (k + 1 == end and (last or n_chunks > 1 or n_threads > 1)):
                        add_held(space, T.shape[0], edges, shared.outer, c)
            c = c + 1 if n_threads == 1 else take(sync)
        if not meet(sync, n_threads):
            return
        # 2. Steps of the features of this thread.
        for k in range(k0, k1):
            for i in range(first[k], first[k + 1]):
                add_to_features(
                    features, visits.queue[i], shared.gradient, i - first[k0], low, high,
                    rates.gamma, rates.fired, counted + k, into.node,
                )  # fmt: skip
            if chain is not None:
                add_chain_edges(
                    features, visits, k, k0, edges, shares, shared.edge_gradient, low, high,
                    rates.gamma, into.rich,
                )  # fmt: skip
            if forest is not None:
                add_tree_edges(
                    visits, k, k0, forest, rich, shared.edge_gradient, rates.gamma, thread,
                    n_threads, into.rich,
                )  # fmt: skip
        keep = 1.0
        for _ in range(k0, k1):
            keep /= 1.0 + 2.0 * r * rates.shrink
            r *= rates.decay
        scale *= keep
        t_scale *= keep
        pending += first[k1] - first[k0]
        renew = pending >= refresh or k1 == n_pieces or rich is not None
        if edges is not None and edges.kind == DENSE:
            renew = True
        if thread == 0:
            sync[2] = 0  # no chunk of the next batch is taken
            if adaptive:
                for k in range(k0, k1):
                    rates.fired[0, rates.gamma.size - 1] += first[k + 1] - first[k] > 1
            if renew:
                if edges is not None and edges.kind == LISTED:
                    apply_listed_steps(
                        edges.listed, space.extra, space.base, shared.outer, shared.pairs, used,
                        t_scale, into.transitions,
                    )  # fmt: skip
                elif chain is not None:
                    apply_chain_steps(space, shared, used, t_scale, total, into.transitions)
                if forest is not None:
                    apply_tree_steps(
                        space, rich, symmetric, shared, t_scale, total, into.transitions
                    )
        if scale < _LEAST_SCALE:
            if not meet(sync, n_threads):
                return
            if thread == 0:
                _multiply(into, scale)
            scale = 1.0
        if not meet(sync, n_threads):
            return
        if renew:
            if chain is not None:
                exponentiate(T, edges, space)
            if forest is not None and rich is None:
                exponentiate_tables(T, symmetric, shared.version, seen, space)
            t_scale = 1.0
            pending = 0
            used = 0
        k0 = k1
    if thread == 0:
        state[0] = scale
        state[1] = counted + n_pieces


@inner
def _multiply(into: Steps, scale: float) -> None:
    """Bring the stored node and rich weights up to the scale."""
    for f in range(into.node.shape[0]):
        for j in range(into.node.shape[1]):
            into.node[f, j] *= scale
    for q in range(into.rich.size):
        into.rich[q] *= scale
