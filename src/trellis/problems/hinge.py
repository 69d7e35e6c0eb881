r"""Structured hinge losses with margin rescaling.

.. math::

    R(w) = \sum_i c_i \Bigl( \max_y \bigl[\Delta(A_i, y) + s(x_i, y)\bigr] - s(x_i, g_i) \Bigr),

:math:`g_i` being the labelling that is rewarded: the gold labels or, where they are not all known,
one that is compatible with what is (:mod:`trellis.problems.partial`). R is convex, at least 0, and
with the labellings :math:`\hat y_i` that attain the maxima
:math:`\sum_i c_i (\Phi(x_i, \hat y_i) - \Phi(x_i, g_i))` is a subgradient.

Where inference on graphs with loops gives a labelling and an upper bound, the labelling's plane
lies below the risk and the bound above it; both go to the solver, whose gap is then valid for the
risk itself.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trellis.arrays import Float64s, Int64s, as_array, held
from trellis.corpus.sample_weights import sample_weights
from trellis.domains import instance
from trellis.problems.cut import Cut
from trellis.problems.label_problem import LabelProblem

__all__ = ["HingeLoss"]


class HingeLoss:
    """Structured hinge losses of a problem: ``risk`` and ``best`` are what solvers ask for.

    Parameters
    ----------
    problem : LabelProblem
        Samples, label sets and costs.
    gold : int64, shape (N,), optional
        Labels that are rewarded; where every sample is complete, the only ones that are possible.
    sample_weight : float64, shape (S,), optional
        Weights of the samples; the problem's by default.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> loss = HingeLoss(problem)
    >>> cut = loss.risk(np.zeros(loss.n_weights))
    >>> cut.upper, cut.slope.tolist()
    (2.0, [-1.0, 1.0, 1.0, -1.0, 0.0, -1.0, 1.0, 0.0])
    """

    def __init__(
        self,
        problem: LabelProblem,
        gold: Int64s | None = None,
        sample_weight: Float64s | None = None,
    ) -> None:
        instance(LabelProblem).check("problem", problem)
        self.problem = problem
        if gold is None:
            gold = problem.gold()
        shape = (int(problem.offsets[-1]),)
        labels = as_array(gold, np.int64, "gold", shape, low=0, high=problem.n_labels)
        self.gold: Int64s = held(labels, gold)
        if sample_weight is None:
            sample_weight = problem.sample_weight
        weights = sample_weights(sample_weight, problem.n_samples, all_zero=True)
        self.sample_weight: Float64s = held(weights, sample_weight)

    def rewarding(self, gold: Int64s) -> HingeLoss:
        """The same with other labels rewarded."""
        return HingeLoss(self.problem, gold, self.sample_weight)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.problem.n_samples

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        return self.problem.n_weights

    @cached_property
    def gold_features(self) -> Float64s:
        """Φ of what is rewarded, summed with the weights of the samples: (D,)."""
        batch = self.problem.batch()
        return self.problem.joint_features(self.gold, batch, self.sample_weight[batch.owner])

    def value(self, w: Float64s) -> float:
        """R(w), or an upper bound if inference is not exact."""
        w = self.problem.flat_weights(w)
        best = self.problem.maxima(w, "all", loss=True)
        return float(self.sample_weight @ best.bounds - self.gold_features @ w)

    def risk(self, w: Float64s) -> Cut:
        """Bounds of R(w), and the slope of a plane below R."""
        w = self.problem.flat_weights(w)
        best, c = self.problem.maxima(w, "all", loss=True), self.sample_weight
        reward = float(self.gold_features @ w)
        slope = best.features(c) - self.gold_features
        return Cut(float(c @ best.bounds) - reward, float(c @ best.values) - reward, slope)

    def best(self, i: int, w: Float64s) -> tuple[tuple[Int64s, Float64s], float, float]:
        """Features psi and task loss of a labelling, and an upper bound of the loss of sample i."""
        return self.best_of(np.array([i]), w)[0]

    def best_of(
        self, samples: Int64s, w: Float64s
    ) -> list[tuple[tuple[Int64s, Float64s], float, float]]:
        """The same of several samples, whose labellings are found together."""
        problem = self.problem
        batch = problem.batch(samples)
        node, pair = problem.scores(w, batch)
        costs = problem.costs.dense(batch.rows)
        labels, values, bounds = problem.best(node + costs, pair, batch)
        of_rows = costs[np.arange(len(labels)), labels]
        losses = np.bincount(batch.owner, of_rows, len(samples)).tolist()
        slack = (bounds - values).tolist()
        psi = problem.differences(batch, self.gold[batch.rows], labels)
        return [
            ((index, x), losses[k], losses[k] - float(x @ w[index]) + slack[k])
            for k, (index, x) in enumerate(psi)
        ]
