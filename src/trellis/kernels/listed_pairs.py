"""Transitions with weights for some pairs of labels only, as models of many labels have them.

T[i, j] is 0 but for the pairs of a list, so that with u = e^{−max T}

    U = e^{T − max T} = u · 1 1ᵀ + M,   M zero but for the pairs listed,

and a step of forward–backward costs L and the pairs instead of L²:

    Uᵀ α = u Σ_i α_i + Mᵀ α,   U v = u Σ_j v_j + M v.

Expected counts of the pairs are U ∘ Σ_t α_{t-1} V_tᵀ, as those of all pairs would be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import fragment, inner
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.lanes import get, load, padded, put, spread, store, total, upper
from trellis.kernels.row_products import row_sum

__all__ = [
    "ListedPairs",
    "add_listed_products",
    "apply_listed_steps",
    "exponentiate_listed",
    "find_listed",
    "listed_times",
    "times_listed",
]

Array = np.ndarray[Any, Any]


class ListedPairs(NamedTuple):
    """The pairs (i, second[q]), q = ptr[i] … ptr[i + 1] − 1, ascending in every row."""

    ptr: Array
    second: Array


@fragment
def exponentiate_listed(T: Array, listed: ListedPairs, extra: Array, base: Array) -> float:
    """Write M to ``extra`` (pairs,) and u to ``base`` (1,); returns max T."""
    top = T.dtype.type(0)
    for i in range(T.shape[0]):
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            top = max(top, T[i, listed.second[q]])
    base[0] = fast_exp(-top)
    for i in range(T.shape[0]):
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            extra[q] = fast_exp(T[i, listed.second[q]] - top) - base[0]
    return float(top)


@fragment
def times_listed(
    x: Array, at: int, listed: ListedPairs, extra: Array, base: Array, n: int, width: int, to: int
) -> None:
    """Write Uᵀ x of the row x at a place to another of the same array; ``n`` labels."""
    everywhere = spread(base[0] * row_sum(x, at, width))
    for j in range(0, width, 8):
        store(x, to + j, everywhere)
    for i in range(n):
        a = get(x, at + i)
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            j = to + listed.second[q]
            put(x, j, get(x, j) + a * get(extra, q))
    zero = x.dtype.type(0)
    for j in range(0, width, 8):  # rounding may leave less than nothing
        store(x, to + j, upper(load(x, to + j), zero))
    for j in range(n, width):
        put(x, to + j, zero)


@fragment
def listed_times(
    x: Array,
    at: int,
    alpha: int,
    listed: ListedPairs,
    extra: Array,
    base: Array,
    n: int,
    width: int,
    to: int,
) -> float:
    """Write U x of the row x at a place to another of the same array.

    Returns how much of Σ α (U x), which is about 1, was taken away again. The α of the first labels
    are a row of the array, too.
    """
    zero = x.dtype.type(0)
    rest = base[0] * row_sum(x, at, width)
    cancelled: float = zero
    for i in range(n):
        more = zero
        less = zero
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            m = get(extra, q) * get(x, at + listed.second[q])
            more += m
            less += min(m, zero)
        cancelled -= get(x, alpha + i) * less
        put(x, to + i, max(rest + more, zero))
    return cancelled


@inner
def add_listed_products(
    held: Array, turned: Array, n: int, listed: ListedPairs, sums: Array, c: int
) -> None:
    """Add Σ_r a_r(i) b_r(j) of the pairs listed to the sums (chunks, 1, pairs) of a chunk.

    ``held`` (2, M, P) are n rows a_r and b_r. They are turned first, in ``turned`` (2, P, 8 k) with
    8 k ≥ n, so that the products of a pair are summed eight at a time.
    """
    width, length = held.shape[2], turned.shape[2]
    n_labels = listed.ptr.size - 1
    end = padded(n)
    for half in range(2):
        for j in range(n_labels):
            for r in range(n, end):
                turned[half, j, r] = 0
        for r in range(n):
            for j in range(n_labels):
                turned[half, j, r] = held[half, r, j]
    for i in range(n_labels):
        a = i * length
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            b = (width + listed.second[q]) * length
            s = load(turned, a) * load(turned, b)
            for r in range(8, end, 8):
                s += load(turned, a + r) * load(turned, b + r)
            sums[c, 0, q] += total(s)


@fragment
def find_listed(listed: ListedPairs, i: int, j: int) -> int:
    """Place of a pair that is listed."""
    low = listed.ptr[i]
    high = listed.ptr[i + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if listed.second[middle] <= j:
            low = middle
        else:
            high = middle
    return int(low)


@fragment
def apply_listed_steps(
    listed: ListedPairs,
    extra: Array,
    base: Array,
    outer: Array,
    pairs: Array,
    used: int,
    t_scale: float,
    T_into: Array,
) -> None:
    """Take what ``used`` chunks have collected off the transitions."""
    for i in range(T_into.shape[0]):
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            j = listed.second[q]
            step = 0.0
            for c in range(used):
                step += (base[0] + extra[q]) * outer[c, 0, q] + pairs[c, 0, q]
                outer[c, 0, q] = 0
                pairs[c, 0, q] = 0
            T_into[i, j] = t_scale * (T_into[i, j] - step)
