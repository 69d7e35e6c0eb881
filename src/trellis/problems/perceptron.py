"""Perceptron loss: the score by which the best labelling beats the best allowed one.

    ℓ(w) = Σ_pieces weight · ( max_y s(y) − max_{y allowed} s(y) )

Its subgradient step with rate 1 is the structured perceptron's update (Collins 2002).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import instance, whole
from trellis.errors import DataError
from trellis.problems.edge_rows import rich_arguments
from trellis.problems.label_problem import LabelProblem
from trellis.problems.threads import N_CHUNKS, feature_bounds, meeting, run_threads
from trellis.problems.visits import GraphVisits, Visits, check_state
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
        instance(LabelProblem).check("problem", problem)
        whole(1).check("n_jobs", n_jobs)
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
        from trellis.kernels.perceptron import Sums

        check_state(state, 1)
        self.problem.check_weights(sums, "sums")
        edge_sums = np.zeros(0) if sums.edge is None else sums.edge.values
        averaging = Sums(sums.node, sums.transitions, edge_sums)
        return self._visit(weights, visits, None, averaging, state, batch_size)

    def _visit(
        self,
        weights: Weights,
        visits: Visits,
        margin: Any,
        sums: Any,
        state: NDArray[np.float64],
        batch_size: int,
    ) -> float:
        """Run the kernel with sums for averaging, or with a margin; returns the loss met."""
        from trellis.kernels.perceptron import averaged_perceptron

        whole(1).check("batch_size", batch_size)
        self.problem.check_weights(weights)
        self.problem.check_visits(visits)
        batch_size = min(batch_size, 1 << 40)
        problem, forest, n_threads = self.problem, None, min(self.n_jobs, batch_size, N_CHUNKS)
        rich: Any = None
        if isinstance(visits, GraphVisits):
            if visits.forest is None:
                raise DataError(
                    "steps of best labellings are for pieces that are trees: give pieces='tree'"
                )
            forest, n_threads = visits.forest.arguments(problem.types), 1
            rich = rich_arguments(problem.rows, weights.edge)
        elif weights.edge is not None:
            rich = weights.edge.arguments()
        positions = visits.largest_batch(batch_size)
        shared = (
            meeting(),
            np.empty(positions, np.int32),
            np.empty(positions, np.int32),
            np.zeros(len(visits)),
        )
        bounds = feature_bounds(problem.encoded.indices, len(weights.node), n_threads)

        def work(thread: int) -> None:
            averaged_perceptron(
                *problem.arguments(), visits.arguments(), True if forest is None else None, forest,
                weights.node, weights.transitions, rich, not problem.directed, margin, sums,
                state, batch_size, bounds, thread, *shared,
            )  # fmt: skip

        run_threads(n_threads, work, shared[0])
        return float(shared[-1].sum())
