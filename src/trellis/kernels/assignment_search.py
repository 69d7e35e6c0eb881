"""Depth-first search for the two cheapest ways to decide the rows of a component.

See :mod:`trellis.kernels.assignment` for slacks and prices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, subkernel
from trellis.kernels.rows import copy, fill

__all__ = ["cheapest_two", "components", "cover", "is_free"]

Array = np.ndarray[Any, Any]


@subkernel
def is_free(rows: Array, h: int, covered: Array) -> bool:
    """Whether no row of a hypothesis is covered."""
    free = True
    for k in range(3):
        free = free and not (rows[h, k] >= 0 and covered[rows[h, k]])
    return free


@subkernel
def cover(rows: Array, h: int, covered: Array, value: bool) -> None:
    """Mark the rows of a hypothesis."""
    for k in range(3):
        if rows[h, k] >= 0:
            covered[rows[h, k]] = value


@allocating
def components(start: Array, member: Array, rows: Array, n_rows: int) -> tuple[Array, Array]:
    """Rows in breadth-first order, component by component; where each component begins."""
    order = np.empty(n_rows, np.int64)
    begin = np.empty(n_rows + 1, np.int64)
    seen = np.zeros(n_rows, np.bool_)
    n, n_parts = 0, 0
    for root in range(n_rows):
        if seen[root] or start[root] == start[root + 1]:
            continue
        begin[n_parts] = n
        n_parts += 1
        seen[root] = True
        order[n] = root
        done = n
        n += 1
        while done < n:
            j = order[done]
            done += 1
            for p in range(start[j], start[j + 1]):
                for k in range(3):
                    i = rows[member[p], k]
                    if i >= 0 and not seen[i]:
                        seen[i] = True
                        order[n] = i
                        n += 1
    begin[n_parts] = n
    return order[:n], begin[: n_parts + 1]


@allocating
def cheapest_two(
    order: Array, start: Array, member: Array, rows: Array, slack: Array, price: Array,
    covered: Array, reach: float, two: bool, budget: int, cost: Array, best: Array,
) -> bool:  # fmt: skip
    """Cheapest and second cheapest ways to decide the rows in ``order``: cost (2,), best (2, m).

    A row that is not covered takes a hypothesis at its slack or stays alone (-1) at its price; -2
    marks those covered by another's choice. The second is looked for only among ways that cost less
    than the first plus ``reach``. False if more than ``budget`` choices were tried.
    """
    m = len(order)
    fill(cost, np.inf)
    choice = np.full(m, -3, np.int64)  # -3: not decided
    pointer = np.zeros(m, np.int64)
    alone_left = np.ones(m, np.bool_)
    spent = np.zeros(m + 1)
    tried = 0
    d = 0
    pointer[0] = start[order[0]]
    while d >= 0:
        if d == m:
            if spent[m] < cost[0]:
                cost[1] = cost[0]
                copy(best[0], best[1])
                cost[0] = spent[m]
                copy(choice, best[0])
            elif spent[m] < cost[1]:
                cost[1] = spent[m]
                copy(choice, best[1])
            d -= 1
            continue
        j = order[d]
        back = choice[d] == -2
        if choice[d] >= 0:
            cover(rows, choice[d], covered, False)
        elif choice[d] == -1:
            covered[j] = False
        chosen, step = -3, 0.0
        if choice[d] == -3 and covered[j]:
            chosen = -2
        elif not back:
            limit = min(cost[1], cost[0] + reach) if two else cost[0]
            while True:
                p = pointer[d]
                step = slack[member[p]] if p < start[j + 1] else np.inf
                if alone_left[d] and price[j] <= step:
                    alone_left[d] = False
                    option = -1
                    step = price[j]
                elif p < start[j + 1]:
                    pointer[d] += 1
                    option = member[p]
                else:
                    break
                if spent[d] + step >= limit:
                    break
                if option < 0 or is_free(rows, option, covered):
                    chosen = option
                    break
            tried += 1
            if tried > budget:
                return False
        choice[d] = chosen
        if chosen == -3:
            d -= 1
            continue
        if chosen >= 0:
            cover(rows, chosen, covered, True)
        elif chosen == -1:
            covered[j] = True
        spent[d + 1] = spent[d] + (0.0 if chosen == -2 else step)
        d += 1
        if d < m:
            pointer[d] = start[order[d]]
            alone_left[d] = True
            choice[d] = -3
    return True
