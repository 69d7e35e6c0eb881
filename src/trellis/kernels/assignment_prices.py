r"""Prices of the rows of an assignment problem (see :mod:`trellis.kernels.assignment`).

Each hypothesis h has its gain divided among its rows, :math:`g_h = \sum_{j \in h} \theta_{hj}`, and
:math:`u_j = \max(0, \max_{h \ni j} \theta_{hj})` are valid prices. A row in its turn sets all
shares at it to the mean of the two largest (to stay alone counts as a share of 0) and passes the
differences on to the other rows of the hypotheses: what the others rise together is at most what
the row falls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, fragment, subkernel

__all__ = ["rows_to_hypotheses", "sort_by_slack", "update_prices"]

Array = np.ndarray[Any, Any]


@allocating
def rows_to_hypotheses(rows: Array, use: Array, n_rows: int) -> tuple[Array, Array]:
    """Hypotheses in use that cover each row: start (n_rows + 1,), member."""
    start = np.zeros(n_rows + 1, np.int64)
    for h in range(len(rows)):
        if use[h]:
            for k in range(3):
                if rows[h, k] >= 0:
                    start[rows[h, k] + 1] += 1
    for j in range(n_rows):
        start[j + 1] += start[j]
    fill = start[:-1].copy()
    member = np.empty(start[-1], np.int64)
    for h in range(len(rows)):
        if use[h]:
            for k in range(3):
                j = rows[h, k]
                if j >= 0:
                    member[fill[j]] = h
                    fill[j] += 1
    return start, member


@subkernel
def _place(rows: Array, h: int, j: int) -> int:
    """Which of the rows of a hypothesis is j."""
    return 0 if rows[h, 0] == j else (1 if rows[h, 1] == j else 2)


@fragment
def update_prices(
    rows: Array, size: Array, start: Array, member: Array, share: Array, rounds: int, price: Array
) -> None:
    """Level the shares (H, 3) row by row, there and back; the largest at each row is its price."""
    n_rows = len(price)
    for turn in range(rounds):
        moved = 0.0
        for i in range(n_rows):
            j = i if turn % 2 == 0 else n_rows - 1 - i
            first, second = 0.0, 0.0  # to stay alone is worth nothing
            for p in range(start[j], start[j + 1]):
                h = member[p]
                v = share[h, _place(rows, h, j)]
                if v > first:
                    second = first
                    first = v
                elif v > second:
                    second = v
            level = 0.5 * (first + second)
            for p in range(start[j], start[j + 1]):
                h = member[p]
                place = _place(rows, h, j)
                excess = share[h, place] - level
                moved = max(moved, excess)
                share[h, place] = level
                for k in range(3):
                    if k != place and rows[h, k] >= 0:
                        share[h, k] += excess / (size[h] - 1)
        if moved == 0.0:
            break
    for j in range(n_rows):
        price[j] = 0.0
        for p in range(start[j], start[j + 1]):
            price[j] = max(price[j], share[member[p], _place(rows, member[p], j)])


@subkernel
def sort_by_slack(start: Array, member: Array, slack: Array) -> None:
    """Sort the hypotheses of each row, those of least slack first."""
    for j in range(len(start) - 1):
        for p in range(start[j] + 1, start[j + 1]):
            h = member[p]
            q = p - 1
            while q >= start[j] and slack[member[q]] > slack[h]:
                member[q + 1] = member[q]
                q -= 1
            member[q + 1] = h
