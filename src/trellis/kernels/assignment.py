r"""Best and second best assignments: set partitioning with sets of at most three rows.

.. math::

    \max_y \sum_h s_h y_h \quad \text{s.t.} \quad \sum_{h \ni j} y_h = 1 \;\; \forall j,
    \qquad y_h \in \{0, 1\}.

Hypothesis h covers one to three rows; one that covers a single row leaves the row *alone*. With
the scores :math:`a_j` of the latter, a larger hypothesis *gains*
:math:`g_h = s_h - \sum_{j \in h} a_j`, and the problem is to pack hypotheses without overlap.

**Prices.** By linear programming duality, prices :math:`u_j \ge 0` with
:math:`\sum_{j \in h} u_j \ge g_h` for all h bound the sum of gains by :math:`\sum_j u_j`. They
come from coordinate descent: each hypothesis has its gain divided among its rows, and a row in its
turn levels the shares of its hypotheses, passing the rest on to their other rows; the bound never
rises. With the *slacks* :math:`r_h = \sum_{j \in h} u_j - g_h \ge 0` the problem becomes to
minimise

.. math:: \sum_h r_h y_h + \sum_{j \text{ alone}} u_j ,

a sum of terms that are not negative, most of them zero at the optimum: depth-first search with
«stop when it costs more than the best so far» is short.

**Few hypotheses.** The search runs over few hypotheses at first, those of a greedy solution, which
fall into small components. One that was left out can only change the components it touches, hence
cannot help if its slack is at least what they cost together; this holds for several at once, too.
Those that might help are added, until there are none: the solution is then proven best. For the
second best, those with a slack below that sum plus a known lead of the best over another solution
are added. So the effort grows with the number of doubtful places, not with their combinations.

Where the prices are poor the search may be long; it then gives up, more price updates follow, and
after the last a status of 0 tells the caller to use a general solver on what is left open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, kernel, subkernel
from trellis.kernels.assignment_prices import rows_to_hypotheses, sort_by_slack, update_prices
from trellis.kernels.assignment_search import cheapest_two, components, cover, is_free
from trellis.kernels.rows import copy, fill

__all__ = ["solve_assignments"]

Array = np.ndarray[Any, Any]

SOLVED, GAVE_UP, INFEASIBLE = 1, 0, -1


@allocating
def _greedy(
    rows: Array, use: Array, slack: Array, price: Array, closed: Array, partner: Array
) -> float:
    """Give each row in turn its cheapest free hypothesis; returns the cost."""
    n_rows = len(price)
    start, member = rows_to_hypotheses(rows, use, n_rows)
    sort_by_slack(start, member, slack)
    covered = closed.copy()
    fill(partner, -1)
    cost = 0.0
    for j in range(n_rows):
        if covered[j]:
            continue
        for p in range(start[j], start[j + 1]):
            h = member[p]
            if slack[h] > price[j]:
                break
            if is_free(rows, h, covered):
                cover(rows, h, covered, True)
                cost += slack[h]
                for k in range(3):
                    if rows[h, k] >= 0:
                        partner[rows[h, k]] = h
                break
        if partner[j] < 0:
            cost += price[j]
            covered[j] = True
    return cost


@subkernel
def _parts(
    rows: Array, slack: Array, price: Array, partner: Array, closed: Array, part: Array, owed: Array
) -> None:
    """Part of each row: those that share a chosen hypothesis; and what it costs."""
    for j in range(len(price)):
        h = partner[j]
        part[j] = j if h < 0 else rows[h, 0]
        owed[part[j]] = slack[h] if h >= 0 else (0.0 if closed[j] else price[j])


@subkernel
def _dues(rows: Array, h: int, part: Array, owed: Array) -> float:
    """Sum of what the parts that a hypothesis touches cost."""
    total = 0.0
    for k in range(3):
        if rows[h, k] >= 0:
            c = part[rows[h, k]]
            known = (k > 0 and c == part[rows[h, 0]]) or (k == 2 and c == part[rows[h, 1]])
            total += 0.0 if known else owed[c]
    return total


@subkernel
def _cost(rows: Array, slack: Array, price: Array, partner: Array, group: Array) -> float:
    """What the partners of these rows cost."""
    total = 0.0
    for j in group:
        if partner[j] < 0:
            total += price[j]
        elif rows[partner[j], 0] == j:
            total += slack[partner[j]]
    return total


@allocating
def _improve(
    rows: Array, gain: Array, slack: Array, price: Array, closed: Array, use: Array,
    partner: Array, part: Array, owed: Array, tiny: float, budget: int,
) -> bool:  # fmt: skip
    """Search over few hypotheses, add those that might help, until there are none.

    False if a search was given up; the partners are a solution all the same.
    """
    n_rows = len(price)
    covered = closed.copy()
    cost = np.empty(2)
    while True:
        added = False
        for h in range(len(rows)):
            if not use[h] and gain[h] > 0 and slack[h] < _dues(rows, h, part, owed) - tiny:
                use[h] = True
                added = True
        if not added:
            return True
        start, member = rows_to_hypotheses(rows, use, n_rows)
        sort_by_slack(start, member, slack)
        order, begin = components(start, member, rows, n_rows)
        proven = True
        for c in range(len(begin) - 1):
            group = order[begin[c] : begin[c + 1]]
            best = np.empty((2, len(group)), np.int64)
            if not cheapest_two(
                group, start, member, rows, slack, price, covered, 0.0, False, budget, cost, best
            ):
                proven = False
                copy(closed, covered)  # the search left its marks
                if cost[0] >= _cost(rows, slack, price, partner, group):
                    continue
            for d in range(len(group)):
                part[group[d]] = group[0]
                owed[group[d]] = 0.0
                if best[0, d] == -1:
                    partner[group[d]] = -1
                elif best[0, d] >= 0:
                    for k in range(3):
                        if rows[best[0, d], k] >= 0:
                            partner[rows[best[0, d], k]] = best[0, d]
            owed[group[0]] = cost[0]
        if not proven:
            return False


@subkernel
def _lead(rows: Array, gain: Array, partner: Array) -> float:
    """Least loss by one change: a hypothesis given up, or one taken for those in its way."""
    least = np.inf
    for h in range(len(rows)):
        if gain[h] == -np.inf:
            continue
        if partner[rows[h, 0]] == h:
            change = gain[h]
        else:
            change = -gain[h]
            for k in range(3):
                other = partner[rows[h, k]] if rows[h, k] >= 0 else -1
                known = (k > 0 and other == partner[rows[h, 0]]) or (
                    k == 2 and other == partner[rows[h, 1]]
                )
                if other >= 0 and not known:
                    change += gain[other]
        least = min(least, change)
    return least


@allocating
def _second(
    rows: Array, gain: Array, slack: Array, price: Array, closed: Array, use: Array,
    partner: Array, part: Array, owed: Array, tiny: float, budget: int, rival: Array,
) -> int:  # fmt: skip
    """Second best: partners of all rows in ``rival``. GAVE_UP; INFEASIBLE if there is none."""
    n_rows = len(price)
    lead = _lead(rows, gain, partner)
    if lead == np.inf:
        return INFEASIBLE
    reach = max(lead, 0.0) + 10 * tiny
    for h in range(len(rows)):
        chosen = gain[h] > -np.inf and partner[rows[h, 0]] == h
        use[h] = chosen or (gain[h] > -np.inf and slack[h] < _dues(rows, h, part, owed) + reach)
    start, member = rows_to_hypotheses(rows, use, n_rows)
    sort_by_slack(start, member, slack)
    order, begin = components(start, member, rows, n_rows)
    covered = closed.copy()
    cost = np.empty(2)
    least = np.inf
    exists = False
    for c in range(len(begin) - 1):
        group = order[begin[c] : begin[c + 1]]
        best = np.empty((2, len(group)), np.int64)
        if not cheapest_two(
            group, start, member, rows, slack, price, covered, reach, True, budget, cost, best
        ):
            return GAVE_UP
        if cost[1] - cost[0] < least:
            least = cost[1] - cost[0]
            exists = True
            # Of two equally good ones the search may meet the known one second.
            which = 0
            for d in range(len(group)):
                held = partner[group[d]]
                if (best[1, d] >= 0 and best[1, d] != held) or (best[1, d] == -1 and held >= 0):
                    which = 1
            copy(partner, rival)
            for d in range(len(group)):
                if best[which, d] == -1:
                    rival[group[d]] = -1
                elif best[which, d] >= 0:
                    for k in range(3):
                        if rows[best[which, d], k] >= 0:
                            rival[rows[best[which, d], k]] = best[which, d]
    return SOLVED if exists else INFEASIBLE


@subkernel
def _write(partner: Array, single: Array, closed: Array, fixed: Array, chosen: Array) -> bool:
    """Mark the hypotheses of a solution; False if a row that cannot be alone is."""
    for h in range(len(chosen)):
        chosen[h] = fixed[h] == 1
    for j in range(len(partner)):
        if not closed[j]:
            h = partner[j] if partner[j] >= 0 else single[j]
            if h < 0:
                return False
            chosen[h] = True
    return True


@allocating
def _solve(
    rows: Array, score: Array, fixed: Array, n_rows: int, two: bool, rounds: Array, budget: int,
    chosen: Array, second: Array, price: Array,
) -> tuple[int, int, float]:  # fmt: skip
    """Status of the best and of the second best of one sample, and an upper bound of the best."""
    n = len(rows)
    closed = np.zeros(n_rows, np.bool_)
    scale = 1.0
    base = 0.0  # what fixed hypotheses and rows alone are worth
    for h in range(n):
        if fixed[h] == 1:
            base += score[h]
            if not is_free(rows, h, closed):
                return INFEASIBLE, INFEASIBLE, -np.inf
            cover(rows, h, closed, True)
        if score[h] > -np.inf:
            scale += abs(score[h])
    single = np.full(n_rows, -1, np.int64)
    alone = np.full(n_rows, -4.0 * scale)  # so low that a row that cannot be alone is not
    for h in range(n):
        if rows[h, 1] < 0 and fixed[h] < 0 and score[h] > -np.inf:
            single[rows[h, 0]] = h
            alone[rows[h, 0]] = score[h]
    for j in range(n_rows):
        base += 0.0 if closed[j] else alone[j]
    gain = np.full(n, -np.inf)
    size = np.zeros(n, np.int64)
    use = np.zeros(n, np.bool_)
    share = np.zeros((n, 3))
    for h in range(n):
        for k in range(3):
            size[h] += rows[h, k] >= 0
        if size[h] > 1 and fixed[h] < 0 and score[h] > -np.inf and is_free(rows, h, closed):
            gain[h] = score[h]
            for k in range(size[h]):
                gain[h] -= alone[rows[h, k]]
            use[h] = gain[h] > 0
            for k in range(size[h]):
                share[h, k] = gain[h] / size[h]
    start, member = rows_to_hypotheses(rows, use, n_rows)
    tiny = 1e-11 * scale
    slack = np.full(n, np.inf)
    partner = np.empty(n_rows, np.int64)
    rival = np.empty(n_rows, np.int64)
    part = np.empty(n_rows, np.int64)
    owed = np.zeros(n_rows)
    for attempt in range(len(rounds)):
        update_prices(rows, size, start, member, share, rounds[attempt], price)
        for h in range(n):
            if gain[h] > -np.inf:
                slack[h] = -gain[h]
                for k in range(size[h]):
                    slack[h] += price[rows[h, k]]
                slack[h] = max(slack[h], 0.0)
            use[h] = gain[h] > 0
        cost = _greedy(rows, use, slack, price, closed, partner)
        _parts(rows, slack, price, partner, closed, part, owed)
        if cost > tiny:
            fill(use, False)
            for j in range(n_rows):
                if partner[j] >= 0:
                    use[partner[j]] = True
            if not _improve(
                rows, gain, slack, price, closed, use, partner, part, owed, tiny, budget
            ):
                continue
        if not _write(partner, single, closed, fixed, chosen):
            return INFEASIBLE, INFEASIBLE, -np.inf
        if not two:
            return SOLVED, INFEASIBLE, np.inf
        status = _second(
            rows, gain, slack, price, closed, use, partner, part, owed, tiny, budget, rival
        )
        if status == GAVE_UP:
            continue
        if status == SOLVED and not _write(rival, single, closed, fixed, second):
            status = INFEASIBLE
        return SOLVED, status, np.inf
    if not _write(partner, single, closed, fixed, chosen):
        fill(chosen, False)
    return GAVE_UP, GAVE_UP, base + price.sum()


@kernel
def solve_assignments(
    covers: Array, score: Array, fixed: Array, offsets: Array, row_offsets: Array, two: bool,
    rounds: Array, budget: int, chosen: Array, second: Array, status: Array, bound: Array,
    price: Array,
) -> None:  # fmt: skip
    """Solve all samples.

    Parameters
    ----------
    covers : int32, shape (H, 3)
        Rows of each hypothesis, numbered through all samples, -1 after the last.
    score : float64, shape (H,)
        Scores; -inf: not allowed.
    fixed : int8, shape (H,)
        -1 free, 0 not chosen, 1 chosen.
    offsets, row_offsets : int64, shape (S + 1,)
        Hypotheses and rows of each sample.
    two : bool
        Whether to look for the second best.
    rounds : int64
        Rounds of price updates before each attempt.
    budget : int
        Most choices that the search tries in a component.
    chosen, second : bool, shape (H,)
        Output: the best and the second best; where the search gave up, ``chosen`` is some
        assignment, or nothing.
    status : int8, shape (S, 2)
        Output: for both SOLVED, GAVE_UP or INFEASIBLE (there is none).
    bound : float64, shape (S,)
        Output: where the search gave up, no assignment has a higher score.
    price : float64, shape (rows,)
        Zeros; output: the prices :math:`u_j`.
    """
    for s in range(len(offsets) - 1):
        a, b = offsets[s], offsets[s + 1]
        rows = covers[a:b].astype(np.int64)
        for h in range(b - a):
            for k in range(3):
                if rows[h, k] >= 0:
                    rows[h, k] -= row_offsets[s]
        status[s, 0], status[s, 1], bound[s] = _solve(
            rows, score[a:b], fixed[a:b], row_offsets[s + 1] - row_offsets[s], two, rounds,
            budget, chosen[a:b], second[a:b], price[row_offsets[s] : row_offsets[s + 1]],
        )  # fmt: skip
