r"""The best labelling of a chain with many labels, exactly, looking at few of them.

The arguments and the score s(y) are those of :mod:`trellis.kernels.chain`, transitions shared. With
the best transitions into and out of each label, in_j = max_i trans_ij and out_i = max_j trans_ij,
half of each is moved to the positions: labels are ranked by

    r_t(j) = node_tj + ½ in_j (unless t is the first) + ½ out_j (unless t is the last).

The first k_t are *candidates*; all others are one more label ∗. With V_t(i) the best score of
positions 0 … t that end in candidate i, what labellings that end in another label gain, and ½ out_j
of that label, is at most

    U_t = max_j r_t(j) + max( max_i V_{t−1}(i) + O_i,  U_{t−1} + M ),
    O_i = max_j trans_ij − ½ in_j,   M = max_ij trans_ij − ½ out_i − ½ in_j,

and from there a candidate j gains at most I_j = max_i trans_ij − ½ out_i more. So the best path
through candidates and ∗ is at least as good as any labelling. If it goes through candidates alone,
it is the best labelling; otherwise k_t is doubled where it goes through ∗, and the search begins
anew (staggered decoding; Kaji, Fujiwara, Yoshinaga & Kitsuregawa, 2010). Where positions tell a
lot, few labels are ever looked at: a thousand cost as much as some tens. Where they tell little,
the search is given up after a share of the steps of a plain one.

Ties between ∗ and candidates go to ∗, and between candidates to the lowest label at the last
position, then at the one before, as in :mod:`trellis.kernels.chain_max`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.lanes import highest, load
from trellis.kernels.rows import longest_sample

__all__ = ["staggered_viterbi"]

Floats = npt.NDArray[np.floating[Any]]
Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_FIRST = 8  # candidates at first
_SHARE = 0.02  # of the steps of a plain search, each of which takes a tenth of the time
_TRIES = 4  # samples given up, and more than half of all, before no other is tried
_SLACK = 1e-6  # of bounds, for rounding errors


class _Best(NamedTuple):
    """The best transitions: ½ in_j and ½ out_i (as the scores are stored), I_j, O_i and M."""

    half_in: Floats
    half_out: Floats
    into: Float64s
    out: Float64s
    top: float


class _Lattice(NamedTuple):
    """Candidates of the positions of a sample.

    Row t has ``length[t]`` of them in the order of labels, then ∗, −1 in ``member``, if there are
    others: their scores, and those of the best paths that end there. ``wanted`` (n,) is k_t, and
    ``rank`` and ``heap`` (L,) are scratch.
    """

    member: Int32s
    own: Float64s
    value: Float64s
    length: Int64s
    wanted: Int64s
    rank: Floats
    heap: Floats


@kernel
def staggered_viterbi(
    node: Floats, trans: Floats, offsets: Int64s, k: int, exact: bool
) -> tuple[Int32s, Float64s, Float64s]:
    """Find the best labelling of each sample: labels (N,), scores (S,) and bounds of them (S,).

    ``exact``: candidates, k at first (0: some), are added until the labelling is the best one. A
    sample that this takes too long for has the bound inf, and no labelling. Otherwise labellings
    are of k candidates a position, and no labelling has a higher score than the bound; where no
    labelling of candidates is feasible, the bound is inf.
    """
    n_labels = node.shape[1]
    best = _best_transitions(trans, node)
    longest = longest_sample(offsets)
    rows = _Lattice(
        np.empty((longest, n_labels + 1), dtype=np.int32),
        np.empty((longest, n_labels + 1)),
        np.empty((longest, n_labels + 1)),
        np.empty(longest, dtype=np.int64),
        np.empty(longest, dtype=np.int64),
        np.empty(n_labels, dtype=node.dtype),
        np.empty(n_labels, dtype=node.dtype),
    )
    labels = np.full(node.shape[0], -1, dtype=np.int32)
    scores = np.zeros(offsets.shape[0] - 1)
    bounds = np.zeros(offsets.shape[0] - 1)
    given_up = 0
    for s in range(scores.shape[0]):
        first = offsets[s]
        n = offsets[s + 1] - first
        if n == 0:
            continue
        if given_up >= _TRIES and 2 * given_up > s:
            scores[s], bounds[s] = -np.inf, np.inf
            continue
        for t in range(n):
            rows.wanted[t] = min(k if k > 0 else _FIRST, n_labels)
            rows.length[t] = _choose(node, first, t, n, best, rows)
        spent = 0.0
        while True:
            spent += _forward(trans, best, rows, n)
            bounds[s] = _trace(trans, best, rows, n, first, labels)
            scores[s] = bounds[s]
            widened = False
            for t in range(n):
                widened = widened or labels[first + t] < 0
            if not widened or bounds[s] == -np.inf:
                break
            if not exact:
                for t in range(n):  # without ∗
                    rows.length[t] -= rows.member[t, rows.length[t] - 1] < 0
                _forward(trans, best, rows, n)
                scores[s] = _trace(trans, best, rows, n, first, labels)
                break
            if spent > _SHARE * n * n_labels * n_labels:
                scores[s] = -np.inf
                given_up += 1
                break
            for t in range(n):
                if labels[first + t] < 0:
                    rows.wanted[t] = min(2 * rows.wanted[t], n_labels)
                    rows.length[t] = _choose(node, first, t, n, best, rows)
        if scores[s] == -np.inf:
            if bounds[s] > -np.inf:
                bounds[s] = np.inf
            for t in range(n):
                labels[first + t] = -1
    return labels, scores, bounds


@subkernel
def _best_transitions(trans: Floats, node: Floats) -> _Best:
    n_labels = trans.shape[0]
    half_in = np.full(n_labels, -np.inf, dtype=node.dtype)
    half_out = np.full(n_labels, -np.inf, dtype=node.dtype)
    for i in range(n_labels):
        for j in range(n_labels):
            half_out[i] = max(half_out[i], trans[i, j] / 2)
            half_in[j] = max(half_in[j], trans[i, j] / 2)
    into = np.full(n_labels, -np.inf)
    out = np.full(n_labels, -np.inf)
    top = -np.inf
    for i in range(n_labels):
        for j in range(n_labels):
            x = np.float64(trans[i, j])
            if x > -np.inf:
                out[i] = max(out[i], x - half_in[j])
                into[j] = max(into[j], x - half_out[i])
                top = max(top, x - half_out[i] - half_in[j])
    return _Best(half_in, half_out, into, out, top)


@subkernel
def _choose(node: Floats, first: int, t: int, n: int, best: _Best, rows: _Lattice) -> int:
    """Fill row t with the labels of the highest rank and ∗ for the others; return its length."""
    n_labels = node.shape[1]
    member, own, rank, heap = rows.member, rows.own, rows.rank, rows.heap
    k = rows.wanted[t]
    for j in range(n_labels):
        rank[j] = node[first + t, j]
    if t > 0:
        for j in range(n_labels):
            rank[j] += best.half_in[j]
    if t < n - 1:
        for j in range(n_labels):
            rank[j] += best.half_out[j]
    size = 0
    bound = node.dtype.type(-np.inf)  # only what is above can be among the k best
    for a in range(0, n_labels, 8):
        if a + 8 <= n_labels and not highest(load(rank, a)) > bound:
            continue
        for j in range(a, min(a + 8, n_labels)):
            x = rank[j]
            if not x > bound:
                continue
            if size < k:
                size = _push(heap, size, x)
            else:
                _replace(heap, size, x)
            if size == k:
                bound = heap[0]
    if size == 0:
        return 0
    bound = heap[0]
    others = node.dtype.type(-np.inf)
    length = 0
    for a in range(0, n_labels, 8):
        if a + 8 <= n_labels:
            most = highest(load(rank, a))
            if most < bound:
                others = max(others, most)
                continue
        for j in range(a, min(a + 8, n_labels)):
            if rank[j] >= bound:  # with ties there are more than k
                member[t, length] = j
                own[t, length] = node[first + t, j]
                length += 1
            else:
                others = max(others, rank[j])
    if others > -np.inf:
        member[t, length] = -1
        own[t, length] = others + _SLACK * (1.0 + abs(others))
        length += 1
    return length


@subkernel
def _push(heap: Floats, size: int, x: float) -> int:
    """Add a number to a heap, whose lowest is on top; return its size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > x:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = x
    return size + 1


