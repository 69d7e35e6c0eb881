r"""Stochastic steps of structured hinge losses of label sets, on pieces.

.. math:: \ell(w) = \sum_{\text{pieces}} c \Bigl(\max_y \bigl[\Delta(A, y) + s(y)\bigr]
    - \max_{y \in A} s(y)\Bigr)

A visit moves the weights by the rate times :math:`\Phi(y^+) - \Phi(\hat y)`, the two labellings
that attain the maxima: the perceptron's update with a margin and a rate
(:mod:`trellis.kernels.perceptron`). Pieces of graphs must be trees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.domains import number
from trellis.problems.perceptron import PerceptronLoss
from trellis.problems.visits import Visits, check_state
from trellis.problems.weights import Weights

__all__ = ["HingeSteps"]


class HingeSteps(PerceptronLoss):
    """Steps of the hinge losses of a problem.

    Parameters
    ----------
    problem : LabelProblem
    n_jobs : int
        Threads, for pieces of chains; the results are the same for any number.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.decompose import WholeSamples
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems import LabelProblem
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> pieces = problem.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    >>> weights, state = Weights.zeros(2, 2, float), np.array([1.0, 0.0])
    >>> [HingeSteps(problem).descend(weights, pieces, state, rate=0.25) for _ in range(3)]
    [2.0, 0.5, 0.0]
    """

    def at_zero(self, visits: Visits) -> float:
        """Summed loss of the pieces where all weights are zero: what knowing nothing costs."""
        costs = self.problem.costs
        return visits.total(costs.table.max(axis=1)[costs.rows])

    def descend(  # type: ignore[override]  # it has rates and a penalty, and no sums
        self,
        weights: Weights,
        visits: Visits,
        state: NDArray[np.float64],
        *,
        rate: float = 1.0,
        decay: float = 1.0,
        shrink: float = 0.0,
        batch_size: int = 1,
    ) -> float:
        """One step for each batch of pieces; weights and the count ``state[1]`` change in place.

        Parameters and result are as for :meth:`trellis.problems.LogLikelihood.descend`, but the
        scale ``state[0]`` stays 1: the shares of the L2 penalty of all these pieces are applied
        together, at the end.
        """
        from trellis.kernels.perceptron import Margin

        for name, value in (("rate", rate), ("decay", decay), ("shrink", shrink)):
            number().check(name, value)
        check_state(state, 2)
        costs = self.problem.costs
        margin = Margin(costs.table, costs.rows, float(rate), float(decay))
        loss = self._visit(weights, visits, margin, None, np.zeros(1), batch_size)
        if shrink:
            rates = rate * decay ** np.arange(len(visits))
            keep = float(np.exp(-np.log1p(2 * rates * shrink).sum()))
            for array in weights.arrays():
                np.multiply(array, array.dtype.type(keep), out=array)
        state[1] += len(visits)
        return loss
