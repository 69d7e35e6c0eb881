r"""The log-likelihood of annotated samples as a smooth function of flat weights.

.. math:: \ell(w) = \sum_n c_n \Bigl(\log \sum_y e^{s(x_n, y)}
    - \log \sum_{y \in A_n} e^{s(x_n, y)}\Bigr) ,

for solvers that couple several problems. On graphs with loops it is that of random spanning trees,
drawn once.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.decompose import GraphPieces, WholeSamples
from trellis.domains import instance
from trellis.problems.label_problem import LabelProblem
from trellis.problems.log_likelihood import LogLikelihood
from trellis.problems.visits import Visits

__all__ = ["LogObjective", "whole_samples"]


def whole_samples(problem: LabelProblem, seed: int = 0) -> Visits:
    """Visits of whole samples; of graphs with loops, of spanning trees."""
    rng = np.random.default_rng(seed)
    if problem.structure == "chain":
        return problem.visits(WholeSamples().draw(problem.offsets, rng))
    return problem.visits(GraphPieces(problem.edges, None).draw(problem.offsets, rng))


class LogObjective:
    """Sum of the log-losses of annotated samples; those of which nothing is known are left out.

    Parameters
    ----------
    problem : LabelProblem
        The samples with what is known of them at this moment.
    samples : int64, shape (n,), optional
        The samples to learn from, all by default.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"]], [["b"]]], [["X", None], ["Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> value, gradient = LogObjective(problem).value_and_gradient(np.zeros(problem.n_weights))
    >>> round(float(value / np.log(2)), 6), gradient.tolist()
    (2.0, [-0.5, 0.5, 0.5, -0.5, -0.25, -0.25, 0.25, 0.25])
    """

    convex = True

    def __init__(self, problem: LabelProblem, *, samples: Int64s | None = None) -> None:
        instance(LabelProblem).check("problem", problem)
        chosen = problem.batch(samples).samples
        self.problem = problem
        self.samples: Int64s = chosen[problem.annotated[chosen]]
        self._part = problem.part(self.samples)
        self._loss = LogLikelihood(self._part)
        self._visits = whole_samples(self._part)
        self._gradient = np.zeros(problem.n_weights)

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        return self.problem.n_weights

    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]:
        """ℓ(w) and its gradient (D,), which is valid until the next call."""
        into = self._part.weights(self._gradient)
        value, _ = self._loss.value_and_gradient(self._part.weights(w), self._visits, into)
        return value, self._gradient
