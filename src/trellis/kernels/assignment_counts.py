r"""How many assignments there are, and what share of them choose a hypothesis.

**Counting.** The rows of a component are decided one after the other. What is behind matters for
what follows only by the set m of later rows that are covered already, the *mask*. With
:math:`F_t(m)` the number of ways to decide the first t rows that cover m, and :math:`B_t(m)` the
number of ways to go on from there to a whole assignment,

.. math::

    F_{t+1}(m') = \sum_{m \to m'} F_t(m), \qquad B_t(m) = \sum_{m \to m'} B_{t+1}(m'), \qquad
    p_h = \frac{\sum_{m} F_t(m)\, B_{t+1}(m \cup h)}{\sum_m F_t(m)\, B_t(m)},

where row t, if m does not have it, takes a hypothesis h that it is the first row of and that has no
row in m. Only rows that share a hypothesis with a decided one can be in m: the *frontier*, of
:math:`w_t` rows, each with a bit of its own while it is there. So the tables have
:math:`\sum_t 2^{w_t}` entries. Next is decided the row of the frontier that adds the fewest to it,
from several first rows, and the cheapest order is taken. Tables are divided by their largest entry,
whose logarithm is kept, as counts have hundreds of digits.

**Belief propagation** on the same rows where the tables would be too large: the message from row j
to hypothesis h is the ratio of what j says for h being chosen and for it not being chosen,

.. math::

    r_{j \to h} = \Bigl(\sum_{h' \ni j,\, h' \ne h} \prod_{k \in h',\, k \ne j}
    r_{k \to h'}\Bigr)^{-1}, \qquad
    \frac{p_h}{1 - p_h} = \prod_{j \in h} r_{j \to h},

with the logarithms of old and new messages averaged. At a fixed point the shares of the hypotheses
of a row add up to 1 (Yedidia, Freeman & Weiss 2005: stationary points of the Bethe free energy).

**Windows.** These shares are wrong in the same direction everywhere, as what is near is counted
again on every loop through it. So each row is counted once more together with the rows around it,
as many as the tables allow: a hypothesis that reaches out of this window has the messages of the
rows outside for a weight, and a count is a sum of products of weights. What is left of the error
comes from far away. A window decides the rows in its middle; the share of a hypothesis is the mean
of what the windows of its rows say.

**Scores.** With a score :math:`s_h` an assignment counts :math:`\exp \sum_h s_h y_h` instead of 1:
a hypothesis has the weight :math:`e^{s_h}` in all of these sums. Such weights differ by more than
floating-point numbers can, so tables then hold logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, kernel, subkernel
from trellis.kernels.assignment_prices import rows_to_hypotheses
from trellis.kernels.assignment_search import components
from trellis.kernels.rows import copy, fill

__all__ = ["COUNTED", "INFEASIBLE", "LEFT", "PROPAGATED", "count_assignments"]

Array = np.ndarray[Any, Any]

COUNTED, PROPAGATED, INFEASIBLE, LEFT = 1, 0, -1, -2
"""What is known of a component: all, what belief propagation says, that there is none, nothing."""

_STARTS = 8  # first rows that orders are tried from
_OUTSIDE = -2  # turn of a row that is not in the component, or window, at hand
_SMALLEST, _GROWTH = 4, 1.25  # rows of the first window that is tried; how much larger the next is
_MIDDLE = 0.25  # share of the rows of a window that it decides
_FARTHEST = 700.0  # the largest message; the exponential of it is still a number
_NOTHING = -45.0  # logarithm of what adds nothing to 1


@subkernel
def _order_from(
    first: int, part: Array, start: Array, member: Array, rows: Array, most: float, turn: Array,
    order: Array, bit: Array, width: Array,
) -> float:  # fmt: skip
    """Order of the rows ``part`` that begins with one of them; entries of its tables, or inf.

    ``turn`` (rows) is the place in the order, ``bit`` (rows) that of a row in masks, -1 for one
    that is never in the frontier; ``width`` (m + 1) the number of bits before each turn. Other rows
    are OUTSIDE in ``turn`` and stay so.
    """
    m = len(part)
    for j in part:
        turn[j] = -1
        bit[j] = -1
    used = 0  # bits that are taken
    entries, width[0] = 1.0, 0
    for t in range(m):
        best, least = first, 1 << 30
        if t > 0:
            for j in part:
                if turn[j] >= 0 or bit[j] < 0:
                    continue
                added = 0
                for p in range(start[j], start[j + 1]):
                    for k in range(3):
                        i = rows[member[p], k]
                        # One that is met twice counts twice, which does no harm to a heuristic.
                        added += i >= 0 and i != j and turn[i] == -1 and bit[i] < 0
                if added < least:
                    best, least = j, added
        order[t] = best
        turn[best] = t
        if bit[best] >= 0:
            used &= ~(1 << bit[best])
        for p in range(start[best], start[best + 1]):
            for k in range(3):
                i = rows[member[p], k]
                if i >= 0 and turn[i] == -1 and bit[i] < 0:
                    free = 0
                    while used >> free & 1:
                        free += 1
                    if free > 50:
                        return np.inf
                    bit[i] = free
                    used |= 1 << free
        width[t + 1] = 0
        while used >> width[t + 1]:
            width[t + 1] += 1
        entries += 2.0 ** width[t + 1]
        if entries > most:
            return np.inf
    return entries


@subkernel
def _cheapest_order(
    part: Array, n_starts: int, start: Array, member: Array, rows: Array, most: float,
    trials: tuple[Array, Array, Array, Array], best: tuple[Array, Array, Array, Array],
) -> float:  # fmt: skip
    """The cheapest order of the rows ``part`` that begins with one of some rows.

    ``best`` gets turn, order, bit and width of :func:`_order_from`; returns the entries, or inf.
    """
    turn, order, bit, width = trials
    m = len(part)
    least = np.inf
    for i in range(min(n_starts, m)):
        # Evenly through the rows, which are in breadth-first order, from the last one on.
        first = part[m - 1 - i * m // n_starts] if m > n_starts else part[i]
        cost = _order_from(
            first, part, start, member, rows, min(most, least), turn, order, bit, width
        )
        if cost < least:
            least = cost
            copy(order[:m], best[1][:m])
            copy(width[: m + 1], best[3][: m + 1])
            for j in part:
                best[0][j], best[2][j] = turn[j], bit[j]
    for j in part:
        turn[j] = _OUTSIDE
    return least


@allocating
def _count(
    order: Array, turn: Array, bit: Array, width: Array, start: Array, member: Array, rows: Array,
    message: Array, share: Array,
) -> float:  # fmt: skip
    """Shares of the hypotheses of a component; returns the logarithm of the count, -inf for 0.

    In a window, what is counted are weights: ``message`` (H, 3) of the rows outside, in logarithms.
    """
    m = len(order)
    begin = np.zeros(m + 2, np.int64)
    for t in range(m + 1):
        begin[t + 1] = begin[t] + (1 << width[t])
    ways = np.zeros(begin[m + 1])
    ways[0] = 1.0
    log_count = 0.0
    n_places = 0
    for j in order:
        n_places += start[j + 1] - start[j]
    # Hypotheses that a row is the first of, and the later rows that they cover.
    mine, mask = np.empty(n_places, np.int64), np.empty(n_places, np.int64)
    weight = np.empty(n_places)
    until = np.zeros(m + 1, np.int64)
    n = 0
    for t in range(m):
        j = order[t]
        for p in range(start[j], start[j + 1]):
            h = member[p]
            covered, is_first, outside = 0, True, 0.0
            for k in range(3):
                i = rows[h, k]
                if i >= 0 and turn[i] == _OUTSIDE:
                    outside += message[h, k]
                elif i >= 0 and i != j:
                    is_first = is_first and turn[i] > t
                    covered |= 1 << max(bit[i], 0)
            if is_first:
                mine[n], mask[n], weight[n] = h, covered, np.exp(outside)
                share[h] = 0.0
                n += 1
        until[t + 1] = n
        own = 1 << bit[j] if bit[j] >= 0 else 0
        now, after = ways[begin[t] : begin[t + 1]], ways[begin[t + 1] : begin[t + 2]]
        for before in range(len(now)):
            number = now[before]
            if number == 0.0:
                continue
            if before & own:
                after[before & ~own] += number
            else:
                for q in range(until[t], n):
                    if before & mask[q] == 0:
                        after[before | mask[q]] += number * weight[q]
        largest = after.max()
        if largest == 0.0:
            return -np.inf
        for x in range(len(after)):
            after[x] /= largest
        log_count += np.log(largest)
    # Backwards; of these tables two at a time are enough.
    most = width[: m + 1].max()
    ahead, back = np.zeros(1 << most), np.zeros(1 << most)
    ahead[0] = 1.0
    for t in range(m - 1, -1, -1):
        j = order[t]
        own = 1 << bit[j] if bit[j] >= 0 else 0
        now = ways[begin[t] : begin[t + 1]]
        whole, largest = 0.0, 0.0
        for before in range(len(now)):
            back[before] = 0.0
            number = now[before]
            if number == 0.0:
                continue
            if before & own:
                back[before] = ahead[before & ~own]
            else:
                for q in range(until[t], until[t + 1]):
                    if before & mask[q] == 0:
                        rest = weight[q] * ahead[before | mask[q]]
                        back[before] += rest
                        share[mine[q]] += number * rest
            whole += number * back[before]
            largest = max(largest, back[before])
        for q in range(until[t], until[t + 1]):
            share[mine[q]] /= whole
        for x in range(len(now)):
            ahead[x] = back[x] / largest
    return log_count


@subkernel
def _log_add(a: float, b: float) -> float:
    """Logarithm of the sum of two numbers, of their logarithms."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf or b - a < _NOTHING else a + np.log1p(np.exp(b - a))


