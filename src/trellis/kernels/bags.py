"""Bags: several values at a node, as rows that are listed one after the other.

Row t is the entries ptr[t] .. ptr[t + 1] − 1 of arrays that belong together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.rows import fill

__all__ = ["by_node", "drop_repeated"]

Array = np.ndarray[Any, Any]

_FEW = 16  # entries of a row that are compared one by one


@kernel
def by_node(nodes: Array, n: int) -> tuple[Array, Array]:
    """(ptr (n + 1,), order): the numbers of the entries of each node, in their order."""
    ptr = np.zeros(n + 1, np.int64)
    for e in range(nodes.size):
        ptr[nodes[e] + 1] += 1
    for v in range(n):
        ptr[v + 1] += ptr[v]
    at = ptr[:n].copy()
    order = np.empty(nodes.size, np.int64)
    for e in range(nodes.size):
        order[at[nodes[e]]] = e
        at[nodes[e]] += 1
    return ptr, order


@kernel
def drop_repeated(ptr: Array, ids: Array) -> None:
    """ids[p] ← −1 where the row has the id before; rows with many entries are put in order."""
    for t in range(ptr.size - 1):
        row = ids[ptr[t] : ptr[t + 1]]
        if row.size > _FEW:
            ordered = np.sort(row)
            fill(row, -1)
            for p in range(ordered.size):
                if p == 0 or ordered[p] != ordered[p - 1]:
                    row[p] = ordered[p]
            continue
        for p in range(1, row.size):
            for q in range(p):
                if row[q] == row[p]:
                    row[p] = -1
                    break
