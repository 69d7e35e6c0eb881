"""Transitions of a chain that are shared by all positions, but for some pairs of labels.

At position t the pairs ``(source[q], target[q])``, q from ``ptr[t]`` to ``ptr[t + 1] - 1``, have
the scores ``score[q]`` instead of those that all positions share. This is what features crossed
with a few pairs of labels amount to: a table (L, L) for every position would hold the same numbers
again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import (
    Array,
    Float64s,
    Int32s,
    Int64s,
    as_array,
    as_offsets,
    for_kernels,
    held,
    known,
)
from trellis.errors import DataError

__all__ = ["StepChanges"]


@dataclass(frozen=True, eq=False)
class StepChanges:
    """Scores of pairs of labels that some positions have instead of the shared ones.

    Parameters
    ----------
    ptr : array of int, shape (N + 1,)
        The pairs of position t are those from ``ptr[t]`` to ``ptr[t + 1] - 1``.
    source, target : array of int
        The label before, and the label at the position. Of equal pairs of a position the last one
        counts.
    score : array of float
        Their scores; ``-inf`` forbids them. Held in float64.

    Raises
    ------
    DataError
        If the arrays do not fit each other.

    Examples
    --------
    Of three positions the second has one other score:

    >>> changes = StepChanges(ptr=[0, 0, 1, 1], source=[1], target=[0], score=[5.0])
    >>> changes.written_to(np.zeros((2, 2)))[1].tolist()
    [[0.0, 0.0], [5.0, 0.0]]
    """

    ptr: npt.NDArray[Any]
    source: npt.NDArray[Any]
    target: npt.NDArray[Any]
    score: npt.NDArray[Any]

    def __post_init__(self) -> None:
        score = as_array(self.score, np.float64, "changed scores", (None,))
        arrays = {"ptr": as_offsets(self.ptr, "ptr", end=len(score)), "score": score}
        for name in ("source", "target"):
            arrays[name] = as_array(vars(self)[name], np.int32, name, score.shape, low=0)
        vars(self).update({name: held(a, vars(self)[name]) for name, a in arrays.items()})

    @classmethod
    def found(cls, ptr: Int64s, source: Int32s, target: Int32s, score: Array) -> StepChanges:
        """Changes that a kernel has found, which are known to fit each other."""
        score = score.astype(np.float64, copy=False)
        return known(cls, ptr=ptr, source=source, target=target, score=score)

    @property
    def position(self) -> Int64s:
        """Position of each pair."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def with_scores(self, score: Float64s) -> StepChanges:
        """The same pairs with other scores."""
        return known(StepChanges, **vars(self) | {"score": score})

    def at(self, rows: slice) -> StepChanges:
        """The changes at some positions, counted from the first of them."""
        ptr = self.ptr[rows.start : rows.stop + 1]
        pairs = slice(ptr[0], ptr[-1])
        source, target, score = (a[pairs] for a in (self.source, self.target, self.score))
        return known(StepChanges, ptr=ptr - ptr[0], source=source, target=target, score=score)

    def written_to(self, trans: Float64s) -> Float64s:
        """All transitions (N, L, L), where ``trans`` (L, L) are those that are shared."""
        tables = np.repeat(trans[None], len(self.ptr) - 1, axis=0)
        tables[self.position, self.source, self.target] = self.score
        return tables

    def check(self, n: int, n_labels: int) -> None:
        """Refuse changes of other chains than those of n positions and so many labels."""
        if len(self.ptr) != n + 1:
            raise DataError(
                f"there are changes of {len(self.ptr) - 1} positions, but {n} positions"
            )
        last = max(self.source.max(initial=0), self.target.max(initial=0))
        if last >= n_labels:
            raise DataError(f"there are changes of label {last}, but {n_labels} labels")

    def arguments(self) -> Any:
        """The changes as kernels take them (:class:`trellis.kernels.step_changes.StepChanges`)."""
        from trellis.kernels import step_changes

        arrays: list[Array] = [self.ptr, self.source, self.target, self.score]
        return step_changes.StepChanges(*map(for_kernels, arrays))
