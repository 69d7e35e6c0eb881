"""Perceptron updates on tree-shaped pieces of trees and graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.objectives.chain import Visits
from trellis.objectives.graph import GraphData, GraphVisits
from trellis.objectives.graph_log_likelihood import rich_arguments
from trellis.objectives.perceptron import PerceptronLoss
from trellis.objectives.weights import Weights

__all__ = ["GraphPerceptronLoss"]


class GraphPerceptronLoss(PerceptronLoss):
    """Perceptron updates of a tree or graph problem, with the sums needed for averaging.

    Parameters
    ----------
    data : GraphData
    """

    data: GraphData

    def __init__(self, data: GraphData) -> None:
        super().__init__(data)

    def descend(
        self,
        weights: Weights,
        sums: Weights,
        visits: Visits,
        state: NDArray[np.float64],
        *,
        batch_size: int = 1,
    ) -> float:
        """Visit the pieces; weights, sums and the count of visits ``state[0]`` change in place.

        Returns the (weighted) number of wrong nodes met.
        """
        from trellis.kernels.perceptron import Sums, averaged_perceptron

        assert isinstance(visits, GraphVisits) and visits.forest is not None
        data, forest = self.data, visits.forest.arguments(self.data.types)
        positions = visits.largest_batch(batch_size)
        wrong = np.zeros(len(visits))
        edge_sums = np.zeros(0) if sums.edge is None else sums.edge.values
        averaged_perceptron(
            *data.arguments(), visits.arguments(), None, forest,
            weights.node, weights.transitions, rich_arguments(data, weights), not data.directed,
            Sums(sums.node, sums.transitions, edge_sums),
            state, batch_size, np.array([0, len(weights.node)]), 0, np.zeros(3, np.int64),
            np.empty(positions, np.int32), np.empty(positions, np.int32), wrong,
        )  # fmt: skip
        return float(wrong.sum())
