r"""A learning problem as partial annotation, active learning and transfer see it.

Every structure has a score that is linear in the weights and a set of outputs,

.. math:: f(x, y; w) = \langle w, \Phi(x, y)\rangle, \qquad y \in \mathcal Y_n .

A (partial) annotation :math:`y^*_n` divides the outputs of a sample into those *compatible* with it
and the *incompatible* rest, :math:`\mathcal Y_n = \mathcal Y^*_n \cup \mathcal Y^\circ_n`; the task
loss :math:`\Delta(y^*_n, y)` counts what is annotated otherwise than y says, and is 0 for the
compatible outputs. For sequences, trees and graphs an annotation is a set of labels for each node,
for assignments (cell tracking) a set of variables that are fixed.

All learning here needs one operation, maximisation of the score, with or without the loss, over one
of these sets. A class that can do that is a :class:`Problem`; an estimator that can make
such problems of data is :class:`Learnable`. Solvers and learners know nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, Self

from trellis.arrays import Bools, Float64s, Int64s

__all__ = ["Learnable", "Maxima", "Measure", "Problem", "Space"]


Space = Literal["all", "compatible", "incompatible", "mean"]
"""Outputs to maximise over; "mean" is no maximum but the mean of the compatible outputs."""

Measure = Literal[
    "scoring", "best-vs-worst", "best-vs-second", "information-density", "token-confidence",
    "token-entropy", "entropy", "confidence", "span",
]  # fmt: skip
"""How sure a model is of its best output: its score, its lead over the worst or the second; of a
CRF also by probabilities (:mod:`trellis.problems.confidence`)."""


class Maxima(Protocol):
    """Outputs that attain the maxima of n samples, one each."""

    @property
    def values(self) -> Float64s:
        """Maxima (n,), the loss included where it was asked for; -inf where there is no output."""
        ...

    @property
    def bounds(self) -> Float64s:
        """Upper bounds of the true maxima (n,): ``values``, unless inference is not exact."""
        ...

    @property
    def losses(self) -> Float64s:
        """Task losses of the outputs (n,)."""
        ...

    def features(self, weight: Float64s | None = None) -> Float64s:
        """Sum of the joint features of the outputs, weighted by ``weight`` (n,): (D,)."""
        ...


class Problem(Protocol):
    """Samples of one structure, with what is known of their outputs."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        ...

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        ...

    @property
    def annotated(self) -> Bools:
        """Whether anything is known of each sample (n_samples,)."""
        ...

    @property
    def complete(self) -> Bools:
        """Whether each sample has only one compatible output (n_samples,)."""
        ...

    @property
    def n_open(self) -> Int64s:
        """Number of nodes of each sample of which not everything is known (n_samples,)."""
        ...

    def open_nodes(self, i: int) -> Int64s:
        """Nodes of sample i of which not everything is known, ascending."""
        ...

    def annotate(self, i: int, annotation: Any) -> None:
        """Add what an annotator said of sample i to what is known; raises if it cannot be."""
        ...

    def maxima(
        self, w: Float64s, space: Space, *, loss: bool = False, samples: Int64s | None = None
    ) -> Maxima:
        """Maximise score (plus task loss) over outputs of all samples, or of those named."""
        ...

    def update(self, i: int, w: Float64s) -> bool:
        """Make a perceptron step in place: best compatible less best; False if they are equal."""
        ...

    def margins(self, w: Float64s, measure: Measure, samples: Int64s) -> Float64s:
        """How sure the model is of each sample: larger is surer."""
        ...

    def weakest_part(self, i: int, w: Float64s, size: int) -> Int64s:
        """Nodes of sample i to ask for: where best and second best differ, about ``size`` nodes."""
        ...


class Learnable(Protocol):
    """An estimator that can learn from cheap data."""

    @property
    def training_loss(self) -> str:
        """The loss that is minimised: "log", "perceptron", or one of ``PARTIAL_LOSSES``."""
        ...

    def learning_problems(
        self, data: Mapping[str, Any], *, labels: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Make one :class:`Problem` of each data set; all share their weights.

        ``labels`` are the labels there may be beyond those that the data shows.
        """
        ...

    def with_weights(self, problem: Any, w: Float64s) -> Self:
        """Return a fitted copy for data such as that of ``problem``."""
        ...

    def improve(self, problem: Any, w: Float64s, samples: Sequence[int]) -> bool:
        """Make one pass over samples in this order, in place; False if nothing changed."""
        ...

    def trained_on(self, problem: Any) -> Self:
        """Return a copy fitted to what is known of a problem."""
        ...

    def flat_weights(self, problem: Any) -> Float64s:
        """Weights of a fitted model in the places that they have for a problem (D,)."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, ``l2`` among them."""
        ...
