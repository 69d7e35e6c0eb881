r"""Hypotheses that may be in an assignment nearly as good as the best, by prices of the rows.

Prices :math:`\pi_j` with slacks :math:`r_h = \sum_{j \in h} \pi_j - s_h \ge 0` for all hypotheses
(:mod:`trellis.kernels.assignment_prices`) say of each assignment

.. math:: \sum_h s_h y_h = \sum_j \pi_j - \sum_h r_h y_h .

Where the best assignment has no slack, one that has h is thus worse than it by :math:`r_h` or more,
and the same holds for the part of it that differs from the best one. The best one may have slack in
a few places, as the relaxation is not tight there, or the prices are not final: rows that
hypotheses with :math:`r_h \le` ``reach`` join are a *place*, and the slack of the best assignment
in the places that h touches is added to its reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.assignment_prices import rows_to_hypotheses, update_prices
from trellis.kernels.assignment_search import components
from trellis.kernels.rows import fill

__all__ = ["keep_probable"]

Array = np.ndarray[Any, Any]


@kernel
def keep_probable(
    rows: Array, score: Array, free: Array, chosen: Array, n_rows: int, reach: float, rounds: int,
    kept: Array, slack: Array, price: Array,
) -> None:  # fmt: skip
    """Find the hypotheses that may be in an assignment nearly as good as the best.

    Parameters
    ----------
    rows : int64, shape (H, 3)
        Rows of each hypothesis, -1 after the last.
    score : float64, shape (H,)
        Scores; of free hypotheses they are finite.
    free : bool, shape (H,)
        Hypotheses that may be chosen.
    chosen : bool, shape (H,)
        The best assignment.
    n_rows : int
        Number of rows.
    reach : float
        How much worse than the best an assignment may be.
    rounds : int
        Rounds of price updates.
    kept : bool, shape (H,)
        Output: those of the free hypotheses.
    slack : float64, shape (H,)
        Output: slack of the free hypotheses.
    price : float64, shape (n_rows,)
        Output: the prices.
    """
    n = len(rows)
    largest = 1.0
    for h in range(n):
        if free[h]:
            largest = max(largest, abs(score[h]))
    # A row that cannot be alone would rather have any of its hypotheses.
    alone = np.full(n_rows, -8.0 * largest)
    for h in range(n):
        if free[h] and rows[h, 1] < 0:
            alone[rows[h, 0]] = score[h]
    size = np.zeros(n, np.int64)
    share = np.zeros((n, 3))
    larger = np.zeros(n, np.bool_)
    for h in range(n):
        if free[h] and rows[h, 1] >= 0:
            larger[h] = True
            size[h] = 3 if rows[h, 2] >= 0 else 2
            gain = score[h]
            for k in range(size[h]):
                gain -= alone[rows[h, k]]
            for k in range(size[h]):
                share[h, k] = gain / size[h]
    start, member = rows_to_hypotheses(rows, larger, n_rows)
    update_prices(rows, size, start, member, share, rounds, price)
    for j in range(n_rows):
        price[j] += alone[j]
    for h in range(n):
        kept[h] = False
        if free[h]:
            slack[h] = -score[h]
            for k in range(3):
                if rows[h, k] >= 0:
                    slack[h] += price[rows[h, k]]
            slack[h] = max(slack[h], 0.0)
            kept[h] = slack[h] <= reach or chosen[h]
    if reach == np.inf:
        return
    start, member = rows_to_hypotheses(rows, kept, n_rows)
    order, begin = components(start, member, rows, n_rows)
    place = np.empty(n_rows, np.int64)
    fill(place, -1)
    owed = np.zeros(len(begin))
    for c in range(len(begin) - 1):
        for j in order[begin[c] : begin[c + 1]]:
            place[j] = c
    for h in range(n):
        if free[h] and chosen[h]:
            owed[place[rows[h, 0]]] += slack[h]
    for h in range(n):
        if free[h] and not kept[h]:
            most = reach
            for k in range(3):
                if rows[h, k] >= 0:
                    here = place[rows[h, k]]
                    known = (k > 0 and here == place[rows[h, 0]]) or (
                        k == 2 and here == place[rows[h, 1]]
                    )
                    if here >= 0 and not known:
                        most += owed[here]
            kept[h] = slack[h] <= most
