"""Walks through all weights, each of them one walk through memory.

Their squared norm; the running mean of several, with n − 1 arrays met w ← scale · w and
m ← m + (w − m) / n; and that of a perceptron, w − sums / count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["averaged", "scale_and_average", "squared_norm"]

Array = np.ndarray[Any, Any]


@kernel
def scale_and_average(mean: Array, w: Array, scale: float, n: int) -> None:
    """Scale weights and take them into the mean of n arrays, which they are the last of."""
    factor, share = w.dtype.type(scale), mean.dtype.type(1.0 / n)
    for i in range(w.size):
        w[i] *= factor
        mean[i] += share * (w[i] - mean[i])


@kernel
def averaged(w: Array, sums: Array, count: float) -> Array:
    """The mean w − sums / count of flat arrays, in the type of w."""
    mean = np.empty(w.size, w.dtype)
    share = 1.0 / count
    for i in range(w.size):
        mean[i] = w[i] - share * sums[i]
    return mean


@kernel
def squared_norm(w: Array) -> float:
    """Σ w² of a flat array, in float64."""
    total = 0.0
    for i in range(w.size):
        x = np.float64(w[i])
        total += x * x
    return total
