r"""Intervals that overlap: how they lie to each other, and the best set of which no two do.

Intervals :math:`[a_i, b_i)` of a sample with weights :math:`w_i`. Sorted by their ends, the largest
sum of weights of intervals among the first i that do not overlap is

.. math:: W_i = \max(W_{i-1},\; w_i + W_{q(i)}), \qquad q(i) = |\{k : b_k \le a_i\}|,

(weighted interval scheduling; Kleinberg and Tardos, *Algorithm Design*, 2006, section 6.1).
Nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["best_intervals", "best_rivals", "distinct_spans", "mark_awake", "mark_overlaps"]

# Sums closer than this, relatively, are equal: those of other intervals are added in another order.
_EQUAL = 1e-12


@kernel
def best_intervals(offsets: Any, start: Any, end: Any, weight: Any, chosen: Any) -> None:
    """Mark in ``chosen`` the intervals of each sample that do not overlap and weigh the most.

    Those of a sample are sorted by their ends. None of weight 0 or less is chosen, and of equals
    the set whose last interval in this order comes first.
    """
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    total = np.zeros(longest + 1)
    taken = np.zeros(longest + 1, np.bool_)
    before = np.zeros(longest + 1, np.int64)
    for s in range(len(offsets) - 1):
        first, n = offsets[s], offsets[s + 1] - offsets[s]
        for i in range(1, n + 1):
            low, high = 0, i - 1  # how many end where this one begins, or earlier
            while low < high:
                middle = (low + high) // 2
                if end[first + middle] <= start[first + i - 1]:
                    low = middle + 1
                else:
                    high = middle
            before[i] = low
            with_it = total[low] + weight[first + i - 1]
            taken[i] = weight[first + i - 1] > 0.0 and with_it > total[i - 1] + _EQUAL * (
                1.0 + abs(total[i - 1])
            )
            total[i] = with_it if taken[i] else total[i - 1]
        i = n
        while i > 0:
            if taken[i]:
                chosen[first + i - 1] = True
                i = before[i]
            else:
                i -= 1


@kernel
def mark_overlaps(
    offsets: Any, start: Any, end: Any, kind: Any, exact: Any, bits: Any, agreement: Any
) -> None:
    """Add to ``agreement`` (C, p) how the spans of each expert lie to each candidate.

    Candidates of a sample are distinct and sorted by their starts. ``exact`` (C, p) says who gives
    them; ``bits`` are those of the same start, the same end, the same extent, an overlap within a
    type and one between types.
    """
    p = exact.shape[1]
    for s in range(len(offsets) - 1):
        for a in range(offsets[s], offsets[s + 1]):
            for b in range(a + 1, offsets[s + 1]):
                if start[b] >= end[a]:
                    break
                same_start, same_end = start[a] == start[b], end[a] == end[b]
                if kind[a] == kind[b]:
                    mark = bits[3]
                    if same_start:
                        mark |= bits[0]
                    if same_end:
                        mark |= bits[1]
                else:
                    mark = bits[4]
                    if same_start and same_end:
                        mark |= bits[2]
                for j in range(p):
                    if exact[b, j]:
                        agreement[a, j] |= mark
                    if exact[a, j]:
                        agreement[b, j] |= mark


@kernel
def best_rivals(offsets: Any, start: Any, end: Any, value: Any, rival: Any) -> None:
    """Raise ``rival`` to the largest value of another interval of the sample that overlaps.

    Intervals of a sample are sorted by their starts.
    """
    for s in range(len(offsets) - 1):
        for a in range(offsets[s], offsets[s + 1]):
            for b in range(a + 1, offsets[s + 1]):
                if start[b] >= end[a]:
                    break
                rival[a] = max(rival[a], value[b])
                rival[b] = max(rival[b], value[a])


@kernel
def distinct_spans(
    offsets: Any, codes: Any, starts: Any, within: Any, type_of: Any, found: Any, exact: Any
) -> int:
    """Fill in the distinct spans of label codes (N, p) and who gives them; return their number.

    ``starts`` (L, L), ``within`` and ``type_of`` (L,) say how labels are read; -1 is outside of
    all spans, and so must be the last label. The rows of ``found`` are samples, starts and ends,
    counted from the beginning of the sample, and types. Spans come sample after sample, in no
    order within one.
    """
    sample, start, end, kind = found[0], found[1], found[2], found[3]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    head = np.empty(longest, np.int64)  # the last span found that starts at a position
    following = np.empty(len(start), np.int64)  # the one found before it there
    n, outside = 0, len(within) - 1
    for s in range(len(offsets) - 1):
        first, length = offsets[s], offsets[s + 1] - offsets[s]
        head[:length] = -1
        for j in range(codes.shape[1]):
            begin, before = -1, outside
            for t in range(length + 1):
                code = outside
                if t < length and codes[first + t, j] >= 0:
                    code = codes[first + t, j]
                new = within[code] and (t == 0 or starts[before, code])
                if begin >= 0 and (new or not within[code]):
                    type_ = type_of[codes[first + begin, j]]
                    c = head[begin]
                    while c >= 0 and (end[c] != t or kind[c] != type_):
                        c = following[c]
                    if c < 0:
                        c = n
                        n += 1
                        sample[c], start[c], end[c], kind[c] = s, begin, t, type_
                        following[c] = head[begin]
                        head[begin] = c
                    exact[c, j] = True
                    begin = -1
                if new:
                    begin = t
                before = code
    return n


@kernel
def mark_awake(first: Any, last: Any, codes: Any, bit: int, agreement: Any) -> None:
    """Add a bit to ``agreement`` (C, p) where an expert says something from first to last."""
    for c in range(len(first)):
        for j in range(codes.shape[1]):
            awake = True
            for t in range(first[c], last[c]):
                if codes[t, j] < 0:
                    awake = False
                    break
            if awake:
                agreement[c, j] |= bit
