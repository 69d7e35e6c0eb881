r"""Levenshtein distance of label sequences, for outputs of unequal length.

The least number of insertions, deletions and substitutions that turn a into b, by the recursion
over prefixes

.. math:: d_{i,j} = \min(d_{i-1,j} + 1,\ d_{i,j-1} + 1,\ d_{i-1,j-1} + [a_i \ne b_j]), \qquad
          d_{i,0} = i,\ d_{0,j} = j,

in :math:`O(|a|\,|b|)` time and :math:`O(|b|)` memory.

References
----------
R. A. Wagner and M. J. Fischer, *The string-to-string correction problem*, 1974.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            # Compare by hand: min() of three takes longer than the rest of the loop.
            best = diagonal if x == y else diagonal + 1
            if row[j] < best:
                best = row[j] + 1
            if row[j - 1] < best:
                best = row[j - 1] + 1
            diagonal, row[j] = row[j], best
    return row[-1]


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
    longest = max(len(a), len(b))
    return edit_distance(a, b) / longest if longest else 0.0