@allocating
def _weigh(
    order: Array, turn: Array, bit: Array, width: Array, start: Array, member: Array, rows: Array,
    score: Array, message: Array, share: Array,
) -> float:  # fmt: skip
    """Shares of the hypotheses of a component, by scores; the logarithm of the sum of all weights.

    It is :func:`_count` in logarithms.
    """
    m = len(order)
    begin = np.zeros(m + 2, np.int64)
    for t in range(m + 1):
        begin[t + 1] = begin[t] + (1 << width[t])
    ways = np.full(begin[m + 1], -np.inf)
    ways[0] = 0.0
    n_places = 0
    for j in order:
        n_places += start[j + 1] - start[j]
    mine, mask = np.empty(n_places, np.int64), np.empty(n_places, np.int64)
    weight = np.empty(n_places)
    until = np.zeros(m + 1, np.int64)
    n = 0
    for t in range(m):
        j = order[t]
        for p in range(start[j], start[j + 1]):
            h = member[p]
            covered, is_first, outside = 0, True, score[h]
            for k in range(3):
                i = rows[h, k]
                if i >= 0 and turn[i] == _OUTSIDE:
                    outside += message[h, k]
                elif i >= 0 and i != j:
                    is_first = is_first and turn[i] > t
                    covered |= 1 << max(bit[i], 0)
            if is_first:
                mine[n], mask[n], weight[n] = h, covered, outside
                share[h] = 0.0
                n += 1
        until[t + 1] = n
        own = 1 << bit[j] if bit[j] >= 0 else 0
        now, after = ways[begin[t] : begin[t + 1]], ways[begin[t + 1] : begin[t + 2]]
        for before in range(len(now)):
            number = now[before]
            if number == -np.inf:
                continue
            if before & own:
                then = before & ~own
                after[then] = _log_add(after[then], number)
            else:
                for q in range(until[t], n):
                    if before & mask[q] == 0:
                        then = before | mask[q]
                        after[then] = _log_add(after[then], number + weight[q])
    whole: float = ways[begin[m]]
    if whole == -np.inf:
        return whole
    most = width[: m + 1].max()
    ahead, back = np.full(1 << most, -np.inf), np.full(1 << most, -np.inf)
    ahead[0] = 0.0
    for t in range(m - 1, -1, -1):
        j = order[t]
        own = 1 << bit[j] if bit[j] >= 0 else 0
        now = ways[begin[t] : begin[t + 1]]
        for before in range(len(now)):
            back[before] = -np.inf
            number = now[before]
            if number == -np.inf:
                continue
            if before & own:
                back[before] = ahead[before & ~own]
            else:
                for q in range(until[t], until[t + 1]):
                    if before & mask[q] == 0:
                        rest = weight[q] + ahead[before | mask[q]]
                        back[before] = _log_add(back[before], rest)
                        if number + rest - whole > _NOTHING:
                            share[mine[q]] += np.exp(number + rest - whole)
        copy(back[: len(now)], ahead[: len(now)])
    return whole


