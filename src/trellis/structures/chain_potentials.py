"""Scores of stacked linear chains, checked.

All samples are stacked: sample ``s`` is the rows ``offsets[s]:offsets[s + 1]`` of ``node`` (N, L),
the scores of the labels. ``trans`` holds the scores of the steps from one label to the next: one
matrix (L, L) for all positions, or (N, L, L), of which matrix t is for the step into position t.
A score of ``-inf`` forbids a label or a transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trellis.arrays import Int64s, as_array
from trellis.errors import DataError
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.potentials import Potentials, largest, place

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
    """

    unit: ClassVar[str] = "position"
    _score_names = ("node", "trans")

    node: npt.NDArray[Any]
    trans: npt.NDArray[Any]
    offsets: npt.NDArray[Any]

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

    def _largest(self) -> float:
        steps = self.trans if self.trans.ndim == 2 else self.trans[self.steps]
        return max(largest(self.node), largest(steps))

    @property
    def steps(self) -> Int64s:
        """The positions that a step leads into: all but the first of each sample."""
        into = np.ones(len(self.node), np.bool_)
        into[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
        return np.flatnonzero(into)

    def as_graph(self) -> GraphPotentials:
        """The same scores as those of graphs, whose edges are the :attr:`steps`, in order."""
        steps = self.steps
        pair = self.trans if self.trans.ndim == 2 else self.trans[steps]
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
        return self.with_arrays(node=node, trans=trans, offsets=np.array([0, len(node)]))
