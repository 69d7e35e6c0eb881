"""Transitions that are one table for all positions, but for some label pairs.

    trans_t(i, j) = score_q  if a q from ptr[t] to ptr[t + 1] − 1 has (source_q, target_q) = (i, j),
                    T(i, j)  else

A kernel keeps one working table. Before a step it writes the scores of the step there, then it uses
the table as if all positions shared it, and then writes back what was there before, from the
transposed table. So nothing cancels, and a step costs what a plain one does and two numbers
for each pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import inner, subkernel
from trellis.kernels.lanes import get, put

__all__ = [
    "StepChanges",
    "change",
    "change_back",
    "change_row",
    "most_changes",
    "none",
    "turned",
]

Array = np.ndarray[Any, Any]


class StepChanges(NamedTuple):
    """Pairs with scores of their own, each at most once at a position; all empty if there are none.

    ``ptr`` (N + 1,) is int64, ``source`` and ``target`` are int32, and ``score`` is of the type of
    the table. The first position of a sample has no pairs.
    """

    ptr: Array
    source: Array
    target: Array
    score: Array


def none(like: Array) -> StepChanges:
    """No changes of a table."""
    no_labels = np.zeros(0, np.int32)
    return StepChanges(np.zeros(0, np.int64), no_labels, no_labels, np.zeros(0, like.dtype))


@subkernel
def turned(changes: StepChanges) -> StepChanges:
    """The same of transposed tables."""
    return StepChanges(changes.ptr, changes.target, changes.source, changes.score)


@inner
def change(changes: StepChanges, t: int, table: Array) -> None:
    """Write the scores of the pairs of position t to a table."""
    ptr, source, target, score = changes
    if ptr.size:
        for q in range(ptr[t], ptr[t + 1]):
            put(table, source[q] * table.shape[1] + target[q], score[q])


@inner
def change_back(changes: StepChanges, t: int, across: Array, table: Array) -> None:
    """Write back what the pairs of position t had before, which the transposed table still has."""
    ptr, source, target, _ = changes
    if ptr.size:
        for q in range(ptr[t], ptr[t + 1]):
            i, j = source[q], target[q]
            put(table, i * table.shape[1] + j, get(across, j * across.shape[1] + i))


@inner
def change_row(changes: StepChanges, t: int, i: int, row: Array) -> None:
    """Do what ``change`` does, to row i of a table."""
    ptr, source, target, score = changes
    if ptr.size:
        for q in range(ptr[t], ptr[t + 1]):
            if source[q] == i:
                row[target[q]] = score[q]


@inner
def most_changes(changes: StepChanges, offsets: Array) -> int:
    """Pairs of the sample that has the most."""
    most = 0
    if changes.ptr.size:
        for s in range(offsets.size - 1):
            most = max(most, changes.ptr[offsets[s + 1]] - changes.ptr[offsets[s]])
    return most
