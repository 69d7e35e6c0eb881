"""The averaged structured perceptron as a learner of passes (Collins 2002; Sun 2014 on pieces)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.problems import LabelProblem, PerceptronLoss, Weights
from trellis.problems.visits import Visits
from trellis.solvers.sgd import restore_weights, weight_state

__all__ = ["AveragedPerceptron"]


class AveragedPerceptron:
    """Perceptron updates on pieces; predicts with the average of the weights over all visits.

    Parameters
    ----------
    objective : PerceptronLoss
    start : Weights
        Initial weights, changed in place.
    batch_size : int
        Pieces whose paths are found with the same weights.
    averaged : bool
        Predict with the average of the weights (else with the last).
    """

    windows = 1

    def __init__(
        self,
        objective: PerceptronLoss,
        start: Weights,
        *,
        batch_size: int = 1,
        averaged: bool = True,
    ) -> None:
        self.objective = objective
        self.batch_size, self.averaged = batch_size, averaged
        self._weights = start
        self._sums = start.zeros_like(np.float64)
        self._count = np.zeros(1)  # in place, so that it is right after an interrupt

    def resume(self, earlier: AveragedPerceptron) -> None:
        """Go on from where another learner (with no more features) stopped."""
        for mine, theirs in (
            (self._weights, earlier._weights),
            (self._sums, earlier._sums),
        ):
            _take_over(mine, theirs)
        self._count = earlier._count.copy()

    @property
    def problem(self) -> LabelProblem:
        """The samples."""
        return self.objective.problem

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces; returns the number of positions labelled wrong when visited."""
        return self.objective.descend(
            self._weights, self._sums, these, self._count, batch_size=self.batch_size
        )

    def end_window(self, number: int, visited: int, total: int) -> None:
        """Nothing is due within a pass."""

    def end_pass(self, number: int) -> float:
        """Nothing is due; there is no penalty."""
        return 0.0

    def weights(self) -> Weights:
        """Average of the weights over all visits so far (a copy), or the last weights."""
        if not self.averaged:
            return self._weights.copy()
        count = max(1.0, self._count[0])
        sums = iter(self._sums.arrays())

        def average(w: NDArray[Any]) -> NDArray[Any]:
            mean = next(sums) / -count
            mean += w
            rounded: NDArray[Any] = mean.astype(w.dtype)
            return rounded

        return self._weights.map(average)

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, sums and count."""
        return (
            weight_state(self._weights)
            | weight_state(self._sums, "sum_of_")
            | {"count": self._count}
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        restore_weights(self._weights, state)
        restore_weights(self._sums, state, "sum_of_")
        self._count[:] = state["count"]


def _take_over(mine: Weights, theirs: Weights) -> None:
    """Copy the weights of another learner, whose features are the first of these."""
    mine.node[: len(theirs.node)] = theirs.node
    mine.transitions[...] = theirs.transitions
    if mine.edge is None or theirs.edge is None:
        return
    old, new = theirs.edge.rows(), mine.edge.rows()
    for family in range(2 if mine.edge.both else 1):
        n, m = family * theirs.edge.n_crossed, family * mine.edge.n_crossed
        size = old[n + theirs.edge.n_crossed] - old[n]
        mine.edge.values[new[m] : new[m] + size] = theirs.edge.values[old[n] : old[n] + size]
