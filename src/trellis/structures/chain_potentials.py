"""Scores of stacked linear chains, checked.

All samples are stacked: sample ``s`` is the rows ``offsets[s]:offsets[s + 1]`` of ``node`` (N, L),
the scores of the labels. ``trans`` holds the scores of the steps from one label to the next: one
matrix (L, L) for all positions, or (N, L, L), of which matrix t is for the step into position t. A
matrix for all positions may have ``changes``: other scores of some pairs at some positions.
A score of ``-inf`` forbids a label or a transition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, Int64s, as_array
from trellis.errors import DataError
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.potentials import Potentials, largest, place
from trellis.structures.step_changes import StepChanges

__all__ = ["ChainPotentials"]


@dataclass(frozen=True, eq=False)
class ChainPotentials(Potentials):
    """Scores of stacked linear chains.

    Parameters
    ----------
    node : array of float, shape (N, L)
        Score of each label at each position of all samples; ``-inf`` forbids it. Held in float64.
    trans : array of float, shape (L, L) or (N, L, L)
        Score of label j right after label i; ``-inf`` forbids it. Either the same at all positions,
        in ``trans[i, j]``, or for each position t that of the step from t - 1 into t, in
        ``trans[t, i, j]``. No step leads into the first position of a sample: its matrix is never
        looked at and may hold anything. Held in float64.
    offsets : array of int, shape (S + 1,)
        Sample s is the rows ``offsets[s]:offsets[s + 1]``.
    changes : StepChanges, optional
        Pairs of labels that have other scores at some positions than in ``trans``, which is (L, L)
        then; :meth:`tables` are both together.

    Raises
    ------
    DataError
        If shapes or offsets do not fit each other, or a score that counts is NaN or +inf.

    Examples
    --------
    >>> from trellis.structures import best
    >>> p = ChainPotentials(
    ...     node=[[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]], trans=[[1.0, 0.0], [0.0, 1.0]],
    ...     offsets=[0, 2, 3],
    ... )
    >>> labels, scores = best(p)
    >>> labels.tolist(), scores.tolist()
    ([0, 0, 0], [2.0, 0.0])
    >>> labels, scores = best(p.constrained(np.array([[0, 1], [1, 1], [1, 1]], dtype=bool)))
    >>> labels.tolist(), scores.tolist()
    ([1, 1, 0], [1.5, 0.0])

    Transitions of each position; only those into position 1 count here:

    >>> trans = np.zeros((3, 2, 2))
    >>> trans[1, 1, 0] = 5.0
    >>> labels, scores = best(ChainPotentials(p.node, trans, p.offsets))
    >>> labels.tolist(), scores.tolist()
    ([1, 0, 0], [5.0, 0.0])

    The same, by the one pair that is not zero:

    >>> changes = StepChanges(ptr=[0, 0, 1, 1], source=[1], target=[0], score=[5.0])
    >>> best(ChainPotentials(p.node, np.zeros((2, 2)), p.offsets, changes))[0].tolist()
    [1, 0, 0]
    """

    unit: ClassVar[str] = "position"
    _score_names = ("node", "trans")

    node: npt.NDArray[Any]
    trans: npt.NDArray[Any]
    offsets: npt.NDArray[Any]
    changes: StepChanges | None = None

    def __post_init__(self) -> None:
        self._hold_nodes()
        trans = as_array(self.trans, np.float64, "transition scores")
        n, n_labels = self.node.shape
        shared = (n_labels, n_labels)
        if trans.shape not in (shared, (n, *shared)):
            raise DataError(
                f"transition scores have shape {trans.shape}; expected {shared} or, if they differ "
                f"from position to position, {(n, *shared)}, since the node scores have {n_labels} "
                f"labels at {n} positions"
            )
        self._hold(trans=trans)
        wrong = ~(trans < np.inf)
        if trans.ndim == 3:
            wrong[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
        bad = np.argwhere(wrong)
        if len(bad) > 0:
            *row, i, j = bad[0]
            into = f" into {place(self.offsets, row[0], self.unit)}" if row else ""
            raise DataError(
                f"transition score from label {i} to label {j}{into} is {trans[tuple(bad[0])]}; "
                "scores must be finite, or -inf to forbid"
            )
        if self.changes is not None:
            self._check_changes(self.changes)

    def _check_changes(self, changes: StepChanges) -> None:
        if not isinstance(changes, StepChanges):
            raise DataError(f"changes are of type {type(changes).__name__}; expected StepChanges")
        if self.trans.ndim == 3:
            raise DataError("transitions that differ from position to position have no changes")
        changes.check(*self.node.shape)
        bad = np.flatnonzero(~(changes.score < np.inf))
        if len(bad) > 0:
            q = bad[0]
            into = place(self.offsets, changes.position[q], self.unit)
            raise DataError(
                f"transition score from label {changes.source[q]} to label {changes.target[q]} "
                f"into {into} is {changes.score[q]}; scores must be finite, or -inf to forbid"
            )

    def tables(self) -> Float64s:
        """Compute all transitions: (N, L, L), or (L, L) where all positions share them.

        Returns
        -------
        float64
            ``trans``, with the changes written into it.
        """
        return self.trans if self.changes is None else self.changes.written_to(self.trans)

    def with_scores(self, function: Callable[[Float64s], Float64s]) -> Self:
        """Exchange all scores for those that a function of them gives.

        Parameters
        ----------
        function : callable
            From an array of scores to one of the same shape.

        Returns
        -------
        ChainPotentials
            The new scores.
        """
        new = super().with_scores(function)
        if self.changes is None:
            return new
        return new.with_arrays(changes=self.changes.with_scores(function(self.changes.score)))

    def _scores(self) -> list[Float64s]:
        changed = [] if self.changes is None else [self.changes.score]
        return [*super()._scores(), *changed]

    def largest_score(self) -> float:
        """Find the largest finite score that counts.

        Returns
        -------
        float
            Its size, whatever its sign.
        """
        if self.trans.ndim == 2:
            return super().largest_score()
        return max(largest(self.node), largest(self.trans[self.steps]))

    @property
    def steps(self) -> Int64s:
        """The positions that a step leads into: all but the first of each sample."""
        into = np.ones(len(self.node), np.bool_)
        into[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
        return np.flatnonzero(into)

    def as_graph(self) -> GraphPotentials:
        """The same scores as those of graphs, whose edges are the :attr:`steps`, in order."""
        steps, tables = self.steps, self.tables()
        pair = tables if tables.ndim == 2 else tables[steps]
        edges = np.stack([steps - 1, steps], axis=1)
        return GraphPotentials(self.node, pair, edges, self.offsets)

    def alone(self, sample: int) -> ChainPotentials:
        """Take out one sample.

        Parameters
        ----------
        sample : int
            Number of the sample.

        Returns
        -------
        ChainPotentials
            The scores of this sample.
        """
        rows = self.rows(sample)
        node = self.node[rows]
        trans = self.trans if self.trans.ndim == 2 else self.trans[rows]
        changes = None if self.changes is None else self.changes.at(rows)
        offsets = np.array([0, len(node)])
        return self.with_arrays(node=node, trans=trans, offsets=offsets, changes=changes)
