"""Transitions with weights for some pairs of labels only, as models of many labels have them.

T[i, j] is 0 but for the pairs of a list, so that with u = e^{−max T}

    U = e^{T − max T} = u · 1 1ᵀ + M,   M zero but for the pairs listed,

and a step of forward–backward costs L and the pairs instead of L²:

    Uᵀ α = u Σ_i α_i + Mᵀ α,   U v = u Σ_j v_j + M v.

Of Σ α (U v), which is 1, M v takes away what u Σ v is above 1, and leaves its rounding errors.
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
    "PairOrder",
    "add_listed_products",
    "apply_listed_steps",
    "exponentiate_listed",
    "find_listed",
    "times_listed",
]

Array = np.ndarray[Any, Any]


class PairOrder(NamedTuple):
    """The pairs from each label, or to each, in the order in which products go through them.

    First come those of labels that have many: of label ``label[k]`` those from ``ptr[k]`` to
    ``ptr[k + 1] − 1``; then the rest, where a loop for each label would cost more than its pairs.
    Pair q is number ``pair[q]`` of the list, from ``start[q]`` to ``end[q]``.
    """

    label: Array
    ptr: Array
    pair: Array
    start: Array
    end: Array


class ListedPairs(NamedTuple):
    """The pairs (i, second[q]), q = ptr[i] … ptr[i + 1] − 1, ascending in every row.

    ``forward`` has them by the first label, ``backward`` by the second, from there to the first.
    """

    ptr: Array
    second: Array
    forward: PairOrder
    backward: PairOrder


@fragment
def exponentiate_listed(T: Array, listed: ListedPairs, extra: Array, base: Array) -> float:
    """Write M to ``extra`` (3, pairs), in the order of the list and both others, and u to ``base``.

    Returns max T.
    """
    top = T.dtype.type(0)
    for i in range(T.shape[0]):
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            top = max(top, T[i, listed.second[q]])
    base[0] = fast_exp(-top)
    for i in range(T.shape[0]):
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            extra[0, q] = fast_exp(T[i, listed.second[q]] - top) - base[0]
    for q in range(listed.second.size):
        extra[1, q] = extra[0, listed.forward.pair[q]]
        extra[2, q] = extra[0, listed.backward.pair[q]]
    return float(top)


@fragment
def times_listed(
    x: Array, at: int, order: PairOrder, extra: Array, m: int, base: Array, n: int, width: int,
    to: int,
) -> float:  # fmt: skip
    """Write Uᵀ x (in the order ``forward``) or U x of a row to another of the same array.

    M is row m of ``extra``. Returns u Σ x.
    """
    _, _, _, start, end = order
    rest: float = base[0] * row_sum(x, at, width)
    for j in range(0, width, 8):
        store(x, to + j, spread(rest))
    m *= extra.shape[1]
    n_labels = order.label.size
    for k in range(n_labels):
        a = get(x, at + get(order.label, k))
        q = order.ptr[k]
        last = order.ptr[k + 1]
        # Four at a time, which lead to four labels: none waits for the one before.
        while q + 4 <= last:
            j0 = to + get(end, q)
            j1 = to + get(end, q + 1)
            j2 = to + get(end, q + 2)
            j3 = to + get(end, q + 3)
            x0 = get(x, j0) + a * get(extra, m + q)
            x1 = get(x, j1) + a * get(extra, m + q + 1)
            x2 = get(x, j2) + a * get(extra, m + q + 2)
            x3 = get(x, j3) + a * get(extra, m + q + 3)
            put(x, j0, x0)
            put(x, j1, x1)
            put(x, j2, x2)
            put(x, j3, x3)
            q += 4
        while q < last:
            j0 = to + get(end, q)
            put(x, j0, get(x, j0) + a * get(extra, m + q))
            q += 1
    for q in range(order.ptr[n_labels], end.size):
        j0 = to + get(end, q)
        put(x, j0, get(x, j0) + get(x, at + get(start, q)) * get(extra, m + q))
    zero = x.dtype.type(0)
    for j in range(0, width, 8):  # rounding may leave less than nothing
        store(x, to + j, upper(load(x, to + j), zero))
    for j in range(n, width):
        put(x, to + j, zero)
    return rest


@inner
def add_listed_products(
    held: Array, turned: Array, n: int, listed: ListedPairs, sums: Array, c: int
) -> None:
    """Add Σ_r a_r(i) b_r(j) of the pairs listed to the sums (chunks, 1, pairs) of a chunk.

    ``held`` (2, M, P) are n rows a_r and b_r. They are turned first, in ``turned``, so that the
    products of a pair are summed eight at a time.
    """
    if n == 0:
        return
    n_labels = listed.ptr.size - 1
    length = padded(n)
    half = n_labels * length
    for k in range(2):
        for block in range(0, length, 16):  # so that what is read and written is in the cache
            for j in range(n_labels):
                at = k * half + j * length
                for r in range(block, min(block + 16, n)):
                    put(turned, at + r, held[k, r, j])
                for r in range(max(block, n), min(block + 16, length)):
                    put(turned, at + r, held.dtype.type(0))
    for i in range(n_labels):
        a = i * length
        for q in range(listed.ptr[i], listed.ptr[i + 1]):
            b = half + listed.second[q] * length
            s = load(turned, a) * load(turned, b)
            for r in range(8, length, 8):
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
                step += (base[0] + extra[0, q]) * outer[c, 0, q] + pairs[c, 0, q]
                outer[c, 0, q] = 0
                pairs[c, 0, q] = 0
            T_into[i, j] = t_scale * (T_into[i, j] - step)
