"""Exponentials that run over several numbers at once, of numbers and of Lanes.

exp(x) = 2^k · e^r with k = round(x / ln 2) and |r| ≤ ln 2 / 2, e^r by a polynomial, 2^k by writing
k into the exponent bits:

- float32: Cephes' polynomial of degree 6; relative error below 4e-7, exactly 0 for x < −87.
- float64: Taylor's of degree 12; relative error below 1e-15 for x > −10 and below 1e-14 for
  x > −250, exactly 0 for x < −700.

Without a vectorised maths library Numba calls ``exp`` once for each number, which takes five times
as long and dominates a forward–backward pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels._jit import subkernel
from trellis.kernels.lanes import at_least, floor, power_of_two, upper

__all__ = ["fast_exp", "vector_exp"]


def fast_exp(x: float) -> float:
    """Exponential of x ≤ 88, used inside kernels only (see the module).

    A single float64 goes through ``math.exp``: that serves what is rare, where accuracy counts.
    """
    return math.exp(x)


@overload(fast_exp)  # type: ignore[untyped-decorator]  # Numba is untyped
def _fast_exp_overload(x: Any) -> Any:
    if x == types.float64:
        return _exp_itself
    return _exp32 if getattr(x, "of", x) == types.float32 else _exp64


def _exp_itself(x: Any) -> Any:
    return math.exp(x)


def _exp32(x: Any) -> Any:
    clamped = upper(x, np.float32(-87.0))
    k = floor(clamped * np.float32(1.44269504) + np.float32(0.5))
    r = clamped - k * np.float32(0.693359375)
    r = r - k * np.float32(-2.12194440e-4)
    p = r * np.float32(1.9875691500e-4) + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    return at_least(x, np.float32(-87.0), p * power_of_two(k))


def _exp64(x: Any) -> Any:
    clamped = upper(x, -700.0)
    k = floor(clamped * 1.4426950408889634 + 0.5)
    r = clamped - k * 0.6931457519531250
    r = r - k * 1.4286068203094172e-6
    p = r * (1 / 479001600) + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return at_least(x, -700.0, p * power_of_two(k))


vector_exp = subkernel(_exp64)
"""Exponential of a float64 x ≤ 0 that loops can run over several at once; −inf gives 0."""
