"""The averaged structured perceptron as a learner of passes (Collins 2002; Sun 2014 on pieces)."""

from __future__ import annotations

import numpy as np

from trellis.objectives import ChainData, ChainWeights, PerceptronLoss
from trellis.objectives.chain import Visits
from trellis.solvers.passes import BLOCK

__all__ = ["AveragedPerceptron"]


class AveragedPerceptron:
    """Perceptron updates on pieces; predicts with the average of the weights over all visits.

    Parameters
    ----------
    objective : PerceptronLoss
    start : ChainWeights
        Initial weights, changed in place.
    """

    def __init__(self, objective: PerceptronLoss, start: ChainWeights) -> None:
        self.objective = objective
        self._weights = start
        self._sums = ChainWeights.zeros(len(start.node), len(start.transitions), np.float64)
        self._count = np.zeros(1)  # in place, so that it is right after an interrupt

    def resume(self, earlier: AveragedPerceptron) -> None:
        """Go on from where another learner (with no more features) stopped."""
        n_features = len(self._weights.node)
        self._weights = earlier._weights.grown(n_features)
        self._sums = earlier._sums.grown(n_features)
        self._count = earlier._count.copy()

    @property
    def data(self) -> ChainData:
        """The training data."""
        return self.objective.data

    def one_pass(self, these: Visits, number: int) -> float:
        """Visit the pieces; returns the number of positions labelled wrong when visited."""
        wrong = 0.0
        for block in these.blocks(BLOCK):
            part, _ = self.objective.descend(
                self._weights, self._sums, self._count[0], these[block], state=self._count
            )
            wrong += part
        return wrong

    def weights(self) -> ChainWeights:
        """Average of the weights over all visits so far (a copy)."""
        count = max(1.0, self._count[0])
        kind = self._weights.node.dtype
        node = self._sums.node / -count
        node += self._weights.node
        transitions = self._weights.transitions - self._sums.transitions / count
        return ChainWeights(node.astype(kind), transitions.astype(kind))
