"""Differences of feature counts between two labellings, as they make up subgradients.

    out[f, j] = Σ_v weight_v · x_vf · ([y_v = j] − [gold_v = j])

with the features x in CSR, as in :mod:`trellis.kernels.scoring`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["count_differences"]

Array = np.ndarray[Any, Any]


@kernel
def count_differences(
    indptr: Array,
    indices: Array,
    values: Array,
    weight: Array,
    labels: Array,
    gold: Array,
    out: Array,
) -> None:
    """Add the differences to ``out`` (F, L); ``weight``, ``labels`` and ``gold`` are (N,)."""
    for v in range(labels.size):
        y = labels[v]
        g = gold[v]
        if y == g or weight[v] == 0:
            continue
        for p in range(indptr[v], indptr[v + 1]):
            x = weight[v] * values[p] if values.size else weight[v]
            out[indices[p], y] += x
            out[indices[p], g] -= x