@subkernel
def _place(rows: Array, h: int, j: int) -> int:
    """Which of the rows of a hypothesis is j."""
    return 0 if rows[h, 0] == j else (1 if rows[h, 1] == j else 2)


@allocating
def _propagate(
    part: Array, start: Array, member: Array, rows: Array, score: Array | None, message: Array,
    rounds: int, tolerance: float, share: Array,
) -> float:  # fmt: skip
    """Shares by belief propagation over the rows ``part``; the largest change in the last round.

    ``message`` (H, 3) has the logarithm of each row's message to the hypothesis.
    """
    most, farthest = 0, _FARTHEST
    for j in part:
        most = max(most, start[j + 1] - start[j])
        if score is not None:
            for p in range(start[j], start[j + 1]):
                farthest = max(farthest, _FARTHEST + 3.0 * abs(score[member[p]]))
    said, others = np.empty(most), np.empty(most)
    moved = np.inf
    for turn in range(rounds):
        moved = 0.0
        for at in range(len(part)):
            j = part[at if turn % 2 == 0 else len(part) - 1 - at]
            n = start[j + 1] - start[j]
            top = -np.inf
            for q in range(n):
                h = member[start[j] + q]
                said[q] = 0.0 if score is None else score[h]
                for k in range(3):
                    if rows[h, k] >= 0 and rows[h, k] != j:
                        said[q] += message[h, k]
                top = max(top, said[q])
            # Sums of all but one, without differences, which would lose the small ones.
            total = 0.0
            for q in range(n):
                said[q] = np.exp(said[q] - top)
                others[q] = total
                total += said[q]
            total = 0.0
            for q in range(n - 1, -1, -1):
                others[q] += total
                total += said[q]
            for q in range(n):
                h = member[start[j] + q]
                k = _place(rows, h, j)
                new = -top - np.log(others[q]) if others[q] > 0.0 else farthest
                new = min(max(new, -farthest), farthest)
                step = new - message[h, k]
                message[h, k] += 0.5 * step
                moved = max(moved, abs(step))
        if moved <= tolerance:
            break
    for j in part:
        for p in range(start[j], start[j + 1]):
            h = member[p]
            odds = 0.0 if score is None else score[h]
            for k in range(3):
                if rows[h, k] >= 0:
                    odds += message[h, k]
            share[h] = 1.0 / (1.0 + np.exp(-min(max(odds, -_FARTHEST), _FARTHEST)))
    return moved


