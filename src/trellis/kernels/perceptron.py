"""Averaged structured perceptron on pieces of chains and trees (Collins 2002).

For each piece: ŷ = argmax s(y); if ŷ leaves the annotation, w ← w + φ(y*) − φ(ŷ), where y* is the
gold labelling or, under partial annotation, the best one allowed. The result is the average of w
over all visits, kept lazily: with visits numbered c and updates Δ_k made at visit c_k,

    average = w − Σ_k (c_k − 1) Δ_k / c.

Pieces come in mini-batches, all of whose paths are found with the same weights; work is divided
among threads as in :mod:`trellis.kernels.crf`: pieces first, then ranges of features. Ties go, on
chains, to the lowest label at the last position, then at the one before; on trees to the lowest
label of the root, then of its children.

With a ``margin`` the steps are those of the structured hinge loss: ŷ = argmax s(y) + Δ(y), where Δ
adds up the costs of labels, which are zero where they are allowed, and w moves at the rate of the
piece; there is no average.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import fragment, inner, kernel
from trellis.kernels.barrier import meet
from trellis.kernels.forest import Forest
from trellis.kernels.rich_edges import feature_row, find_pair, score_edge_into
from trellis.kernels.row_products import argmax_plus, few_max_plus, max_plus, row_max_plus
from trellis.kernels.scoring import Features, score_into
from trellis.kernels.tree_edges import score_edge
from trellis.kernels.visits import (
    FULLY,
    NOTHING,
    LabelSets,
    Pieces,
    annotation,
    longest_piece,
    visits_of,
)

__all__ = ["Margin", "Sums", "averaged_perceptron"]

Array = np.ndarray[Any, Any]

# Planes of the workspace (2, longest piece, L): node scores, and scores of the best paths so far.
NODE, SCORE = range(2)


# Labels from which on few rows of the transitions are looked at.
_MANY = 64


class Sums(NamedTuple):
    """Σ_k (c_k − 1) Δ_k of the node weights, the transitions and the rich weights."""

    node: Array
    transitions: Array
    rich: Array


class Margin(NamedTuple):
    """Costs ``costs[row[t]]`` (L,) of the labels at position t; piece k has the rate · decay^k."""

    costs: Array
    row: Array
    rate: float
    decay: float


class _Edges(NamedTuple):
    """Scores of the edges of a piece of a tree.

    ``scores`` (slots, L, L) has the tables of T, or with rich edges one table for each node, and
    ``slot`` the one above each node. ``stale`` marks tables of T that have changed since they were
    copied; ``message`` (L,) is what a node says to its parent.
    """

    scores: Array
    slot: Array
    stale: Array
    message: Array


@kernel
def averaged_perceptron(
    features: Features,
    sets: LabelSets,
    pieces: Pieces,
    chain: Any,
    forest: Any,
    W: Array,
    T: Array,
    rich: Any,
    symmetric: bool,
    margin: Any,
    sums: Any,
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

    Either ``chain`` is True or, with one thread only, a ``forest`` is given; the other is None.
    ``rich`` are weights as in :mod:`trellis.kernels.rich_edges` or
    :mod:`trellis.kernels.tree_edges`, or None. ``state[0]`` counts visits; weights, sums and state
    change in place. Either ``sums`` or a ``margin`` is given, the other is None. Shared between
    threads: ``path`` and ``gold`` (P,) for the positions of a batch, and ``wrong`` (K,), which gets
    the weighted number of positions of each piece labelled wrongly, or its hinge loss.
    """
    n_pieces = pieces.starts.size
    n_labels = W.shape[1]
    n_threads = bounds.size - 1
    low = bounds[thread]
    high = bounds[thread + 1]
    visits = visits_of(pieces, forest)
    first, queue = visits.first, visits.queue
    longest = longest_piece(pieces)
    work = np.empty((2, longest, n_labels), W.dtype)
    edge = np.zeros((0 if rich is None else longest, n_labels * n_labels), W.dtype)
    turned = np.empty((n_labels, n_labels), T.dtype)
    tops = np.full(n_labels, -np.inf, T.dtype)
    if chain is not None:
        for i in range(n_labels):
            for j in range(n_labels):
                turned[j, i] = T[i, j]
                tops[i] = max(tops[i], T[i, j])
    edges: Any = None
    if forest is not None:
        edges = _Edges(
            np.zeros((T.shape[0] if rich is None else longest, n_labels, n_labels), W.dtype),
            np.zeros(longest, np.int64),
            np.ones(T.shape[0], np.bool_),
            np.zeros(n_labels, W.dtype),
        )
    one = W.dtype.type(1)
    count = state[0]
    k0 = 0
    while k0 < n_pieces:
        k1 = min(k0 + batch, n_pieces)
        for k in range(k0 + thread, k1, n_threads):
            start = pieces.starts[k]
            n = pieces.ends[k] - start
            at = first[k] - first[k0]
            wrong[k] = 0
            kind = annotation(sets, visits, k)
            if kind == NOTHING:
                continue
            score_into(features, W, queue, first[k], n, one, work, 0, n_labels)
            if forest is not None:
                _score_tree_edges(T, forest, rich, symmetric, start, n, edges)
            if chain is not None and rich is not None:
                _score_chain_edges(features, T, rich, start, n, edge)
            if margin is not None:
                for i in range(n):
                    row = margin.row[queue[first[k] + i]]
                    for j in range(n_labels):
                        work[NODE, i, j] += margin.costs[row, j]
            above = 0.0
            # First the best labelling, then the best allowed one: one call in a loop, because two
            # would double the time to compile.
            for constrained in range(2):
                known = False
                if constrained:
                    errors = 0
                    for i in range(n):
                        errors += not sets.table[sets.ids[queue[first[k] + i]], path[at + i]]
                    wrong[k] = pieces.weights[k] * errors
                    if errors == 0:
                        break
                    if margin is not None:
                        above = _score_of(work, T, edge, chain, forest, start, n, edges, path, at)
                    known = kind == FULLY
                    for i in range(n):
                        ids = sets.ids[queue[first[k] + i]]
                        if known:
                            gold[at + i] = ids
                        else:
                            for j in range(n_labels):
                                if not sets.table[ids, j]:
                                    work[NODE, i, j] = -np.inf
                into = gold if constrained else path
                if chain is not None and not known:
                    _best_of_chain(work, T, turned, tops, edge, n, into, at)
                if forest is not None and not known:
                    _best_of_tree(work, forest, start, n, edges, into, at)
            if margin is not None and wrong[k] > 0:
                below = _score_of(work, T, edge, chain, forest, start, n, edges, gold, at)
                wrong[k] = pieces.weights[k] * max(0.0, above - below)
        if not meet(sync, n_threads):
            return
        for k in range(k0, k1):
            if wrong[k] == 0:
                continue
            start = pieces.starts[k]
            at = first[k] - first[k0]
            pace = 1.0 if margin is None else margin.rate * margin.decay**k
            step = W.dtype.type(pace * pieces.weights[k])
            late = (count + k) * pieces.weights[k]
            for i in range(pieces.ends[k] - start):
                if gold[at + i] != path[at + i]:
                    _update_features(
                        features, queue[first[k] + i], low, high, gold[at + i], path[at + i],
                        step, late, W, sums,
                    )  # fmt: skip
                if forest is not None:
                    _update_tree_edge(
                        forest, start, i, T, rich, symmetric, sums, edges, path, gold, at,
                        step, late,
                    )  # fmt: skip
                # Most edges stay as they are: a call costs more than to see that.
                if (
                    chain is not None
                    and i > 0
                    and (gold[at + i] != path[at + i] or gold[at + i - 1] != path[at + i - 1])
                ):
                    _update_chain_edge(
                        features, start + i, T, turned, tops, rich, sums, low, high, thread, path,
                        gold, at + i, step, late,
                    )  # fmt: skip
        if not meet(sync, n_threads):
            return
        k0 = k1
    if thread == 0:
        state[0] = count + n_pieces


