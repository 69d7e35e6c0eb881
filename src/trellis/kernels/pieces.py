"""Block boundaries of decomposed chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["chain_blocks", "pooled_order"]

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
            for k in range((n - first) // 2):
                left, right = first + 1 + k, n - k
                bounds[left], bounds[right] = bounds[right], bounds[left]
    for k in range(n):
        bounds[k + 1] += bounds[k]
    return bounds[: n + 1].copy(), sample[:n].copy()


@kernel
def pooled_order(first: Array, sizes: Array, samples: Array, draws: Array, pool: int) -> Array:
    """Order of visiting: samples in the given order, their pieces shuffled within pools.

    ``first`` (S+1,) is the first piece of each sample, ``sizes`` (K,) the positions of each piece,
    ``draws`` (K,) uniform numbers. A pool is closed when it holds ``pool`` positions.
    """
    order = np.empty(draws.size, np.int64)
    begin = 0
    end = 0
    held = 0
    for i in range(samples.size):
        s = samples[i]
        for k in range(first[s], first[s + 1]):
            order[end] = k
            end += 1
            held += sizes[k]
        if held >= pool or i == samples.size - 1:
            for a in range(end - 1, begin, -1):  # Fisher–Yates
                b = begin + np.int64(draws[a] * (a - begin + 1))
                order[a], order[b] = order[b], order[a]
            begin = end
            held = 0
    return order
