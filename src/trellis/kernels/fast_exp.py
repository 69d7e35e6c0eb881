"""``fast_exp``: an exponential that LLVM can vectorise.

float32: exp(x) = 2^k · e^r with k = round(x / ln 2) and |r| ≤ ln 2 / 2, e^r by the degree-6
Cephes polynomial, 2^k by writing k into the exponent bits; relative error below 4e-7 and exactly 0
for x < −87. float64 goes through ``math.exp``: that path serves tests and L-BFGS, where accuracy
counts. Without a vectorised maths library Numba calls ``expf`` once for each number, which
dominates a forward–backward pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from trellis.kernels.lanes import Lanes, at_least, floor, power_of_two, spread, upper

__all__ = ["fast_exp"]


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _bits_to_float32(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


def fast_exp(x: float) -> float:
    """Exponential of x ≤ 88, used inside kernels only (see the module)."""
    return math.exp(x)


@overload(fast_exp)  # type: ignore[untyped-decorator]  # Numba is untyped
def _fast_exp_overload(x: Any) -> Any:
    if isinstance(x, Lanes):
        return _lanes_exp32 if x.of == types.float32 else _lanes_exp64
    if x != types.float32:

        def exp64(x: Any) -> Any:
            return math.exp(x)

        return exp64

    def exp32(x: Any) -> Any:
        clamped = max(x, np.float32(-87.0))
        k = np.floor(clamped * np.float32(1.44269504) + np.float32(0.5))
        r = clamped - k * np.float32(0.693359375)
        r = r - k * np.float32(-2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * r + np.float32(1.3981999507e-3)
        p = p * r + np.float32(8.3334519073e-3)
        p = p * r + np.float32(4.1665795894e-2)
        p = p * r + np.float32(1.6666665459e-1)
        p = p * r + np.float32(5.0000001201e-1)
        p = p * r * r + r + np.float32(1.0)
        power = _bits_to_float32((np.int32(k) + np.int32(127)) << np.int32(23))
        return p * power if x >= np.float32(-87.0) else np.float32(0.0)

    return exp32


def _lanes_exp32(x: Any) -> Any:
    clamped = upper(x, spread(np.float32(-87.0)))
    k = floor(clamped * spread(np.float32(1.44269504)) + spread(np.float32(0.5)))
    r = clamped - k * spread(np.float32(0.693359375))
    r = r - k * spread(np.float32(-2.12194440e-4))
    p = spread(np.float32(1.9875691500e-4))
    p = p * r + spread(np.float32(1.3981999507e-3))
    p = p * r + spread(np.float32(8.3334519073e-3))
    p = p * r + spread(np.float32(4.1665795894e-2))
    p = p * r + spread(np.float32(1.6666665459e-1))
    p = p * r + spread(np.float32(5.0000001201e-1))
    p = p * r * r + r + spread(np.float32(1.0))
    return at_least(x, np.float32(-87.0), p * power_of_two(k))


def _lanes_exp64(x: Any) -> Any:
    clamped = upper(x, spread(-700.0))
    k = floor(clamped * spread(1.4426950408889634) + spread(0.5))
    r = clamped - k * spread(0.6931457519531250)
    r = r - k * spread(1.4286068203094172e-6)
    p = r * spread(1 / 479001600) + spread(1 / 39916800)
    p = p * r + spread(1 / 3628800)
    p = p * r + spread(1 / 362880)
    p = p * r + spread(1 / 40320)
    p = p * r + spread(1 / 5040)
    p = p * r + spread(1 / 720)
    p = p * r + spread(1 / 120)
    p = p * r + spread(1 / 24)
    p = p * r + spread(1 / 6)
    p = p * r + spread(0.5)
    p = p * r + spread(1.0)
    p = p * r + spread(1.0)
    return at_least(x, -700.0, p * power_of_two(k))
