r"""What a search for the best assignment left open, component by component.

Prices :math:`u_j \ge 0` of the rows make the best assignment that of least cost

.. math:: \sum_h r_h y_h + \sum_{j \text{ alone}} u_j, \qquad
    r_h = \sum_{j \in h} u_j - g_h \ge 0

(:mod:`trellis.kernels.assignment`). An assignment that costs C is at hand. A better one has no
hypothesis with :math:`r_h \ge C` and leaves no row alone with :math:`u_j \ge C` (reduced-cost
fixing). What remains falls into components that share no row; each has a cost of its own at hand,
:math:`C = \sum_c C_c`, so that still fewer hypotheses remain, :math:`r_h < C_c`. Components that
cost nothing are best as they are. The others are small programs for HiGHS; one that is cut off
keeps what is at hand, and says by how much it might be better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.structures.assignment_program import AssignmentProgram

__all__ = ["settled"]

_TINY = 1e-11  # of the sum of all scores is nothing


def settled(
    covers: Int32s, s: Float64s, f: NDArray[np.int8], price: Float64s, chosen: Bools,
    nodes: int | None,
) -> tuple[Bools, float]:  # fmt: skip
    """Improve an assignment of one sample until it is the best, or ``nodes`` are spent.

    Parameters
    ----------
    covers : int32, shape (H, 3)
        Rows of the hypotheses, from 0; -1 after the last.
    s : float64, shape (H,)
        Scores; -inf for what is not allowed.
    f : int8, shape (H,)
        1: fixed as chosen, 0: not chosen, -1: free.
    price : float64, shape (rows,)
        Valid prices.
    chosen : bool, shape (H,)
        The assignment at hand.
    nodes : int or None
        Most nodes of the search tree of each component; None: as many as it takes.

    Returns
    -------
    chosen : bool, shape (H,)
        The assignment.
    excess : float
        By how much the best may be better; 0 if there is no better one.
    """
    n_rows = len(price)
    used = covers >= 0
    row = np.where(used, covers, n_rows)
    several, possible = used[:, 1], (f < 0) & np.isfinite(s)
    closed = np.zeros(n_rows + 1, bool)
    closed[row[f == 1]] = True
    closed[-1] = False
    possible &= ~closed[row].any(1)
    scale = 1.0 + float(np.abs(s[np.isfinite(s)]).sum())
    alone = np.full(n_rows + 1, -np.inf)
    single = possible & ~several
    alone[covers[single, 0]] = s[single]
    alone[-1] = 0.0
    # A row that cannot be alone has the score that the search gave it.
    base = np.where(np.isneginf(alone), -4.0 * scale, alone)
    cost = np.append(price, 0.0)[row].sum(1)
    cost[several] += base[row[several]].sum(1) - s[several]
    cost = np.maximum(cost, 0.0)

    part = np.zeros(n_rows, np.int64)
    paid = np.array([cost[chosen & possible].sum()])
    keep = possible
    while True:
        fewer = keep & (chosen | (cost < paid[part[covers[:, 0]]]))
        part = _components(row, fewer, n_rows)
        paid = np.bincount(part[covers[:, 0]], np.where(chosen & possible, cost, 0.0), n_rows)
        if fewer.sum() == keep.sum():
            break
        keep = fewer
    best, excess = chosen.copy(), 0.0
    for c in np.flatnonzero(paid > _TINY * scale):
        here = np.flatnonzero(keep & (part[covers[:, 0]] == c))
        rows, local = np.unique(row[here], return_inverse=True)
        local = np.where(used[here], local.reshape(-1, 3), -1)
        n = len(rows) - int(rows[-1] == n_rows)
        program = AssignmentProgram(local, n, -cost[here])
        answer, most = program.best_within(nodes)
        if answer is not None and cost[here][answer].sum() < paid[c]:
            best[here], paid[c] = answer, cost[here][answer].sum()
        excess += max(0.0, paid[c] + most)
    return best, excess if excess > _TINY * scale else 0.0


def _components(row: Int64s, keep: Bools, n_rows: int) -> Int64s:
    """Component of each row: rows that share hypotheses, directly or not."""
    import scipy.sparse

    h, k = np.nonzero(row[keep] < n_rows)
    table = scipy.sparse.csr_array(
        (np.ones(len(h), np.int8), (h, row[keep][h, k])), (int(keep.sum()), n_rows)
    )
    shared = (table.T @ table).tocsr() if len(h) else scipy.sparse.csr_array((n_rows, n_rows))
    _, part = scipy.sparse.csgraph.connected_components(shared, directed=False)
    return part.astype(np.int64)
