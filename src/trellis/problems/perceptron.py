"""Perceptron loss: the score by which the best labelling beats the best allowed one.

    ℓ(w) = Σ_pieces weight · ( max_y s(y) − max_{y allowed} s(y) )

Its subgradient step with rate 1 is the structured perceptron's update (Collins 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.problems.edge_rows import rich_arguments
from trellis.problems.label_problem import LabelProblem
from trellis.problems.threads import N_CHUNKS, feature_bounds, run_threads
from trellis.problems.visits import GraphVisits, Visits
from trellis.problems.weights import Weights

__all__ = ["PerceptronLoss"]


class PerceptronLoss:
    """Perceptron updates of a problem, with the sums needed for averaging.

    Pieces of graphs must be trees.

    Parameters
    ----------
    problem : LabelProblem
    n_jobs : int
        Threads, for pieces of chains; the results are the same for any number.
    """

    def __init__(self, problem: LabelProblem, n_jobs: int = 1) -> None:
        self.problem = problem
        self.n_jobs = n_jobs

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

        Returns the (weighted) number of wrong positions met; the average of the weights over all
        visits is weights − sums / count.
        """
        if isinstance(visits, GraphVisits):
            return self._descend_trees(weights, sums, visits, state, batch_size)
        from trellis.kernels.chain_perceptron import averaged_perceptron

        n_threads = min(self.n_jobs, batch_size, N_CHUNKS)
        rich, values, edge_sums = None, np.zeros(0, weights.node.dtype), np.zeros(0)
        if weights.edge is not None and sums.edge is not None:
            e = weights.edge
            rich = (e.rows_of_features(), e.ptr, e.pair, e.n_crossed, e.both)
            values, edge_sums = e.values, sums.edge.values
        positions = visits.largest_batch(batch_size)
        shared = (
            np.zeros(3, np.int64),
            np.empty(positions, np.int32),
            np.empty(positions, np.int32),
            np.zeros(len(visits)),
        )
        bounds = feature_bounds(self.problem.encoded.indices, len(weights.node), n_threads)

        def work(thread: int) -> None:
            averaged_perceptron(
                *self.problem.arrays(),
                visits.starts, visits.ends, visits.weights,
                weights.node, weights.transitions, rich,
                sums.node, sums.transitions, values, edge_sums,
                state, batch_size, bounds, thread, *shared,
            )  # fmt: skip

        run_threads(n_threads, work)
        return float(shared[-1].sum())

    def _descend_trees(
        self,
        weights: Weights,
        sums: Weights,
        visits: GraphVisits,
        state: NDArray[np.float64],
        batch_size: int,
    ) -> float:
        from trellis.kernels.tree_perceptron import tree_perceptron

        problem, forest = self.problem, visits.forest
        assert forest is not None
        positions = visits.largest_batch(batch_size)
        wrong = np.zeros(len(visits))
        tree_perceptron(
            *problem.arrays(),
            forest.order, forest.parent, forest.edge, forest.down, problem.types,
            visits.starts, visits.ends, visits.weights,
            weights.node, weights.transitions, rich_arguments(problem.rows, weights.edge),
            not problem.directed,
            sums.node, sums.transitions,
            np.zeros(0) if sums.edge is None else sums.edge.values,
            state, batch_size,
            np.empty(positions, np.int32), np.empty(positions, np.int32), wrong,
        )  # fmt: skip
        return float(wrong.sum())
