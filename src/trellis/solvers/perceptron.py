"""The averaged structured perceptron as a learner of passes (Collins 2002; Sun 2014 on pieces)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.domains import flag, instance, takes, whole
from trellis.problems import PerceptronLoss, Weights
from trellis.problems.visits import Visits
from trellis.solvers.passes import Visitor

__all__ = ["AveragedPerceptron"]


class AveragedPerceptron(Visitor):
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

    @takes(
        objective=instance(PerceptronLoss), start=instance(Weights), batch_size=whole(1),
        averaged=flag,
    )  # fmt: skip
    def __init__(
        self,
        objective: PerceptronLoss,
        start: Weights,
        *,
        batch_size: int = 1,
        averaged: bool = True,
    ) -> None:
        self.objective, self.problem = objective, objective.problem
        self.batch_size, self.averaged = batch_size, averaged
        self._weights = start
        self._sums = start.zeros_like(np.float64)
        self._count = np.zeros(1)  # in place, so that it is right after an interrupt

    def resume(self, earlier: AveragedPerceptron) -> None:
        """Go on from where another learner (with no more features) stopped."""
        _take_over(self._weights, earlier._weights)
        _take_over(self._sums, earlier._sums)
        self._count = earlier._count.copy()

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces; returns the number of positions labelled wrong when visited."""
        return self.objective.descend(
            self._weights, self._sums, these, self._count, batch_size=self.batch_size
        )

    def weights(self) -> Weights:
        """Average of the weights over all visits so far (a copy), or the last weights."""
        if not self.averaged:
            return self._weights.copy()
        from trellis.kernels.averages import averaged

        count = max(1.0, float(self._count[0]))
        sums = iter(self._sums.arrays())

        def average(w: NDArray[Any]) -> NDArray[Any]:
            flat, of = for_kernels(w.reshape(-1)), for_kernels(next(sums).reshape(-1))
            mean: NDArray[Any] = averaged(flat, of, count)
            return mean.reshape(w.shape)

        return self._weights.map(average)

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, sums and count."""
        return self._weights.named() | self._sums.named("sum_of_") | {"count": self._count}


def _take_over(mine: Weights, theirs: Weights) -> None:
    """Copy the weights of another learner, whose features are the first of these."""
    mine.node[: len(theirs.node)] = theirs.node
    mine.transitions[...] = theirs.transitions
    if mine.edge is None or theirs.edge is None:
        return
    old, new = theirs.edge.rows(), mine.edge.rows()
    for family in range(mine.edge.families):
        n, m = family * theirs.edge.n_crossed, family * mine.edge.n_crossed
        size = old[n + theirs.edge.n_crossed] - old[n]
        mine.edge.values[new[m] : new[m] + size] = theirs.edge.values[old[n] : old[n] + size]
    n, m = old[theirs.edge.n_joined], new[mine.edge.n_joined]
    own = theirs.edge.values[n:]
    mine.edge.values[m : m + len(own)] = own
