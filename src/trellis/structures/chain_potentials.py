"""Scores of stacked linear chains, checked.

All samples are stacked: sample ``s`` is the rows ``offsets[s]:offsets[s + 1]`` of ``node`` (N, L),
the scores of the labels. ``trans`` holds the scores of the steps from one label to the next: one
matrix (L, L) for all positions, or (N, L, L), of which matrix t is for the step into position t.
A score of ``-inf`` forbids a label or a transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools
from trellis.errors import DataError
from trellis.structures._arrays import integers, place, refuse_node, require_offsets, scores

__all__ = ["ChainPotentials"]


@dataclass(frozen=True, eq=False)
class ChainPotentials:
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

    node: npt.NDArray[Any]
    trans: npt.NDArray[Any]
    offsets: npt.NDArray[Any]

    def __post_init__(self) -> None:
        node = scores(self.node, "node scores")
        trans = scores(self.trans, "transition scores")
        offsets = integers(self.offsets, "offsets")
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "trans", trans)
        object.__setattr__(self, "offsets", offsets)

        if node.ndim != 2 or node.shape[1] == 0:
            raise DataError(
                f"node scores have shape {node.shape}; expected (positions, labels) with at "
                "least one label"
            )
        n, n_labels = node.shape
        shared = (n_labels, n_labels)
        if trans.shape not in (shared, (n, *shared)):
            raise DataError(
                f"transition scores have shape {trans.shape}; expected {shared} or, if they differ "
                f"from position to position, {(n, *shared)}, since the node scores have {n_labels} "
                f"labels at {n} positions"
            )
        require_offsets(offsets, len(node))
        refuse_node(node, "node score", offsets, "position")
        self._refuse_transitions()

    def constrained(self, allowed: Bools) -> ChainPotentials:
        """Forbid every label that is not in the label set of its position.

        Parameters
        ----------
        allowed : array of bool, shape (N, L)
            Whether a label is in the set of a position.

        Returns
        -------
        ChainPotentials
            The same scores, with ``-inf`` outside the sets.
        """
        allowed = np.asarray(allowed)
        if allowed.dtype != np.bool_ or allowed.shape != self.node.shape:
            raise DataError(
                f"label sets are {allowed.dtype} of shape {allowed.shape}; "
                f"expected bool of shape {self.node.shape}"
            )
        return ChainPotentials(np.where(allowed, self.node, -np.inf), self.trans, self.offsets)

    def with_costs(self, costs: npt.NDArray[Any]) -> ChainPotentials:
        """Add a cost of either sign to each label at each position.

        Parameters
        ----------
        costs : array of float, shape (N, L)
            Added to the node scores, as for loss-augmented inference.

        Returns
        -------
        ChainPotentials
            The scores with the costs added.
        """
        costs = scores(costs, "costs")
        if costs.shape != self.node.shape:
            raise DataError(f"costs have shape {costs.shape}; expected {self.node.shape}")
        refuse_node(costs, "cost", self.offsets, "position")
        return ChainPotentials(self.node + costs, self.trans, self.offsets)

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
        n_samples = len(self.offsets) - 1
        if not 0 <= sample < n_samples:
            raise DataError(
                f"there is no sample {sample}; samples are numbered 0 to {n_samples - 1}"
            )
        rows = slice(self.offsets[sample], self.offsets[sample + 1])
        node = self.node[rows]
        trans = self.trans if self.trans.ndim == 2 else self.trans[rows]
        return ChainPotentials(node, trans, np.array([0, len(node)]))

    def _refuse_transitions(self) -> None:
        """Raise if a transition that counts is NaN or +inf, and say where."""
        wrong = ~(self.trans < np.inf)
        if self.trans.ndim == 3:
            wrong[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
        bad = np.argwhere(wrong)
        if len(bad) > 0:
            *row, i, j = bad[0]
            into = f" into {place(self.offsets, row[0], 'position')}" if row else ""
            value = self.trans[tuple(bad[0])]
            raise DataError(
                f"transition score from label {i} to label {j}{into} is {value}; "
                "scores must be finite, or -inf to forbid"
            )
