r"""Losses of partial annotations: a penalty space against a reward space (Lou & Hamprecht 2012).

.. math::

    \ell_n(w) = \Bigl[\max_{y \in \mathcal Y^P_n} \bigl(f(x_n, y; w) + \Delta(y^*_n, y)\bigr)
              - \max_{y \in \mathcal Y^R_n} f(x_n, y; w)\Bigr]_+ = [P_n(w) - R_n(w)]_+ .

==============  ====================  ====================  ======================================
name            penalty space         reward space
==============  ====================  ====================  ======================================
bridge          incompatible          compatible            Lou & Hamprecht 2012
latent-hinge    all                   compatible            Yu & Joachims 2009
ramp            all                   all                   Do et al. 2008
max             incompatible          mean of compatible    Cour, Sapp & Taskar 2011; convex
==============  ====================  ====================  ======================================

**A difference of convex functions.** The positive part need not be dropped, nor samples left out
while theirs is zero, since

.. math:: \sum_n c_n [P_n - R_n]_+ = \sum_n c_n \max(P_n, R_n) - \sum_n c_n R_n,

and both sums are convex. The first never changes, so planes below it stay valid for ever.

**Bridge and latent hinge are the same function** where compatible outputs have no loss, as here:
all outputs are the compatible and the incompatible ones, hence

.. math::

    \max\bigl(\max_{\mathcal Y^\circ} (f + \Delta),\; \max_{\mathcal Y^*} f\bigr)
    = \max_{\mathcal Y} (f + \Delta),

the left side being :math:`\max(P_n, R_n)` of the bridge loss, the right side :math:`P_n` of the
latent hinge loss, which is never less than :math:`R_n`. So the bridge loss needs no inference over
incompatible outputs.

If all samples are annotated in full both are the structured hinge loss.

**A linear reward** is that of a sample annotated in full, whose only compatible output is known,
and the mean. Its features are summed once; only the other samples are searched again at each w.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s, as_array
from trellis.corpus.sample_weights import sample_weights
from trellis.domains import has, instance, one_of
from trellis.errors import DataError
from trellis.problems.cut import Cut
from trellis.problems.problem import Maxima, Problem, Space

__all__ = ["PARTIAL_LOSSES", "PartialLoss", "PartialObjective"]


@dataclass(frozen=True)
class PartialLoss:
    """A loss of partial annotations.

    Parameters
    ----------
    penalty : "all" or "incompatible"
        Outputs whose score and task loss are to be low.
    reward : "all", "compatible" or "mean"
        Outputs of which the best (or the mean) is to score higher.

    Examples
    --------
    >>> PARTIAL_LOSSES["bridge"]
    PartialLoss(penalty='incompatible', reward='compatible')
    """

    penalty: Space
    reward: Space

    def __post_init__(self) -> None:
        for name, space, fit in (
            ("penalty", self.penalty, ("all", "incompatible")),
            ("reward", self.reward, tuple(s for s in get_args(Space) if s != "incompatible")),
        ):
            one_of(*fit).check(f"the {name} space", space)


PARTIAL_LOSSES: dict[str, PartialLoss] = {
    "bridge": PartialLoss("incompatible", "compatible"),
    "latent-hinge": PartialLoss("all", "compatible"),
    "ramp": PartialLoss("all", "all"),
    "max": PartialLoss("incompatible", "mean"),
}
"""The losses that have a name."""


class PartialObjective:
    """Sum of the losses of partly annotated samples, as a difference of convex functions.

    Samples of which nothing is known say nothing and are left out.

    Parameters
    ----------
    problem : Problem
        The samples with what is known of them at this moment.
    loss : str or PartialLoss
        A key of ``PARTIAL_LOSSES``, or the spaces themselves.
    samples : int64, shape (n,), optional
        The samples to learn from, all by default.
    sample_weight : float64, shape (problem.n_samples,), optional
        Weight of each sample, 1 by default.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems.label_problem import LabelProblem
    >>> corpus = as_corpus([[["a"], ["b"]], [["b"]]], [["X", None], ["Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> objective = PartialObjective(problem)
    >>> objective.value(np.zeros(problem.n_weights)), objective.convex
    (2.0, False)
    >>> objective.value(np.array([2.0, 0, 0, 0.5, 0, 0, 0, 0]))
    0.5
    """

    def __init__(
        self,
        problem: Problem,
        loss: str | PartialLoss = "bridge",
        *,
        samples: Int64s | None = None,
        sample_weight: Float64s | None = None,
    ) -> None:
        if isinstance(loss, str):
            if loss not in PARTIAL_LOSSES:
                raise DataError(
                    f"the loss must be one of {', '.join(PARTIAL_LOSSES)} or a PartialLoss, got "
                    f"{loss!r}"
                )
            loss = PARTIAL_LOSSES[loss]
        instance(PartialLoss).check("loss", loss)
        has("maxima", "annotate").check("problem", problem)
        self.problem = problem
        self.loss = loss
        chosen = np.arange(problem.n_samples)
        if samples is not None:
            n = problem.n_samples
            chosen = as_array(samples, np.int64, "samples", (None,), low=0, high=n)
        self.samples: Int64s = chosen[problem.annotated[chosen]]
        weight = sample_weights(sample_weight, problem.n_samples, all_zero=True)
        self.sample_weight: Float64s = weight[self.samples]
        every = samples is None and len(self.samples) == problem.n_samples
        self._samples = None if every else self.samples
        self._linear: Bools = np.full(len(self.samples), loss.reward == "mean")
        if loss.reward == "compatible":
            self._linear = problem.complete[self.samples]
        self.convex: bool = bool(self._linear.all())
        """Whether the sum of the losses is convex: whether the reward is linear."""
        self.asked: Float64s = np.zeros(0)
        """The point where the risk was last asked for."""

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        return self.problem.n_weights

    def penalty(self, w: Float64s) -> Cut:
        """Convex part that counts: the sum of max(P_n, R_n), and a plane below it."""
        c = self.sample_weight
        best = self._penalties(w)
        if not self._clipped:
            return Cut(float(c @ best.bounds), float(c @ best.values), best.features(c))
        reward = self._rewards(w)
        active = best.values > reward.values
        slope = best.features(c * active) + reward.features(c * ~active)
        upper, lower = (np.maximum(v, reward.values) for v in (best.bounds, best.values))
        return Cut(float(c @ upper), float(c @ lower), slope)

    def reward(self, w: Float64s) -> tuple[float, Float64s]:
        """Convex part that is subtracted: the sum of R_n, and a subgradient."""
        value, slope = float(self._linear_slope @ w), self._linear_slope.copy()
        rest = ~self._linear
        if rest.any():
            c = self.sample_weight[rest]
            reward = self.problem.maxima(w, self.loss.reward, samples=self.samples[rest])
            value += float(c @ reward.values)
            slope += reward.features(c)
        return value, slope

    def losses(self, w: Float64s) -> Float64s:
        """Loss of each sample of ``samples``, without its weight."""
        lead = self._penalties(w).values - self._rewards(w).values
        positive: Float64s = np.maximum(lead, 0.0)
        return positive

    def value(self, w: Float64s) -> float:
        """Sum of the losses."""
        return float(self.sample_weight @ self.losses(w))

    def risk(self, w: Float64s) -> Cut:
        """Sum of the losses and a plane below it, where it is convex; never below 0."""
        if not self.convex:
            raise DataError(
                "the losses are not convex, since samples are annotated in part; minimise the "
                "difference of penalty and reward (minimise_cccp)"
            )
        self.asked = w
        above = self.penalty(w)
        below, back = self.reward(w)
        return Cut(above.upper - below, above.lower - below, above.slope - back)

    @cached_property
    def _linear_slope(self) -> Float64s:
        """Features of the rewards that are linear: whatever w, the output is the same."""
        linear, nowhere = self._linear, np.zeros(self.n_weights)
        if not linear.any():
            return nowhere
        reward = self.problem.maxima(nowhere, self.loss.reward, samples=self.samples[linear])
        return reward.features(self.sample_weight[linear])

    @property
    def _clipped(self) -> bool:
        """Whether P_n may be less than R_n."""
        return self.loss.penalty == "incompatible" and self.loss.reward != "compatible"

    def _penalties(self, w: Float64s) -> Maxima:
        space: Space = "incompatible" if self._clipped else "all"
        return self.problem.maxima(w, space, loss=True, samples=self._samples)

    def _rewards(self, w: Float64s) -> Maxima:
        return self.problem.maxima(w, self.loss.reward, samples=self._samples)