@inner
def _score_chain_edges(
    features: Features, T: Array, rich: Any, start: int, n: int, edge: Array
) -> None:
    """Write the scores of the edges of a piece to the rows 1 … of ``edge``."""
    for t in range(1, n):
        score_edge_into(features, T, rich, start + t, edge, t)


@fragment
def _score_of(
    work: Array,
    T: Array,
    edge: Array,
    chain: Any,
    forest: Any,
    start: int,
    n: int,
    edges: Any,
    path: Array,
    at: int,
) -> float:
    """Score of a labelling of a piece, path[at:at + n]."""
    n_labels = work.shape[2]
    total = 0.0
    for i in range(n):
        y = path[at + i]
        total += work[NODE, i, y]
        if chain is not None and i > 0:
            x = path[at + i - 1]
            total += edge[i, x * n_labels + y] if edge.size > 0 else T[x, y]
        if forest is not None and forest.parent[start + i] >= 0:
            x = path[at + forest.parent[start + i] - start]
            k = edges.slot[i]
            total += edges.scores[k, x, y] if forest.down[start + i] else edges.scores[k, y, x]
    return total


@fragment
def _score_tree_edges(
    T: Array, forest: Forest, rich: Any, symmetric: bool, start: int, n: int, edges: _Edges
) -> None:
    """Refresh the scores of the edges above the nodes of a piece."""
    for i in range(n):
        if forest.parent[start + i] < 0:
            continue
        e = forest.edge[start + i]
        k = forest.types[e]
        edges.slot[i] = k if rich is None else i
        if rich is not None or edges.stale[k]:
            edges.stale[k] = False
            score_edge(T, k, rich, e, T.dtype.type(1), symmetric, edges.scores, edges.slot[i])


