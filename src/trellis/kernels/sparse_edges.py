"""Rich edge features with few label pairs each, for models of many labels.

A feature has weights for the pairs that it was seen with and some others: row i has the pairs
``pair[ptr[i]:ptr[i + 1]]``, weights in the same places of R. At a position t only some pairs are
*hit*; with δ_t the sum of the weights there, and U = e^{T − max T} as for plain transitions,

    U_t = U + M_t,   M_t = U ∘ (e^{δ_t} − 1), which is zero but for the pairs that are hit.

So a lattice with these features costs the plain one (:mod:`trellis.kernels.chain_lattice`) and a
few additions for every pair that is hit, instead of L² exponentials a position.

``sparse`` is the tuple (row, ptr, pair, R, n_crossed, both, entries), or None: ``row``,
``n_crossed`` and ``both`` as in :mod:`trellis.kernels.rich_edges`; ``entries`` (N + 1,) is the
running number of weights met at the positions of the corpus, as if each had an edge into it. The
``hits`` of a batch are (from, to, delta, extra, gradient, slot): arrays over all its entries. The
hits of a position are at the front of the position's share; ``slot`` says for each entry, in the
order of features, which hit it belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.prefetch import prefetch
from trellis.kernels.rich_edges import feature_row

__all__ = ["add_to_rows", "count_entries", "find_pair", "hit_pairs"]

Array = np.ndarray[Any, Any]

# Fetching ahead, in positions; floats in a cache line.
_POINTERS_AHEAD, _ROWS_AHEAD, _LINE = 6, 2, 16


@kernel
def count_entries(
    indptr: Array, indices: Array, row: Array, ptr: Array, n_crossed: int, both: bool
) -> Array:
    """Running number (N + 1,) of weights that an edge into each position meets."""
    n = indptr.size - 1
    total = np.zeros(n + 1, np.int64)
    for t in range(n):
        found = 0
        for back in range(2 if both and t > 0 else 1):
            for p in range(indptr[t - back], indptr[t - back + 1]):
                i = feature_row(row, indices[p])
                if i >= 0:
                    i += back * n_crossed
                    found += ptr[i + 1] - ptr[i]
        total[t + 1] = total[t] + found
    return total


@subkernel
def _look_ahead(
    indptr: Array,
    indices: Array,
    row: Array,
    ptr: Array,
    pair: Array,
    R: Array,
    n_crossed: int,
    both: bool,
    queue: Array,
    i: int,
) -> None:
    """Fetch the row pointers of a later position, and the rows of a sooner one."""
    later = queue[min(i + _POINTERS_AHEAD, queue.size - 1)]
    soon = queue[min(i + _ROWS_AHEAD, queue.size - 1)]
    for back in range(2 if both else 1):
        for p in range(indptr[later], indptr[later + 1]):
            k = max(feature_row(row, indices[p]), 0) + back * n_crossed
            prefetch(ptr, k, 0)
        for p in range(indptr[soon], indptr[soon + 1]):
            k = max(feature_row(row, indices[p]), 0) + back * n_crossed
            for q in range(ptr[k], ptr[k + 1], _LINE):
                prefetch(R, q, 0)
                prefetch(pair, q, 0)


@subkernel
def hit_pairs(
    indptr: Array,
    indices: Array,
    values: Array,
    tables: Array,
    sparse: Any,
    first: int,
    last: int,
    scale: float,
    label: Array,
    hits: Any,
    base: int,
    begin: Array,
    count: Array,
    gold: Array,
    mark: Array,
    queue: Array,
    done: int,
) -> None:
    """Find the pairs hit at positions first + 1 … last − 1 of a piece whose share starts at base.

    Fills the hits; ``begin`` and ``count`` get where those of each position are, ``gold`` the hit
    of the pair that ``label`` has there, or −1. ``mark`` (2, L²) is scratch that starts as −1;
    ``queue`` and ``done`` as in ``score_into``.
    """
    row, ptr, pair, R, n_crossed, both, entries = sparse
    source, target, delta, extra, _, slot = hits
    n_labels = tables.shape[1]
    highest = delta.dtype.type(60)
    begin[0] = base
    count[0] = 0
    for t in range(first, last):
        _look_ahead(indptr, indices, row, ptr, pair, R, n_crossed, both, queue, done + t - first)
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
        count[t - first] = n
        gold[t - first] = -1
        if label[t - 1] < n_labels and label[t] < n_labels:
            pr = label[t - 1] * n_labels + label[t]
            if mark[0, pr] == t:
                gold[t - first] = mark[1, pr]
    for t in range(first + 1, last):  # another visit of the same position must not find them
        for h in range(begin[t - first], begin[t - first] + count[t - first]):
            mark[0, source[h] * n_labels + target[h]] = -1


@subkernel
def add_to_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    sparse: Any,
    first: int,
    last: int,
    hits: Any,
    base: int,
    R_into: Array,
    gamma: Array,
    low: int,
    high: int,
) -> None:
    """Add the gradients of the hits of a piece to the weights of the features low … high − 1."""
    row, ptr, _, _, n_crossed, both, entries = sparse
    gradient, slot = hits[4], hits[5]
    for t in range(first + 1, last):
        entry = base + entries[t] - entries[first]
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
                        R_into[q] += v * gradient[slot[entry + q - ptr[i]]]
                entry += ptr[i + 1] - ptr[i]


@subkernel
def find_pair(ptr: Array, pair: Array, i: int, wanted: int, n_pairs: int) -> int:
    """Place in R of a pair of row i, −1 if the row lacks it; with ptr empty, rows have all."""
    if ptr.size == 0:
        return int(i) * n_pairs + wanted
    for q in range(ptr[i], ptr[i + 1]):
        if pair[q] == wanted:
            return int(q)
    return -1
