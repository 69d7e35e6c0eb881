"""Walks through all weights: their squared norm, and the running mean of several.

With n − 1 arrays met, w ← scale · w, m ← m + (w − m) / n, in one walk through memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["scale_and_average", "squared_norm"]

Array = np.ndarray[Any, Any]


@kernel
def scale_and_average(mean: Array, w: Array, scale: float, n: int) -> None:
    """Scale weights and take them into the mean of n arrays, which they are the last of."""
    factor, share = w.dtype.type(scale), mean.dtype.type(1.0 / n)
    for i in range(w.size):
        w[i] *= factor
        mean[i] += share * (w[i] - mean[i])


@kernel
def squared_norm(w: Array) -> float:
    """Σ w² of a flat array, in float64."""
    total = 0.0
    for i in range(w.size):
        x = np.float64(w[i])
        total += x * x
    return total
