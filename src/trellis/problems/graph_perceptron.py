"""Perceptron updates on tree-shaped pieces of trees and graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.problems.chain import Visits
from trellis.problems.graph import GraphData, GraphVisits
from trellis.problems.graph_log_likelihood import rich_arguments
from trellis.problems.perceptron import PerceptronLoss
from trellis.problems.weights import Weights

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
        from trellis.kernels.tree_perceptron import tree_perceptron

        assert isinstance(visits, GraphVisits) and visits.forest is not None
        data, forest = self.data, visits.forest
        positions = visits.largest_batch(batch_size)
        wrong = np.zeros(len(visits))
        tree_perceptron(
            *data.arrays(),
            forest.order, forest.parent, forest.edge, forest.down, data.types,
            visits.starts, visits.ends, visits.weights,
            weights.node, weights.transitions, rich_arguments(data, weights), not data.directed,
            sums.node, sums.transitions,
            np.zeros(0) if sums.edge is None else sums.edge.values,
            state, batch_size,
            np.empty(positions, np.int32), np.empty(positions, np.int32), wrong,
        )  # fmt: skip
        return float(wrong.sum())
