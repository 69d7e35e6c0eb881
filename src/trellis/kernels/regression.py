"""Sums over all pairs of absolute differences, for distance correlation.

weighted_difference_sums   sum_ij |l_i - l_j| B_ij          for many l, a symmetric B
difference_products        sum_ij |x_i - x_j| |y_i - y_j|   in O(n log n)
"""

from __future__ import annotations

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["difference_products", "weighted_difference_sums"]


@kernel
def weighted_difference_sums(l: np.ndarray, B: np.ndarray) -> np.ndarray:  # noqa: E741 (the paper)
    """Return sum_ij |l_ci - l_cj| B_ij for each row c of `l`, (c, n); `B` is symmetric."""
    rows, n = l.shape
    sums = np.zeros(rows)
    for i in range(n - 1):  # a row of B is read once and serves all candidates
        for c in range(rows):
            li = l[c, i]
            s = 0.0
            for j in range(i + 1, n):
                s += abs(l[c, j] - li) * B[i, j]
            sums[c] += 2 * s
    return sums


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