@subkernel
def _log_count(
    part: Array, start: Array, member: Array, rows: Array, score: Array | None, share: Array
) -> float:
    """Bethe entropy: that of each row's choice, less what several rows count of one hypothesis.

    The mean score is added.
    """
    entropy = 0.0
    for j in part:
        for p in range(start[j], start[j + 1]):
            h = member[p]
            chosen = share[h]
            if score is not None and rows[h, 0] == j:
                entropy += chosen * score[h]
            if not 0.0 < chosen < 1.0:
                continue
            entropy -= chosen * np.log(chosen)
            if rows[h, 0] == j:
                own = -chosen * np.log(chosen) - (1.0 - chosen) * np.log1p(-chosen)
                for k in range(1, 3):
                    if rows[h, k] >= 0:
                        entropy -= own
    return entropy


@subkernel
def _around(
    centre: int, most: int, start: Array, member: Array, rows: Array, seen: Array, window: Array
) -> int:
    """Rows nearest to one, by steps over hypotheses; returns their number, at most ``most``."""
    window[0] = centre
    seen[centre] = True
    n, done = 1, 0
    while done < n < most:
        j = window[done]
        done += 1
        for p in range(start[j], start[j + 1]):
            for k in range(3):
                i = rows[member[p], k]
                if i >= 0 and not seen[i] and n < most:
                    seen[i] = True
                    window[n] = i
                    n += 1
    for j in window[:n]:
        seen[j] = False
    return n


