"""Rich edge features with few label pairs each, for models of many labels.

A feature has weights for the pairs that it was seen with and some others: row i has the pairs
``pair[ptr[i]:ptr[i + 1]]``, weights in the same places of R. At a position t only some pairs are
*hit*; with δ_t the sum of the weights there, and U = e^{T − max T} as for plain transitions,

    U_t = U + M_t,   M_t = U ∘ (e^{δ_t} − 1), which is zero but for the pairs that are hit.

So a lattice with these features costs the plain one (:mod:`trellis.kernels.chain_lattice`) and a
few additions for every pair that is hit, instead of L² exponentials a position.

The hits of a position are at the front of the position's share of the arrays of :class:`Hits`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import fragment, inner, kernel
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.prefetch import prefetch
from trellis.kernels.rich_edges import RichEdges, feature_row
from trellis.kernels.scoring import Features
from trellis.kernels.step_changes import StepChanges
from trellis.kernels.visits import Visits

__all__ = ["HitRanges", "Hits", "add_to_rows", "changed_steps", "count_entries", "hit_pairs"]

Array = np.ndarray[Any, Any]

# Fetching ahead, in positions; floats in a cache line.
_POINTERS_AHEAD, _ROWS_AHEAD, _LINE = 6, 2, 16


@kernel
def count_entries(features: Features, sparse: RichEdges) -> Array:
    """Running number (N + 1,) of weights that an edge into each position meets."""
    indptr, indices, _ = features
    row, ptr, _, _, n_crossed, both = sparse
    n = indptr.size - 1
    total = np.zeros(n + 1, np.int64)
    for t in range(n):
        met = 0
        for back in range(2 if both and t > 0 else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i >= 0:
                    i += back * n_crossed
                    met += ptr[i + 1] - ptr[i]
        total[t + 1] = total[t] + met
    return total


@kernel
def changed_steps(
    features: Features,
    T: Array,
    sparse: RichEdges,
    follow: Array,
    offsets: Array,
    first: int,
    n_entries: int,
) -> tuple[StepChanges, int]:
    """What the pairs that are hit have instead of T, in samples from position ``first`` on.

    ``offsets`` are the bounds of the samples, from 0; they meet at most ``n_entries`` weights.
    Pairs that may not ``follow`` (L, L) have −inf. Also the first position with a score that was
    not finite before, −1 if there is none.
    """
    indptr, indices, values = features
    row, ptr, pair, R, n_crossed, both = sparse
    n_labels = T.shape[0]
    n = offsets[-1]
    ends = np.zeros(n + 1, np.int64)
    source, target = np.empty(n_entries + 1, np.int32), np.empty(n_entries + 1, np.int32)
    score = np.empty(n_entries + 1, T.dtype)
    table = T.copy().reshape(T.size)
    met = np.full(T.size, -1, np.int32)  # the last position that hit a pair
    labels = np.arange(n_labels).astype(np.int32)
    first_label = np.repeat(labels, n_labels)
    queue = np.arange(first, first + n)
    unsound = -1
    h = 0
    for s in range(offsets.size - 1):
        for at in range(offsets[s], offsets[s + 1]):
            _look_ahead(features, sparse, queue, at)
            begin = h
            for back in range(2 if both else 1):
                t = first + at - back
                for p in range(indptr[t], indptr[t + 1] if at > offsets[s] else indptr[t]):
                    i = feature_row(row, indices[p])
                    if i < 0:
                        continue
                    i += back * n_crossed
                    v = values[p] if values.size else T.dtype.type(1)
                    for q in range(ptr[i], ptr[i + 1]):
                        pr = np.uint32(pair[q])
                        table[pr] += v * R[q]
                        source[h] = pr
                        h += met[pr] != at  # no branch: whether a pair is new cannot be foreseen
                        met[pr] = at
            for q in range(begin, h):
                pr = np.uint32(source[q])
                x = table[pr]
                source[q] = first_label[pr]
                target[q] = pr - source[q] * n_labels
                if not np.isfinite(x) and unsound < 0:
                    unsound = at
                score[q] = x if follow[source[q], target[q]] else -np.inf
                table[pr] = T[source[q], target[q]]
            ends[at + 1] = h
    return StepChanges(ends, source[:h], target[:h], score[:h]), unsound


class Hits(NamedTuple):
    """The pairs that are hit in a batch, in arrays over all weights that its positions meet.

    ``entries`` (N + 1,) is the running number of weights met at the positions of the corpus, as if
    each had an edge into it. A hit is a pair (source, target) with its δ, ``extra`` U ∘ (e^δ − 1)
    and the gradient ∂loss/∂δ. ``slot`` tells for each weight met, in the order of the features,
    which hit it belongs to.
    """

    entries: Array
    source: Array
    target: Array
    delta: Array
    extra: Array
    gradient: Array
    slot: Array


class HitRanges(NamedTuple):
    """Where the hits of each position of a piece begin, their number, and that of the gold pair.

    ``mark`` (2, L²) is scratch, −1 at first: the last position that hit each pair, and its hit.
    """

    begin: Array
    number: Array
    gold: Array
    mark: Array


@inner
def _look_ahead(features: Features, sparse: RichEdges, queue: Array, i: int) -> None:
    """Fetch the row pointers of a later position, and the rows of a sooner one."""
    indptr, indices, _ = features
    row, ptr, pair, R, n_crossed, both = sparse
    later = queue[min(i + _POINTERS_AHEAD, queue.size - 1)]
    soon = queue[min(i + _ROWS_AHEAD, queue.size - 1)]
    n_ends = 0 if n_crossed == 0 else 2 if both else 1  # without rows there is nothing to fetch
    for back in range(n_ends):
        for p in range(indptr[later], indptr[later + 1]):
            k = max(feature_row(row, indices[p]), 0) + back * n_crossed
            prefetch(ptr, k, 0)
        for p in range(indptr[soon], indptr[soon + 1]):
            k = max(feature_row(row, indices[p]), 0) + back * n_crossed
            for q in range(ptr[k], ptr[k + 1], _LINE):
                prefetch(R, q, 0)
                prefetch(pair, q, 0)


@fragment
def hit_pairs(
    features: Features,
    sparse: RichEdges,
    visits: Visits,
    k: int,
    base: int,
    scale: float,
    tables: Array,
    n_labels: int,
    label: Array,
    hits: Hits,
    ranges: HitRanges,
) -> None:
    """Find the pairs hit at the edges of piece k, whose share of the hits starts at ``base``.

    True weights are scale · R; U is tables[0]. Fills the hits and their ranges; the gold pair of an
    edge is that of ``label``, −1 if it is not hit or not known.
    """
    indptr, indices, values = features
    row, ptr, pair, R, n_crossed, both = sparse
    entries, source, target, delta, extra, _, slot = hits
    begin, number, gold, mark = ranges
    first = visits.starts[k]
    last = visits.ends[k]
    highest = delta.dtype.type(60)
    begin[0] = base
    number[0] = 0
    for t in range(first, last):
        _look_ahead(features, sparse, visits.queue, visits.first[k] + t - first)
        if t == first:
            continue
        at = base + entries[t] - entries[first]
        entry = at
        n = 0
        for back in range(2 if both else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i < 0:
                    continue
                i += back * n_crossed
                v = values[p] if values.size else delta.dtype.type(1)
                for q in range(ptr[i], ptr[i + 1]):
                    pr = pair[q]
                    h = mark[1, pr]
                    if mark[0, pr] != t:
                        h = at + n
                        mark[0, pr] = t
                        mark[1, pr] = h
                        source[h] = np.uint32(pr) // np.uint32(n_labels)
                        target[h] = pr - source[h] * n_labels
                        delta[h] = 0
                        n += 1
                    delta[h] += v * R[q]
                    slot[entry] = h
                    entry += 1
        for h in range(at, at + n):
            delta[h] *= scale
            grown = fast_exp(min(delta[h], highest)) - delta.dtype.type(1)
            extra[h] = tables[0, source[h], target[h]] * grown
            if delta[h] >= highest:
                extra[h] = np.inf  # sends the piece to log space
        begin[t - first] = at
        number[t - first] = n
        gold[t - first] = -1
        if label[t - 1] < n_labels and label[t] < n_labels:
            pr = label[t - 1] * n_labels + label[t]
            if mark[0, pr] == t:
                gold[t - first] = mark[1, pr]
    for t in range(first + 1, last):  # another visit of the same position must not find them
        for h in range(begin[t - first], begin[t - first] + number[t - first]):
            mark[0, source[h] * n_labels + target[h]] = -1


@fragment
def add_to_rows(
    features: Features,
    sparse: RichEdges,
    first: int,
    last: int,
    hits: Hits,
    base: int,
    low: int,
    high: int,
    gamma: Array,
    R_into: Array,
) -> None:
    """Add the gradients of the hits of a piece to the weights of the features low … high − 1."""
    indptr, indices, values = features
    row, ptr, _, _, n_crossed, both = sparse
    for t in range(first + 1, last):
        entry = base + hits.entries[t] - hits.entries[first]
        for back in range(2 if both else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                f = indices[p]
                i = feature_row(row, f)
                if i < 0:
                    continue
                i += back * n_crossed
                if low <= f < high:
                    v = values[p] if values.size else R_into.dtype.type(1)
                    if gamma.size:
                        v *= R_into.dtype.type(gamma[f])
                    for q in range(ptr[i], ptr[i + 1]):
                        R_into[q] += v * hits.gradient[hits.slot[entry + q - ptr[i]]]
                entry += ptr[i + 1] - ptr[i]
