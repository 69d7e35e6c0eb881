"""Node scores from sparse features: node[t, y] = Σ_{f ∈ x_t} v_tf · W[f, y].

Features are in CSR over positions: ``indptr`` (N+1,), ``indices``, and ``values`` or an empty array
when every feature is an indicator; W is (F, L).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.prefetch import prefetch

__all__ = ["look_ahead", "score_into", "score_nodes"]

Array = np.ndarray[Any, Any]


@kernel
def score_nodes(
    indptr: Array, indices: Array, values: Array, W: Array, first: int, last: int
) -> Array:
    """Node scores (last − first, L) of positions first..last."""
    node = np.empty((last - first, W.shape[1]), W.dtype)
    score_into(indptr, indices, values, W, first, last, W.dtype.type(1), node)
    return node


@subkernel
def score_into(
    indptr: Array,
    indices: Array,
    values: Array,
    W: Array,
    first: int,
    last: int,
    scale: float,
    node: Array,
) -> None:
    """Write scale · node scores of positions first..last into the first rows of ``node``."""
    n_labels = W.shape[1]
    for t in range(first, last):
        r = t - first
        for j in range(n_labels):
            node[r, j] = 0
        if values.size:
            for p in range(indptr[t], indptr[t + 1]):
                f = indices[p]
                v = values[p]
                for j in range(n_labels):
                    node[r, j] += v * W[f, j]
        else:
            for p in range(indptr[t], indptr[t + 1]):
                f = indices[p]
                for j in range(n_labels):
                    node[r, j] += W[f, j]
        for j in range(n_labels):
            node[r, j] *= scale


@subkernel
def look_ahead(
    indptr: Array, indices: Array, label: Array, starts: Array, ends: Array, k: int, W: Array
) -> None:
    """Fetch what pieces k+1 (weights), k+2 (features) and k+3 (row pointers) will need."""
    last = starts.size - 1
    prefetch(indptr, starts[min(k + 3, last)])
    soon = min(k + 2, last)
    prefetch(label, starts[soon])
    for p in range(indptr[starts[soon]], indptr[ends[soon]], 16):
        prefetch(indices, p)
    after = min(k + 1, last)
    for p in range(indptr[starts[after]], indptr[ends[after]]):
        prefetch(W, indices[p])
