"""Pieces in the order of visiting, and how much of each is annotated.

The k-th piece has the places ``starts[k] … ends[k] − 1``. On chains a place is a position of the
corpus; on trees it is a place in the order of a :class:`~trellis.kernels.forest.Forest`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import allocating, fragment, inner

__all__ = [
    "FULLY",
    "NOTHING",
    "PARTLY",
    "LabelSets",
    "Pieces",
    "Visits",
    "annotation",
    "longest_piece",
    "visits_of",
]

Array = np.ndarray[Any, Any]

# How much of a piece is annotated.
FULLY, PARTLY, NOTHING = range(3)


class Pieces(NamedTuple):
    """Pieces in the order of visiting, all arrays (K,)."""

    starts: Array
    ends: Array
    weights: Array


class Visits(NamedTuple):
    """Pieces, and the positions of all of them in one queue.

    Piece k has the positions ``queue[first[k]:first[k + 1]]``. The queue tells what comes next,
    whatever piece it is in, so that it can be fetched ahead.
    """

    starts: Array
    ends: Array
    weights: Array
    first: Array
    queue: Array


class LabelSets(NamedTuple):
    """The labels that are allowed at each position.

    ``ids`` (N,) are rows of ``table`` (R, L): the first L rows are the single labels, row L is the
    full set, which annotates nothing.
    """

    ids: Array
    table: Array


@allocating
def visits_of(pieces: Pieces, forest: Any) -> Visits:
    """The visits of pieces of a forest, or of chains if that is None."""
    starts, ends, weights = pieces
    first = np.zeros(starts.size + 1, np.int64)
    for k in range(starts.size):
        first[k + 1] = first[k] + ends[k] - starts[k]
    queue = np.empty(first[starts.size], np.int64)
    for k in range(starts.size):
        for i in range(ends[k] - starts[k]):
            place = starts[k] + i
            queue[first[k] + i] = place if forest is None else forest.order[place]
    return Visits(starts, ends, weights, first, queue)


@inner
def longest_piece(pieces: Pieces) -> int:
    """Positions of the longest piece (at least 1)."""
    longest = 1
    for k in range(pieces.starts.size):
        longest = max(longest, pieces.ends[k] - pieces.starts[k])
    return longest


@fragment
def annotation(sets: LabelSets, visits: Visits, k: int) -> int:
    """Whether every position of piece k has one label, some have larger sets, or none says any."""
    n_labels = sets.table.shape[1]
    full = 0
    single = 0
    for i in range(visits.first[k], visits.first[k + 1]):
        row = sets.ids[visits.queue[i]]
        if row < n_labels:
            single += 1
        elif row == n_labels:
            full += 1
    n = visits.first[k + 1] - visits.first[k]
    if single == n:
        return FULLY
    if full == n:
        return NOTHING
    return PARTLY
