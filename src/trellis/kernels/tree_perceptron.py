"""The averaged structured perceptron on tree-shaped pieces (see :mod:`trellis.kernels.tree_crf`).

Best labellings by max-product from the leaves to the root; ties go to the lowest label of the root,
then of its children. Averaging is as in :mod:`trellis.kernels.chain_perceptron`: the average of the
weights over all visits is weights − sums / count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.scoring import longest_piece
from trellis.kernels.tree_crf import score_tree_nodes
from trellis.kernels.tree_edges import score_edge
from trellis.kernels.tree_lattice import FULLY, NODE, NOTHING, tree_annotation

__all__ = ["best_of_tree", "tree_perceptron"]

Array = np.ndarray[Any, Any]

# Planes of the workspace beside NODE (0).
BEST = 1


@subkernel
def best_of_tree(
    work: Array,
    parent: Array,
    down: Array,
    start: int,
    n: int,
    slot: Array,
    scores: Array,
    choice: Array,
    path: Array,
    at: int,
) -> None:
    """Best labels of a piece into path[at:at + n]; node scores in work[NODE], edges in scores.

    ``choice`` (longest, L) remembers the child's best label for each label of its parent.
    """
    n_labels = work.shape[2]
    for i in range(n):
        for j in range(n_labels):
            work[BEST, i, j] = work[NODE, i, j]
    for i in range(n - 1, 0, -1):
        if parent[start + i] < 0:
            continue
        p = parent[start + i] - start
        k = slot[i]
        for x in range(n_labels):
            top = -np.inf
            arg = 0
            for y in range(n_labels):
                edge = scores[k, x, y] if down[start + i] else scores[k, y, x]
                s = work[BEST, i, y] + edge
                if s > top:
                    top = s
                    arg = y
            choice[i, x] = arg
            work[BEST, p, x] += top
    for i in range(n):
        if parent[start + i] < 0:
            path[at + i] = np.argmax(work[BEST, i])
        else:
            path[at + i] = choice[i, path[at + parent[start + i] - start]]


@subkernel
def _find(ptr: Array, pair: Array, row: int, wanted: int, n_pairs: int) -> int:
    """Place of a pair's weight in a row, −1 if the row lacks it."""
    if ptr.size == 0:
        return row * n_pairs + wanted
    for q in range(ptr[row], ptr[row + 1]):
        if pair[q] == wanted:
            return q
    return -1


@kernel
def tree_perceptron(
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
    W_sum: Array,
    T_sum: Array,
    R_sum: Array,
    state: Array,
    batch: int,
    path: Array,
    gold: Array,
    wrong: Array,
) -> None:
    """Visit the pieces in batches; weights, sums and state (count of visits) change in place.

    ``path`` and ``gold`` (P,) are for the positions of a batch; ``wrong`` (K,) gets the (weighted)
    number of nodes of each piece labelled wrongly.
    """
    n_labels = W.shape[1]
    n_pairs = n_labels * n_labels
    longest = longest_piece(starts, ends)
    work = np.empty((2, longest, n_labels), W.dtype)
    n_slots = T.shape[0] if rich is None else longest
    scores = np.zeros((n_slots, n_labels, n_labels), W.dtype)
    slot = np.zeros(longest, np.int64)
    choice = np.zeros((longest, n_labels), np.int32)
    one = W.dtype.type(1)
    stale = np.ones(T.shape[0], np.bool_)
    first = np.empty(starts.size + 1, np.int64)
    first[0] = 0
    for k in range(starts.size):
        first[k + 1] = first[k] + ends[k] - starts[k]
    queue = np.empty(first[starts.size], np.int64)
    for k in range(starts.size):
        for i in range(ends[k] - starts[k]):
            queue[first[k] + i] = nodes[starts[k] + i]
    count = state[0]
    k0 = 0
    while k0 < starts.size:
        k1 = min(k0 + batch, starts.size)
        for k in range(k0, k1):
            start = starts[k]
            n = ends[k] - start
            at = first[k] - first[k0]
            wrong[k] = 0
            kind = tree_annotation(label, nodes, start, ends[k], n_labels)
            if kind == NOTHING:
                continue
            score_tree_nodes(
                indptr, indices, values, W, nodes, start, ends[k], one, work, queue, first[k]
            )
            for i in range(n):
                if parent[start + i] < 0:
                    continue
                e = edge[start + i]
                which = types[e]
                slot[i] = which if rich is None else i
                if rich is not None or stale[which]:
                    stale[which] = False
                    score_edge(T, which, rich, e, one, symmetric, scores, slot[i])
            # First the best labelling, then the best allowed one: one call in a loop, because two
            # would double the time to compile.
            for constrained in range(2):
                into = gold if constrained else path
                if constrained:
                    errors = 0
                    for i in range(n):
                        if not table[label[nodes[start + i]], path[at + i]]:
                            errors += 1
                    wrong[k] = weights[k] * errors
                    if errors == 0:
                        break
                    for i in range(n):
                        for j in range(n_labels):
                            if not table[label[nodes[start + i]], j]:
                                work[NODE, i, j] = -np.inf
                if constrained and kind == FULLY:
                    for i in range(n):
                        gold[at + i] = label[nodes[start + i]]
                else:
                    best_of_tree(work, parent, down, start, n, slot, scores, choice, into, at)
        for k in range(k0, k1):
            if wrong[k] == 0:
                continue
            start = starts[k]
            at = first[k] - first[k0]
            step = W.dtype.type(weights[k])
            late = (count + k) * weights[k]
            for i in range(ends[k] - start):
                t = nodes[start + i]
                good = gold[at + i]
                bad = path[at + i]
                if good != bad:
                    for p in range(indptr[t], indptr[t + 1]):
                        f = indices[p]
                        v = values[p] if values.size else one
                        W[f, good] += step * v
                        W[f, bad] -= step * v
                        W_sum[f, good] += late * v
                        W_sum[f, bad] -= late * v
                if parent[start + i] < 0:
                    continue
                up = at + parent[start + i] - start
                if good == bad and gold[up] == path[up]:
                    continue
                e = edge[start + i]
                stale[types[e]] = True
                for sign in range(2):
                    child = bad if sign else good
                    top = path[up] if sign else gold[up]
                    a = top if down[start + i] else child
                    b = child if down[start + i] else top
                    move = -step if sign else step
                    late_move = -late if sign else late
                    for flip in range(2 if symmetric else 1):
                        x = b if flip else a
                        y = a if flip else b
                        T[types[e], x, y] += move
                        T_sum[types[e], x, y] += late_move
                        if rich is not None:
                            eptr, erow, evalue, _, ptr, pair, R = rich
                            for p in range(eptr[e], eptr[e + 1]):
                                q = _find(ptr, pair, erow[p], x * n_labels + y, n_pairs)
                                if q >= 0:
                                    v = evalue[p] if evalue.size else one
                                    R[q] += move * v
                                    R_sum[q] += late_move * v
        k0 = k1
    state[0] = count + starts.size
