"""Sums over all pairs of absolute differences, for distance correlation.

distance_sums              sum_j |z_i - z_j|                 for each i
weighted_difference_sums   sum_ij |l_i - l_j| B_ij           for many l, B centred distances of Z
centred_products           sum_ij A_ij B_ij                  A, B centred distances of X, Z
difference_products        sum_ij |x_i - x_j| |y_i - y_j|    in O(n log n)

None of them keeps more than a row of distances.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = [
    "centred_products",
    "difference_products",
    "distance_sums",
    "weighted_difference_sums",
]


@subkernel
def distances_from(Z: np.ndarray, i: int, start: int, row: np.ndarray) -> None:
    """Write |z_i - z_j| into ``row[j]`` for j from `start` on."""
    n, q = Z.shape
    for j in range(start, n):
        s = 0.0
        for d in range(q):
            difference = Z[j, d] - Z[i, d]
            s += difference * difference
        row[j] = np.sqrt(s)


@kernel
def distance_sums(Z: np.ndarray) -> np.ndarray:
    """Return sum_j |z_i - z_j| for each row i of `Z`."""
    n = len(Z)
    sums, row = np.zeros(n), np.empty(n)
    for i in range(n):
        distances_from(Z, i, i + 1, row)
        for j in range(i + 1, n):
            sums[i] += row[j]
            sums[j] += row[j]
    return sums


@kernel
def weighted_difference_sums(
    l: np.ndarray,  # noqa: E741 (the paper)
    Z: np.ndarray,
    means: np.ndarray,
    grand: float,
) -> np.ndarray:
    """Return sum_ij |l_ci - l_cj| B_ij for each row c of `l`, (c, n).

    B_ij = |z_i - z_j| - means_i - means_j + grand. A row of B is made once and serves all c.
    """
    rows, n = l.shape
    sums, row = np.zeros(rows), np.empty(n)
    for i in range(n - 1):
        distances_from(Z, i, i + 1, row)
        for j in range(i + 1, n):
            row[j] += grand - means[i] - means[j]
        for c in range(rows):
            li = l[c, i]
            s = 0.0
            for j in range(i + 1, n):
                s += abs(l[c, j] - li) * row[j]
            sums[c] += 2 * s
    return sums


@kernel
def centred_products(
    X: np.ndarray,
    x_means: np.ndarray,
    x_grand: float,
    Z: np.ndarray,
    z_means: np.ndarray,
    z_grand: float,
) -> float:
    """Return sum_ij A_ij B_ij, B as above and A the same of `X`."""
    n = len(X)
    a, b = np.empty(n), np.empty(n)
    result = 0.0
    for i in range(n):
        distances_from(X, i, i, a)
        distances_from(Z, i, i, b)
        s = 0.0
        for j in range(i + 1, n):
            s += (a[j] - x_means[i] - x_means[j] + x_grand) * (
                b[j] - z_means[i] - z_means[j] + z_grand
            )
        result += 2 * s + (x_grand - 2 * x_means[i]) * (z_grand - 2 * z_means[i])
    return result


@kernel
def difference_products(x: np.ndarray, y: np.ndarray, rank: np.ndarray) -> float:
    """Return sum_ij |x_i - x_j| |y_i - y_j|; `x` ascending, `rank` the place (1..n) of each y.

    With x ascending, the pairs j < i give (x_i - x_j)(y_i - y_j) with the sign of y_i - y_j; four
    Fenwick trees over the ranks of y hold count, sum x, sum y and sum xy of those seen so far.
    """
    n = len(x)
    tree = np.zeros((n + 1, 4))
    total = np.zeros(4)
    result = 0.0
    for i in range(n):
        a, b = x[i], y[i]
        n0, n1, n2, n3 = 0.0, 0.0, 0.0, 0.0
        p = rank[i]
        while p > 0:
            n0 += tree[p, 0]
            n1 += tree[p, 1]
            n2 += tree[p, 2]
            n3 += tree[p, 3]
            p -= p & -p
        below = n0 * a * b - a * n2 - b * n1 + n3
        everything = total[0] * a * b - a * total[2] - b * total[1] + total[3]
        result += 2 * below - everything
        p = rank[i]
        while p <= n:
            tree[p, 0] += 1
            tree[p, 1] += a
            tree[p, 2] += b
            tree[p, 3] += a * b
            p += p & -p
        total[0] += 1
        total[1] += a
        total[2] += b
        total[3] += a * b
    return 2 * result
