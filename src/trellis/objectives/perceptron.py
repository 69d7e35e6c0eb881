"""Perceptron loss: the score by which the best labelling beats the best allowed one.

    ℓ(w) = Σ_pieces weight · ( max_y s(y) − max_{y allowed} s(y) )

Its subgradient step with rate 1 is the structured perceptron's update (Collins 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.objectives.chain import ChainData, Visits
from trellis.objectives.threads import N_CHUNKS, feature_bounds, run_threads
from trellis.objectives.weights import Weights

__all__ = ["PerceptronLoss"]


class PerceptronLoss:
    """Perceptron updates of a chain problem, with the sums needed for averaging.

    Parameters
    ----------
    data : ChainData
    n_jobs : int
        Threads; the results are the same for any number.
    """

    def __init__(self, data: ChainData, n_jobs: int = 1) -> None:
        self.data = data
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
        from trellis.kernels.perceptron import Sums, averaged_perceptron

        n_threads = min(self.n_jobs, batch_size, N_CHUNKS)
        rich, edge_sums = None, np.zeros(0)
        if weights.edge is not None and sums.edge is not None:
            rich, edge_sums = weights.edge.arguments(), sums.edge.values
        positions = visits.largest_batch(batch_size)
        shared = (
            np.zeros(3, np.int64),
            np.empty(positions, np.int32),
            np.empty(positions, np.int32),
            np.zeros(len(visits)),
        )
        bounds = feature_bounds(self.data.encoded.indices, len(weights.node), n_threads)

        def work(thread: int) -> None:
            averaged_perceptron(
                *self.data.arguments(), visits.arguments(), True, None,
                weights.node, weights.transitions, rich, False,
                Sums(sums.node, sums.transitions, edge_sums),
                state, batch_size, bounds, thread, *shared,
            )  # fmt: skip

        run_threads(n_threads, work)
        return float(shared[-1].sum())
