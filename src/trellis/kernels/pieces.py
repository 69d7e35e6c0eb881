"""Block boundaries of decomposed chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["chain_blocks"]

Array = np.ndarray[Any, Any]


@kernel
def chain_blocks(offsets: Array, small: int, larger: Array, reverse: Array) -> tuple[Array, Array]:
    """Cut each chain into blocks of ``small`` or, where the next ``larger`` says so, small + 1.

    Blocks are laid from the left, or from the right where ``reverse``. Returns the bounds of all
    blocks in order (K+1,) and the sample of each (K,).
    """
    bounds = np.empty(larger.size + 1, np.int64)
    sample = np.empty(larger.size, np.int64)
    bounds[0] = 0
    n = 0
    drawn = 0
    for s in range(offsets.size - 1):
        first = n
        rest = offsets[s + 1] - offsets[s]
        while rest > 0:
            size = min(rest, small + 1 if larger[drawn] else small)
            drawn += 1
            rest -= size
            sample[n] = s
            bounds[n + 1] = size
            n += 1
        if reverse[s]:
            bounds[first + 1 : n + 1] = bounds[first + 1 : n + 1][::-1].copy()
    for k in range(n):
        bounds[k + 1] += bounds[k]
    return bounds[: n + 1].copy(), sample[:n].copy()