@subkernel
def _replace(heap: Floats, size: int, x: float) -> None:
    """Put a larger number in place of the lowest of a heap."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= x:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = x


@subkernel
def _forward(trans: Floats, best: _Best, rows: _Lattice, n: int) -> float:
    """Scores of the best paths; return the number of transitions looked at."""
    member, own, value, length = rows.member, rows.own, rows.value, rows.length
    spent = 0.0
    for j in range(length[0]):
        value[0, j] = own[0, j]
    for t in range(1, n):
        m = length[t]
        named = m - (1 if m > 0 and member[t, m - 1] < 0 else 0)
        for j in range(m):
            value[t, j] = -np.inf
        for i in range(length[t - 1]):
            x = value[t - 1, i]
            a = member[t - 1, i]
            if a >= 0:
                for j in range(named):
                    value[t, j] = max(value[t, j], x + trans[a, member[t, j]])
            else:
                for j in range(named):
                    value[t, j] = max(value[t, j], x + best.into[member[t, j]])
            for j in range(named, m):
                value[t, j] = max(value[t, j], x + (best.out[a] if a >= 0 else best.top))
        for j in range(m):
            value[t, j] += own[t, j]
        spent += m * length[t - 1]
    return spent


@subkernel
def _trace(trans: Floats, best: _Best, rows: _Lattice, n: int, first: int, labels: Int32s) -> float:
    """Write the best path, −1 for ∗; return its score, −inf if there is none."""
    member, value, length = rows.member, rows.value, rows.length
    score = -np.inf
    later = -1
    for t in range(n - 1, -1, -1):
        most = -np.inf
        at = -1
        for i in range(length[t]):
            x = value[t, i]
            a = member[t, i]
            if t < n - 1:
                if later >= 0:
                    x += trans[a, later] if a >= 0 else best.into[later]
                else:
                    x += best.out[a] if a >= 0 else best.top
            if x > most or (x == most and a < 0 and x > -np.inf):
                most = x
                at = i
        if at < 0:
            return -np.inf
        if t == n - 1:
            score = most
        later = member[t, at]
        labels[first + t] = later
    return score
