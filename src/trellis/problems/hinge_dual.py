r"""The dual of structured hinge losses on forests, for block-coordinate Frank–Wolfe.

A dual point holds, for each sample, the means of the labels and of the label pairs under its
distribution over labellings (:mod:`trellis.kernels.frank_wolfe`): N L numbers and L² for each
sample and table, whatever the number of features. It starts with all weight on the gold labels,
where all weights are zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.problems.hinge import HingeLoss

__all__ = ["HingeDual"]

Float64s = NDArray[np.float64]


class HingeDual:
    """A dual point of l2 ||w||² + R(w); a :class:`trellis.solvers.FrankWolfeState`.

    Parameters
    ----------
    loss : HingeLoss
        The losses R.
    l2 : float
        Factor of ||w||².
    """

    exact = True

    def __init__(self, loss: HingeLoss, l2: float) -> None:
        d = loss.data
        L = d.n_labels
        self.loss = loss
        self.l2 = l2
        self._w = np.zeros(loss.n_weights)
        self._labels = d.gold.astype(np.int32)
        self._means = np.zeros((len(d.gold), L))
        self._means[np.arange(len(d.gold)), d.gold] = 1.0
        self._pairs = np.zeros((loss.n_slots, L * L))
        inner = np.flatnonzero(loss.nodes.parent >= 0)
        first, second, _ = loss.nodes.edges()
        np.add.at(self._pairs, (loss.slot[inner], d.gold[first] * L + d.gold[second]), 1.0)
        self._losses = np.zeros(loss.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.loss.n_samples

    def sweep(self, order: NDArray[np.int64]) -> None:
        """Visit samples in this order."""
        self.loss.visit(
            order, self._w, True, 2 * self.l2, self._labels, self._means, self._pairs, self._losses
        )

    def dual(self) -> float:
        """Value of the dual: at most min J."""
        return float(self.loss.data.sample_weight @ self._losses - self.l2 * (self._w @ self._w))

    def weights(self) -> Float64s:
        """The weights of the dual point."""
        return self._w.copy()

    def objective(self, w: Float64s) -> float:
        """J(w)."""
        return self.l2 * float(w @ w) + self.loss.labellings(w)[0]
