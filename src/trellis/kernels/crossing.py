"""Which label pairs each feature is crossed with (rows of :mod:`trellis.kernels.sparse_edges`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["observed_pairs"]

Array = np.ndarray[Any, Any]


@kernel
def observed_pairs(
    offsets: Array,
    indptr: Array,
    indices: Array,
    label: Array,
    row: Array,
    n_crossed: int,
    n_labels: int,
    back: int,
    drawn: Array,
    least: float,
) -> tuple[Array, Array]:
    """Pairs seen with each row's feature, and those ``drawn`` (n_crossed, k) besides.

    A pair counts as seen if it is the pair of at least the share ``least`` of the feature's
    occurrences. It is that of positions t − 1 and t, both with a single label; the feature is at
    position t − ``back``. ``row`` (F,) is the row of each feature or −1. Returns ptr
    (n_crossed + 1,) and pair, ascending in every row.
    """
    count = np.zeros(n_crossed + 1, np.int64)
    for s in range(offsets.size - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            if label[t - 1] < n_labels and label[t] < n_labels:
                for p in range(indptr[t - back], indptr[t - back + 1]):
                    if row[indices[p]] >= 0:
                        count[row[indices[p]] + 1] += 1
    for i in range(n_crossed):
        count[i + 1] += count[i]
    seen = np.empty(count[n_crossed], np.int32)
    filled = count[:-1].copy()
    for s in range(offsets.size - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            if label[t - 1] < n_labels and label[t] < n_labels:
                here = np.int32(label[t - 1] * n_labels + label[t])
                for p in range(indptr[t - back], indptr[t - back + 1]):
                    i = row[indices[p]]
                    if i >= 0:
                        seen[filled[i]] = here
                        filled[i] += 1
    times = np.zeros(n_labels * n_labels, np.int64)
    ptr = np.zeros(n_crossed + 1, np.int64)
    pair = np.empty(seen.size + drawn.size, np.int32)
    n = 0
    for i in range(n_crossed):
        for q in range(count[i], count[i + 1]):
            times[seen[q]] += 1
        enough = least * (count[i + 1] - count[i])
        for q in range(count[i], count[i + 1]):
            here = seen[q]
            if times[here] > 0 and times[here] >= enough:
                pair[n] = here
                n += 1
                times[here] = -1  # kept once
        for k in range(drawn.shape[1]):
            if times[drawn[i, k]] >= 0:
                pair[n] = drawn[i, k]
                n += 1
                times[drawn[i, k]] = -1
        for q in range(count[i], count[i + 1]):
            times[seen[q]] = 0
        for k in range(drawn.shape[1]):
            times[drawn[i, k]] = 0
        pair[ptr[i] : n].sort()
        ptr[i + 1] = n
    return ptr, pair[:n].copy()
