"""Weights of samples: a finite number of at least 0 for each, not all 0; 1 if none are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array
from trellis.errors import DataError

__all__ = ["sample_weights"]


def sample_weights(
    weights: Sequence[float] | NDArray[Any] | None, n: int, *, all_zero: bool = False
) -> NDArray[np.float64]:
    """Weights of the samples, checked; ones if none are given."""
    if weights is None:
        return np.ones(n)
    array = as_array(weights, np.float64, "entries of sample_weight")
    if array.shape != (n,):
        raise DataError(f"sample_weight must have shape ({n},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    if n and not array.any() and not all_zero:
        raise DataError("sample_weight is 0 for every sample: give at least one a positive weight")
    return array