@inner
def _best_of_chain(
    work: Array, T: Array, turned: Array, tops: Array, edge: Array, n: int, path: Array, at: int
) -> None:
    """Viterbi of one piece without back-pointers: the winner is found again on the way back.

    Edge scores are T, whose transpose is ``turned`` and whose rows are nowhere above ``tops``, or
    edge[t] if that is not empty; the path goes to path[at:at + n].
    """
    n_labels = T.shape[0]
    rich = edge.size > 0
    score = work.shape[1] * n_labels  # where the plane begins
    for j in range(n_labels):
        work[SCORE, 0, j] = work[NODE, 0, j]
    for t in range(1, n):
        before = score + (t - 1) * n_labels
        if n_labels < 8:
            for j in range(n_labels):
                top = -np.inf
                for i in range(n_labels):
                    s = work[SCORE, t - 1, i] + (edge[t, i * n_labels + j] if rich else T[i, j])
                    top = max(top, s)
                work[SCORE, t, j] = top
        elif rich:
            row = t * n_labels * n_labels
            row_max_plus(
                work, before, n_labels, edge, row, n_labels, n_labels, work, before + n_labels
            )
        elif n_labels < _MANY:
            row_max_plus(work, before, n_labels, T, 0, n_labels, n_labels, work, before + n_labels)
        else:
            few_max_plus(work, before, n_labels, T, tops, work, before + n_labels)
        for j in range(n_labels):
            work[SCORE, t, j] += work[NODE, t, j]
    path[at + n - 1] = np.argmax(work[SCORE, n - 1])
    for t in range(n - 2, -1, -1):
        y = path[at + t + 1]
        if n_labels >= 8 and not rich:
            row = score + t * n_labels
            path[at + t] = argmax_plus(work, row, turned, y * n_labels, n_labels)
            continue
        best = work.dtype.type(-np.inf)
        path[at + t] = 0
        for i in range(n_labels):
            s = work[SCORE, t, i] + (edge[t + 1, i * n_labels + y] if rich else turned[y, i])
            if s > best:
                best = s
                path[at + t] = i


@inner
def _best_of_tree(
    work: Array, forest: Forest, start: int, n: int, edges: _Edges, path: Array, at: int
) -> None:
    """Best labels of a piece into path[at:at + n]; node scores are in work[NODE]."""
    _, parent, _, down, _ = forest
    scores, slot, _, message = edges
    n_labels = work.shape[2]
    n_pairs = n_labels * n_labels
    plane = work.shape[1] * n_labels  # where that of the scores begins
    for i in range(n):
        for j in range(n_labels):
            work[SCORE, i, j] = work[NODE, i, j]
    for i in range(n - 1, 0, -1):
        if parent[start + i] < 0:
            continue
        p = parent[start + i] - start
        k = slot[i]
        here = plane + i * n_labels
        if n_labels < 8:
            for x in range(n_labels):
                top = work.dtype.type(-np.inf)
                for y in range(n_labels):
                    edge = scores[k, x, y] if down[start + i] else scores[k, y, x]
                    top = max(top, work[SCORE, i, y] + edge)
                message[x] = top
        elif down[start + i]:
            for x in range(n_labels):
                row = k * n_pairs + x * n_labels
                message[x] = max_plus(work, here, scores, row, n_labels)
        else:
            row_max_plus(work, here, n_labels, scores, k * n_pairs, n_labels, n_labels, message, 0)
        for x in range(n_labels):
            work[SCORE, p, x] += message[x]
    # A node's best label is found again for its parent's alone.
    for i in range(n):
        if parent[start + i] < 0:
            path[at + i] = np.argmax(work[SCORE, i])
            continue
        x = path[at + parent[start + i] - start]
        k = slot[i]
        best = work.dtype.type(-np.inf)
        path[at + i] = 0
        for y in range(n_labels):
            s = work[SCORE, i, y] + (scores[k, x, y] if down[start + i] else scores[k, y, x])
            if s > best:
                best = s
                path[at + i] = y


