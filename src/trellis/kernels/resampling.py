"""Sums over samples that are drawn with replacement.

Row r of the result is the sum of ``n_drawn[r]`` rows of a table, each drawn uniformly (Efron's
bootstrap). Numbers below m come from 32 random bits u by Lemire's method: the high half of u m,
drawn again where the low half is below 2^32 mod m, so that every row has exactly the same chance.

References
----------
D. Lemire, *Fast random integer generation in an interval*, 2019; G. L. Steele, D. Lea and
C. H. Flood, *Fast splittable pseudorandom number generators*, 2014 (the random bits).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = ["drawn_sums"]

Array = np.ndarray[Any, Any]

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@subkernel
def _next_bits(state: Array) -> np.uint64:
    """Next 64 bits of a splitmix64 generator: NumPy's would be a state of its own."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(z ^ (z >> np.uint64(31)))


@kernel
def drawn_sums(table: Array, n_drawn: Array, state: Array, sums: Array) -> None:
    """Add to ``sums`` (R, 4) as many rows of ``table`` (m, 4), m < 2^32, as ``n_drawn`` (R,) says.

    ``state`` (1,) is that of the random bits, and goes on. There are always four columns, because
    sums in registers take half the time of those in an array.
    """
    m = np.uint64(table.shape[0])
    below = ((_LOW - m) + np.uint64(1)) % m  # 2^32 mod m
    own = np.empty(1, np.uint64)
    own[0] = state[0]
    zero = table[0, 0] - table[0, 0]
    for r in range(len(n_drawn)):
        a, b, c, d = zero, zero, zero, zero
        left = n_drawn[r]
        while left > 1:
            bits = _next_bits(own)
            first, second = (bits & _LOW) * m, (bits >> _HALF) * m
            if (first & _LOW) >= below and (second & _LOW) >= below:
                i, j = np.int64(first >> _HALF), np.int64(second >> _HALF)
                a += table[i, 0] + table[j, 0]
                b += table[i, 1] + table[j, 1]
                c += table[i, 2] + table[j, 2]
                d += table[i, 3] + table[j, 3]
                left -= 2
        while left > 0:
            first = (_next_bits(own) & _LOW) * m
            if (first & _LOW) >= below:
                i = np.int64(first >> _HALF)
                a += table[i, 0]
                b += table[i, 1]
                c += table[i, 2]
                d += table[i, 3]
                left -= 1
        sums[r, 0] += a
        sums[r, 1] += b
        sums[r, 2] += c
        sums[r, 3] += d
    state[0] = own[0]
