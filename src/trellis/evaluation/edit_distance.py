r"""Levenshtein distance of label sequences, for outputs of unequal length.

The least number of insertions, deletions and substitutions that turn a into b, by the recursion
over prefixes

.. math:: d_{i,j} = \min(d_{i-1,j} + 1,\ d_{i,j-1} + 1,\ d_{i-1,j-1} + [a_i \ne b_j]), \qquad
          d_{i,0} = i,\ d_{0,j} = j,

whose differences of neighbours are -1, 0 or 1. So a column is two sets of rows, those where it
rises and those where it falls, and the next column follows from it by some operations on the
sets [1]_, [2]_: integers with a bit for each row, of which Python adds and combines 30 at a time.
Time is :math:`O(|a|\,|b| / 30)`, memory :math:`O(|a|)` and a set for each distinct symbol.

References
----------
.. [1] G. Myers, *A fast bit-vector algorithm for approximate string matching based on dynamic
   programming*, 1999.
.. [2] H. Hyyrö, *Explaining and extending the bit-parallel approximate string matching algorithm
   of Myers*, 2001.
"""

from __future__ import annotations

from collections.abc import Sequence

from trellis.domains import strings, text

__all__ = ["edit_distance", "normalised_edit_distance"]


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Least number of insertions, deletions and substitutions that turn `a` into `b`.

    Parameters
    ----------
    a, b : sequence of str
        Of any lengths, also empty. A string is the sequence of its characters.

    Returns
    -------
    int
        Between the difference of the lengths and the larger length.

    Examples
    --------
    >>> edit_distance(["K", "AE", "T"], ["K", "AA", "T", "S"])
    2
    >>> edit_distance("kitten", "sitting")
    3
    """
    a, b = _symbols(a, "a"), _symbols(b, "b")
    n = len(a)
    if n == 0:
        return len(b)
    rows: dict[str, int] = {}
    for i, symbol in enumerate(a):
        rows[symbol] = rows.get(symbol, 0) | 1 << i
    every, last = (1 << n) - 1, 1 << (n - 1)
    # Rows whose distance is above that of the row before in this column, and below it; then those
    # that are above and below that of the same row in the column before.
    up, down, distance = every, 0, n
    for symbol in b:
        equal = rows.get(symbol, 0)
        flat = (((equal & up) + up) ^ up) | equal | down
        right_up, right_down = down | ~(flat | up), up & flat
        if right_up & last:
            distance += 1
        elif right_down & last:
            distance -= 1
        right_up = right_up << 1 | 1
        up = (right_down << 1 | ~(flat | right_up)) & every
        down = right_up & flat & every
    return distance


def _symbols(sequence: Sequence[str], name: str) -> Sequence[str]:
    (text | strings).check(name, sequence)
    return sequence


def normalised_edit_distance(a: Sequence[str], b: Sequence[str]) -> float:
    """Edit distance divided by the larger of the two lengths.

    Parameters
    ----------
    a, b : sequence of str

    Returns
    -------
    float
        In [0, 1]; 0 for two empty sequences.

    Examples
    --------
    >>> normalised_edit_distance(["K", "AE", "T"], ["K", "AA", "T", "S"])
    0.5
    """
    a, b = _symbols(a, "a"), _symbols(b, "b")
    longest = max(len(a), len(b))
    return edit_distance(a, b) / longest if longest else 0.0