@fragment
def _update_features(
    features: Features,
    t: int,
    low: int,
    high: int,
    good: int,
    bad: int,
    step: float,
    late: float,
    W: Array,
    sums: Any,
) -> None:
    """Move the weights of the features low … high − 1 of position t from ``bad`` to ``good``."""
    indptr, indices, values = features
    for p in range(indptr[t], indptr[t + 1]):
        f = indices[p]
        if f < low or f >= high:
            continue
        v = values[p] if values.size else W.dtype.type(1)
        W[f, good] += step * v
        W[f, bad] -= step * v
        if sums is not None:
            sums.node[f, good] += late * v
            sums.node[f, bad] -= late * v


@inner
def _move(R: Array, sums: Any, q: int, by: float, late_by: float) -> None:
    """Move a rich weight and its sum, if there is one: q is −1 if not."""
    if q >= 0:
        R[q] += by
        if sums is not None:
            sums.rich[q] += late_by


@inner
def _update_chain_edge(
    features: Features,
    t: int,
    T: Array,
    turned: Array,
    tops: Array,
    rich: Any,
    sums: Any,
    low: int,
    high: int,
    thread: int,
    path: Array,
    gold: Array,
    at: int,
    step: float,
    late: float,
) -> None:
    """Move the weights of the edge into position t, whose labels are at ``at`` of the paths."""
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    good = gold[at - 1] * n_labels + gold[at]
    bad = path[at - 1] * n_labels + path[at]
    turned[gold[at], gold[at - 1]] += step  # that of this thread
    turned[path[at], path[at - 1]] -= step
    tops[gold[at - 1]] = max(tops[gold[at - 1]], turned[gold[at], gold[at - 1]])
    if thread == 0:
        T[gold[at - 1], gold[at]] += step
        T[path[at - 1], path[at]] -= step
        if sums is not None:
            sums.transitions[gold[at - 1], gold[at]] += late
            sums.transitions[path[at - 1], path[at]] -= late
    if rich is not None:
        indptr, indices, values = features
        row, ptr, pair, R, n_crossed, both = rich
        for back in range(2 if both else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                f = indices[p]
                i = feature_row(row, f)
                if f < low or f >= high or i < 0:
                    continue
                i += back * n_crossed
                v = values[p] if values.size else T.dtype.type(1)
                _move(R, sums, find_pair(ptr, pair, i, good, n_pairs), step * v, late * v)
                _move(R, sums, find_pair(ptr, pair, i, bad, n_pairs), -step * v, -late * v)


@fragment
def _update_tree_edge(
    forest: Forest,
    start: int,
    i: int,
    T: Array,
    rich: Any,
    symmetric: bool,
    sums: Any,
    edges: _Edges,
    path: Array,
    gold: Array,
    at: int,
    step: float,
    late: float,
) -> None:
    """Move the weights of the edge above node i of a piece, whose labels are from ``at`` on."""
    if forest.parent[start + i] < 0:
        return
    up = at + forest.parent[start + i] - start
    if gold[at + i] == path[at + i] and gold[up] == path[up]:
        return
    n_labels = T.shape[1]
    e = forest.edge[start + i]
    k = forest.types[e]
    edges.stale[k] = True
    for sign in range(2):
        child = path[at + i] if sign else gold[at + i]
        top = path[up] if sign else gold[up]
        a = top if forest.down[start + i] else child
        b = child if forest.down[start + i] else top
        move = -step if sign else step
        late_move = -late if sign else late
        for flip in range(2 if symmetric else 1):
            x = b if flip else a
            y = a if flip else b
            T[k, x, y] += move
            if sums is not None:
                sums.transitions[k, x, y] += late_move
            if rich is not None:
                indptr, rows, values, _, ptr, pair, R = rich
                for p in range(indptr[e], indptr[e + 1]):
                    q = find_pair(ptr, pair, rows[p], x * n_labels + y, n_labels * n_labels)
                    v = values[p] if values.size else T.dtype.type(1)
                    _move(R, sums, q, move * v, late_move * v)
