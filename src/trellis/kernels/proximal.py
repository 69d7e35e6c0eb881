"""Proximal steps of non-smooth penalties, in place.

L1: w ← sign(w) · max(|w| − a, 0). Group lasso: w_g ← w_g · max(1 − a_g / ‖w_g‖, 0); a group is a
set of rows. Row i of a flat array w is w[ptr[i]:ptr[i + 1]].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["row_squares", "scale_rows", "soft_threshold"]

Array = np.ndarray[Any, Any]


@kernel
def soft_threshold(w: Array, ptr: Array, amount: Array) -> None:
    """Shrink every entry towards zero by the ``amount`` of its row."""
    zero = w.dtype.type(0)
    for i in range(ptr.size - 1):
        a = w.dtype.type(amount[i])
        for q in range(ptr[i], ptr[i + 1]):
            w[q] = max(w[q] - a, zero) + min(w[q] + a, zero)


@kernel
def row_squares(w: Array, ptr: Array, group: Array, total: Array) -> None:
    """Add the sum of squares of each row to the ``total`` of its group."""
    for i in range(group.size):
        part = 0.0
        for q in range(ptr[i], ptr[i + 1]):
            part += np.float64(w[q]) * np.float64(w[q])
        total[group[i]] += part


@kernel
def scale_rows(w: Array, ptr: Array, group: Array, factor: Array) -> None:
    """Multiply every row by the factor of its group."""
    for i in range(group.size):
        a = w.dtype.type(factor[group[i]])
        for q in range(ptr[i], ptr[i + 1]):
            w[q] *= a
