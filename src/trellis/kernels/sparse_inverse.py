"""The diagonal of the inverse of a sparse symmetric matrix, from its factors; widths of graphs.

inverse_diagonal   diag(A^-1) for A = L diag(d) L', L unit lower triangular (Takahashi et al. 1973)
widest_level       nodes of the widest level of a breadth-first search: what factorising costs

From A^-1 = Z follows Z L = L'^-1 diag(d)^-1, whose right side is upper triangular. So for i > j

    Z_ij = -sum_{k>j} Z_ik L_kj        Z_jj = 1/d_j - sum_{k>j} Z_jk L_kj

which, from the last column to the first, needs Z only where L is not 0: the pattern of a factor is
closed (if i and k are in column j, then i is in column k < i).
"""

from __future__ import annotations

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["inverse_diagonal", "widest_level"]


@kernel
def inverse_diagonal(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """Return diag(A^-1); L is in compressed columns, in any order of rows, its diagonal is skipped.

    ``values`` are overwritten.
    """
    n = len(d)
    place = np.full(n, -1, dtype=np.int64)  # of a row within the column at hand
    diagonal = np.empty(n)
    longest = 0
    for j in range(n):
        longest = max(longest, indptr[j + 1] - indptr[j])
    z = np.empty(longest)
    for j in range(n - 1, -1, -1):
        start, stop = indptr[j], indptr[j + 1]
        for p in range(start, stop):
            if indices[p] > j:
                place[indices[p]] = p - start
                z[p - start] = 0.0
        for p in range(start, stop):
            k = indices[p]
            if k <= j:
                continue
            l_k, at_k = values[p], p - start
            own = l_k * diagonal[k]
            for q in range(indptr[k], indptr[k + 1]):  # Z_ik for i > k, which hold Z by now
                at_i = place[indices[q]]
                if at_i >= 0 and indices[q] > k:
                    z[at_i] -= l_k * values[q]
                    own += values[start + at_i] * values[q]
            z[at_k] -= own
        on_diagonal = 1.0 / d[j]
        for p in range(start, stop):
            if indices[p] > j:
                on_diagonal -= values[p] * z[p - start]
        diagonal[j] = on_diagonal
        for p in range(start, stop):
            if indices[p] > j:
                place[indices[p]] = -1
                values[p] = z[p - start]
    return diagonal


@kernel
def widest_level(indptr: np.ndarray, indices: np.ndarray) -> int:
    """Return the nodes of the widest level, over all connected components.

    Each component is searched twice, the second time from a node that the first found last, since
    levels seen from the middle are wider than they need be.
    """
    n = len(indptr) - 1
    seen = np.zeros(n, dtype=np.int8)
    queue = np.empty(n, dtype=np.int64)
    widest = 0
    for root in range(n):
        if seen[root] != 0:
            continue
        start = root
        for turn in range(1, 3):
            queue[0] = start
            seen[start] = turn
            first, last, width = 0, 1, 1
            while first < last:
                width = max(width, last - first)
                end = last
                for at in range(first, end):
                    for p in range(indptr[queue[at]], indptr[queue[at] + 1]):
                        node = indices[p]
                        if seen[node] != turn:
                            seen[node] = turn
                            queue[last] = node
                            last += 1
                first = end
            start = queue[last - 1]
        widest = max(widest, width)
    return widest
