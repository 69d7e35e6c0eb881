"""What the scores of stacked samples have in common, and how they are checked at the door.

Sample ``s`` is the rows ``offsets[s]:offsets[s + 1]`` of ``node`` (N, L), the scores of the labels;
``-inf`` forbids a label. Arrays are brought to one kind, and held read-only
(:mod:`trellis.arrays`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Float64s, Int64s, as_array, as_offsets, held, known
from trellis.domains import is_whole
from trellis.errors import DataError, InfeasibleError

__all__ = ["Potentials", "label_ids", "largest", "place"]


class Potentials:
    """Scores of stacked samples; the classes below add what holds the nodes together."""

    unit: ClassVar[str]
    """What a row is called in messages."""

    _score_names: ClassVar[tuple[str, ...]]
    """The arrays that hold scores."""

    node: npt.NDArray[Any]
    offsets: npt.NDArray[Any]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.offsets) - 1

    @property
    def owner(self) -> Int64s:
        """Number of the sample that each row belongs to."""
        return np.repeat(np.arange(self.n_samples), np.diff(self.offsets))

    def constrained(self, allowed: Bools) -> Self:
        """Forbid every label that is not in the label set of its row.

        Parameters
        ----------
        allowed : array of bool, shape (N, L)
            Whether a label is in the set of a row.

        Returns
        -------
        ChainPotentials or GraphPotentials
            The same scores, with ``-inf`` outside the sets.
        """
        allowed = as_array(allowed, np.bool_, "label sets", self.node.shape)
        return self.with_arrays(node=np.where(allowed, self.node, -np.inf))

    def with_costs(self, costs: npt.NDArray[Any]) -> Self:
        """Add a cost of either sign to each label of each row.

        Parameters
        ----------
        costs : array of float, shape (N, L)
            Added to the node scores, as for loss-augmented inference.

        Returns
        -------
        ChainPotentials or GraphPotentials
            The scores with the costs added.
        """
        costs = as_array(costs, np.float64, "costs", self.node.shape)
        self._refuse(costs, "cost")
        new = self.with_arrays(node=self.node + costs)
        new._refuse(new.node, "node score")
        return new

    def with_arrays(self, **changes: Any) -> Self:
        """Exchange arrays that are known to fit, without the checks of the constructor.

        Parameters
        ----------
        **changes : array, or StepChanges
            The new arrays by name, as they are held: contiguous and of the right kind.

        Returns
        -------
        ChainPotentials or GraphPotentials
            The scores with these arrays.
        """
        return known(type(self), **vars(self) | changes)

    def with_scores(self, function: Callable[[Float64s], Float64s]) -> Self:
        """Exchange all scores for those that a function of them gives.

        Parameters
        ----------
        function : callable
            From an array of scores to one of the same shape.

        Returns
        -------
        ChainPotentials or GraphPotentials
            The new scores.
        """
        return self.with_arrays(**{name: function(vars(self)[name]) for name in self._score_names})

    def in_unit(self, limit: float) -> tuple[Self, float]:
        """Measure scores beyond a limit in a larger unit, so that sums of them stay finite.

        Parameters
        ----------
        limit : float
            A power of two.

        Returns
        -------
        ChainPotentials or GraphPotentials
            The scores times a power of two that brings the largest down to the limit; digits are
            lost only of scores that are nothing beside it.
        float
            That power of two; 1.0 where no score is beyond the limit.
        """
        if max(map(largest, self._scores())) <= limit or (size := self.largest_score()) <= limit:
            return self, 1.0
        unit = 2.0 ** (math.frexp(limit)[1] - math.frexp(size)[1])
        return self.with_scores(lambda scores: scores * unit), unit

    def rows(self, sample: int) -> slice:
        """Rows of one sample.

        Parameters
        ----------
        sample : int
            Number of the sample.

        Returns
        -------
        slice
            Where its rows are.
        """
        if not (is_whole(sample) and 0 <= sample < self.n_samples):
            raise DataError(
                f"there is no sample {sample}; samples are numbered 0 to {self.n_samples - 1}"
            )
        return slice(self.offsets[sample], self.offsets[sample + 1])

    def require_feasible(self, values: Float64s, first: int = 0) -> None:
        """Raise if a score, bound or log Z is not finite.

        Parameters
        ----------
        values : float64, shape (S,)
            What was found for each sample.
        first : int
            Number of the first sample.
        """
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad) > 0:
            s = bad[0]
            raise InfeasibleError(
                f"(of {self.offsets[s + 1] - self.offsets[s]} {self.unit}s) has no labelling of "
                "finite score; allow more labels or pairs of labels",
                sample=int(first + s),
            )

    def _scores(self) -> list[Float64s]:
        """The arrays that hold scores."""
        return [vars(self)[name] for name in self._score_names]

    def largest_score(self) -> float:
        """Find the largest finite score that counts.

        Returns
        -------
        float
            Its size, whatever its sign.
        """
        return max(map(largest, self._scores()))

    def _hold(self, **arrays: Any) -> None:
        """Hold arrays that were checked in place of those that were given."""
        vars(self).update({name: held(a, vars(self)[name]) for name, a in arrays.items()})

    def _hold_nodes(self) -> None:
        """Check and hold the node scores and the offsets."""
        node, offsets = as_array(self.node, np.float64, "node scores"), as_offsets(self.offsets)
        if node.ndim != 2 or node.shape[1] == 0:
            raise DataError(
                f"node scores have shape {node.shape}; expected ({self.unit}s, labels) with at "
                "least one label"
            )
        if offsets[-1] != len(node):
            raise DataError(
                f"offsets end at {offsets[-1]}, but there are {len(node)} rows of node scores; "
                "the last offset must be the number of rows"
            )
        self._hold(node=node, offsets=offsets)
        self._refuse(node, "node score")

    def _refuse(self, values: Float64s, what: str) -> None:
        """Raise if one of the values (N, L) is NaN or +inf, and say where."""
        bad = np.argwhere(~(values < np.inf))
        if len(bad) > 0:
            row, label = bad[0]
            raise DataError(
                f"{what} of label {label} at {place(self.offsets, row, self.unit)} is "
                f"{values[row, label]}; scores must be finite, or -inf to forbid"
            )


def largest(values: Float64s) -> float:
    """The largest of the finite values, whatever their signs."""
    if values.size == 0:
        return 0.0
    low, high = float(values.min()), float(values.max())
    if math.isfinite(low) and math.isfinite(high):
        return max(-low, high)
    finite = values[np.isfinite(values)]
    return float(max(-finite.min(initial=0.0), finite.max(initial=0.0)))


def label_ids(values: npt.ArrayLike, n_labels: int, what: str) -> Int64s:
    """Read the ids of labels, in one dimension."""
    return as_array(values, np.int64, what, (None,), low=0, high=n_labels)


def place(offsets: Int64s, row: int, unit: str) -> str:
    """Say which position (or node) of which sample a row is."""
    s = np.searchsorted(offsets, row, side="right") - 1
    return f"{unit} {row - offsets[s]} of sample {s}"