@allocating
def _count_windows(
    part: Array, start: Array, member: Array, rows: Array, score: Array | None, message: Array,
    most: float, trials: tuple[Array, Array, Array, Array],
    best: tuple[Array, Array, Array, Array], marks: tuple[Array, Array],
    sums: tuple[Array, Array, Array], share: Array,
) -> None:  # fmt: skip
    """Shares of the hypotheses of a component from windows around its rows.

    ``marks`` (rows) and ``sums`` (H) are room, all zero where no other component was.
    """
    seen, decided = marks
    window, larger = np.empty(len(part), np.int64), np.empty(len(part), np.int64)
    own, total, n_said = sums
    for centre in part:
        if decided[centre]:
            continue
        n, size = 0, float(_SMALLEST)
        while n < len(part):
            m = _around(centre, min(int(size), len(part)), start, member, rows, seen, larger)
            cost = _cheapest_order(larger[:m], 2, start, member, rows, most, trials, best)
            if cost == np.inf:
                break
            n = m
            copy(larger[:m], window[:m])
            size *= _GROWTH
        if n == 0:  # even the smallest would take too much
            continue
        _cheapest_order(window[:n], 2, start, member, rows, most, trials, best)
        if score is None:
            _count(best[1][:n], best[0], best[2], best[3], start, member, rows, message, own)
        else:
            _weigh(best[1][:n], best[0], best[2], best[3], start, member, rows, score, message, own)
        for j in window[:n]:
            best[0][j] = _OUTSIDE
        for j in window[: max(1, int(_MIDDLE * n))]:
            if not decided[j]:
                decided[j] = True
                for p in range(start[j], start[j + 1]):
                    total[member[p]] += own[member[p]]
                    n_said[member[p]] += 1.0
    for j in part:
        for p in range(start[j], start[j + 1]):
            h = member[p]
            if n_said[h] > 0.0:
                share[h] = total[h] / n_said[h]


@allocating
def _places(n_rows: int) -> tuple[Array, Array, Array, Array]:
    """Room for the turns, the order, the bits and the widths of a component."""
    turn, bit = np.full(n_rows, _OUTSIDE), np.full(n_rows, -1)
    return turn, np.empty(n_rows, np.int64), bit, np.zeros(n_rows + 1, np.int64)


@kernel
def count_assignments(
    rows: Array, free: Array, score: Array | None, n_rows: int, entries: float, windows: float,
    rounds: int, tolerance: float, share: Array, part_of: Array, log_count: Array, status: Array,
) -> int:  # fmt: skip
    """Count the assignments of each component; returns the number of components.

    Parameters
    ----------
    rows : int32, shape (H, 3)
        Rows of each hypothesis, -1 after the last.
    free : bool, shape (H,)
        Hypotheses that may be chosen; rows that none of them covers are no part of anything.
    score : float64, shape (H,), or None
        Scores; None: all assignments count alike.
    n_rows : int
        Number of rows.
    entries : float
        Components with tables of more entries are left to belief propagation.
    windows : float
        Entries of the tables of a window; 0 for none.
    rounds, tolerance : int, float
        Of belief propagation: most rounds, and the change of messages at which it ends. With 0
        rounds there is none, and components of more entries are left.
    share : float64, shape (H,)
        Output, zeros before: share of the assignments that choose each of those hypotheses.
    part_of : int64, shape (n_rows,)
        Output: the component of each row, -1 for none.
    log_count : float64, shape (n_rows,)
        Output: logarithm of the number of assignments of each component, or of the sum of their
        weights.
    status : int8, shape (n_rows,)
        Output: COUNTED, PROPAGATED, INFEASIBLE or LEFT, for each component.
    """
    start, member = rows_to_hypotheses(rows, free, n_rows)
    order, begin = components(start, member, rows, n_rows)
    trials, best = _places(n_rows), _places(n_rows)
    message = np.zeros((len(rows), 3))
    marks = np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
    sums = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    fill(part_of, -1)
    n_parts = len(begin) - 1
    for c in range(n_parts):
        part = order[begin[c] : begin[c + 1]]
        for j in part:
            part_of[j] = c
        m = len(part)
        cost = _cheapest_order(part, _STARTS, start, member, rows, entries, trials, best)
        if cost < np.inf:
            if score is None:
                log_count[c] = _count(
                    best[1][:m], best[0], best[2], best[3], start, member, rows, message, share
                )
            else:
                log_count[c] = _weigh(
                    best[1][:m], best[0], best[2], best[3], start, member, rows, score, message,
                    share,
                )  # fmt: skip
            status[c] = COUNTED if log_count[c] > -np.inf else INFEASIBLE
        elif rounds == 0:
            status[c] = LEFT
        else:
            for j in part:
                best[0][j] = _OUTSIDE
            _propagate(part, start, member, rows, score, message, rounds, tolerance, share)
            log_count[c] = _log_count(part, start, member, rows, score, share)
            status[c] = PROPAGATED
            _count_windows(
                part, start, member, rows, score, message, windows, trials, best, marks, sums,
                share,
            )  # fmt: skip
    return n_parts
