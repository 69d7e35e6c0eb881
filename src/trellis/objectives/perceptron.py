"""Perceptron loss: the score by which the best labelling beats the best allowed one.

    ℓ(w) = Σ_pieces weight · ( max_y s(y) − max_{y allowed} s(y) )

Its subgradient step with rate 1 is the structured perceptron's update (Collins 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.objectives.chain import ChainData, ChainWeights, Visits

__all__ = ["PerceptronLoss"]


class PerceptronLoss:
    """Perceptron updates of a chain problem, with the sums needed for averaging."""

    def __init__(self, data: ChainData) -> None:
        self.data = data

    def descend(
        self,
        weights: ChainWeights,
        sums: ChainWeights,
        count: float,
        visits: Visits,
        *,
        state: NDArray[np.float64] | None = None,
    ) -> tuple[float, float]:
        """Visit the pieces; weights and sums change in place.

        Returns the (weighted) number of wrong positions met and the new count of visits; the
        average of the weights over all visits is weights − sums / count. The new count is also
        left in ``state[0]``: an interrupt strikes as soon as the kernel is done, before anything
        returns.
        """
        from trellis.kernels.chain_perceptron import averaged_perceptron

        state = np.empty(1) if state is None else state
        state[0] = count
        wrong = averaged_perceptron(
            *self.data.arrays(),
            visits.starts,
            visits.ends,
            visits.weights,
            weights.node,
            weights.transitions,
            sums.node,
            sums.transitions,
            state,
        )
        return float(wrong), float(state[0])
