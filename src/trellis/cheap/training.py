r"""Max-margin training on what is annotated, of one model or of several that share a part.

One model for a number of data sets minimises
:math:`\lambda \lVert w\rVert^2 + \sum_d L_d(w)`, :math:`L_d` being the sum of the losses of the
annotated samples of data set d: a bundle method where all are convex, else the concave-convex
procedure. Related models minimise (1.9) of Lou et al.,

.. math::

    J = \lambda \lVert w\rVert^2 + \rho \sum_d \lVert w_d - w\rVert^2 + \sum_d L_d(w_d) .

Where some samples are annotated in part, :math:`L_d = P_d - R_d` with convex
:math:`P_d \ge R_d` (:mod:`trellis.objectives.partial`), and the loop of Algorithm 1.1 goes around
it: each :math:`R_d` is replaced by its tangent at the weights of that domain, which leaves a convex
problem and, P being at least R, no risk below zero. The planes of :math:`P_d` are kept from round
to round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.models.params import is_number
from trellis.objectives.cut import Cut
from trellis.objectives.learning_problem import Learnable
from trellis.objectives.partial import PartialObjective
from trellis.solvers.bundle import Bundle
from trellis.solvers.cccp import PlaneSurrogate, minimise_cccp
from trellis.solvers.partial_margin import planes_kept
from trellis.solvers.planes import minimise_bundle, minimise_joint_bundle

__all__ = ["Trained", "l2_of", "train", "train_jointly"]

Float64s = NDArray[np.float64]

_PASSES = 5  # of the perceptron that finds a start where the losses are not convex


@dataclass(frozen=True, eq=False)
class Trained:
    """Weights that were learned.

    Parameters
    ----------
    shared : float64, shape (n,)
        Weights that the domains share.
    weights : float64, shape (D, n)
        Weights of each domain.
    objective : float
        J there.
    """

    shared: Float64s
    weights: Float64s
    objective: float


def l2_of(model: Learnable, l2: float | None) -> float:
    """Return the factor of the regulariser: that given, or else the model's."""
    found: Any = model.get_params().get("l2") if l2 is None else l2
    if not (is_number(found) and 0 < found < np.inf):
        raise DataError(f"l2 must be a positive number, got {found!r}; give l2=")
    return float(found)


def train(
    objectives: Sequence[PartialObjective],
    *,
    l2: float,
    tol: float = 1e-2,
    start: Float64s | None = None,
) -> Trained:
    """Learn one model of the annotated samples of one or several data sets.

    Parameters
    ----------
    objectives : sequence of PartialObjective
        Losses of the data sets.
    l2 : float
        Factor of ||w||^2, beside the sum of the losses.
    tol : float
        Relative gap of the bundle method.
    start : float64, shape (n,), optional
        Where to begin if the losses are not convex; by default the result of a perceptron.

    Returns
    -------
    Trained
    """
    n = _check(objectives)

    def penalty(w: Float64s) -> Cut:
        return _sum([objective.penalty(w) for objective in objectives])

    def reward(w: Float64s) -> tuple[float, Float64s]:
        values, slopes = zip(*(objective.reward(w) for objective in objectives), strict=True)
        return sum(values), np.sum(slopes, axis=0)

    def risk(w: Float64s) -> Cut:
        return _sum([objective.risk(w) for objective in objectives])

    if all(objective.convex for objective in objectives):
        convex = minimise_bundle(risk, n, l2=l2, floor=0.0, memory=planes_kept(n), tol=tol)
        w, value, reason = convex.weights, convex.objective, convex.stop_reason
    else:
        if start is None:
            start = _start(objectives)
        found = minimise_cccp(
            PlaneSurrogate(penalty, reward, l2=l2, reward_below=True, memory=planes_kept(n)),
            start, first_tol=max(tol, 0.1), tol=tol, eta=tol,
        )  # fmt: skip
        w, value, reason = found.weights, found.objective, found.stop_reason
    if reason == "interrupted":
        raise KeyboardInterrupt
    return Trained(w, np.tile(w, (len(objectives), 1)), value)


def train_jointly(
    objectives: Sequence[PartialObjective],
    *,
    l2: float,
    rho: float,
    tol: float = 1e-2,
    max_rounds: int = 10,
) -> Trained:
    """Learn a model of each data set, all drawn towards shared weights.

    Parameters
    ----------
    objectives : sequence of PartialObjective
        Losses of the data sets.
    l2, rho : float
        Factors of ||w||^2 and of the squared distances ||w_d - w||^2, beside the sums of the
        losses; ``rho=0`` for models that have nothing in common (each with ``l2`` of its own),
        ``rho=inf`` for one model of all.
    tol : float
        Relative gap of the bundle method; where the losses are not convex, also the relative fall
        of the objective at which the rounds end.
    max_rounds : int
        Most rounds, where the losses are not convex.

    Returns
    -------
    Trained
    """
    n = _check(objectives)
    if rho == np.inf:
        return train(objectives, l2=l2, tol=tol)
    if rho == 0:
        alone = [train([objective], l2=l2, tol=tol) for objective in objectives]
        value = sum(one.objective for one in alone)
        return Trained(np.zeros(n), np.stack([one.shared for one in alone]), value)
    convex = all(objective.convex for objective in objectives)
    first = np.zeros(n) if convex else _start(objectives)
    point = np.tile(first, (len(objectives), 1))
    best: Trained | None = None
    planes, tangents = Bundle(n, len(objectives)), np.zeros((len(objectives), n + 1))
    for _ in range(1 if convex else max_rounds):
        new = np.stack([_tangent(o, w) for o, w in zip(objectives, point, strict=True)])
        planes, tangents = _moved(planes, tangents - new), new
        risks = [_Surrogate(o, t) for o, t in zip(objectives, tangents, strict=True)]
        found = minimise_joint_bundle(risks, n, l2=l2, rho=rho, floor=0.0, bundle=planes, tol=tol)
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        point = found.weights
        own = sum(o.value(w) for o, w in zip(objectives, point, strict=True))
        surrogate = sum(risk(w).upper for risk, w in zip(risks, point, strict=True))
        value = found.objective - surrogate + own
        if best is not None and best.objective - value <= tol * abs(best.objective):
            return best if best.objective <= value else Trained(found.shared, point, value)
        best = Trained(found.shared, point, value)
    assert best is not None
    return best


class _Surrogate:
    """A sum of losses with the tangent (slope, offset) in place of its reward: convex, >= 0."""

    def __init__(self, objective: PartialObjective, tangent: Float64s) -> None:
        self._penalty, self._slope, self._offset = objective.penalty, tangent[:-1], tangent[-1]

    def __call__(self, w: Float64s) -> Cut:
        cut, below = self._penalty(w), float(self._slope @ w) + float(self._offset)
        return Cut(cut.upper - below, cut.lower - below, cut.slope - self._slope)


def _tangent(objective: PartialObjective, w: Float64s) -> Float64s:
    value, slope = objective.reward(w)
    return np.append(slope, value - float(slope @ w))


def _moved(planes: Bundle, shift: Float64s) -> Bundle:
    """Add a plane to all planes of each domain: what changed since they were found."""
    moved = Bundle(planes.n_weights, planes.n_domains)
    for d, slope, offset in zip(
        planes.domains.tolist(), planes.slopes, planes.offsets.tolist(), strict=True
    ):
        moved.add(slope + shift[d, :-1], offset + float(shift[d, -1]), d)
    return moved


def _start(objectives: Sequence[PartialObjective]) -> Float64s:
    """Weights of a perceptron: at zero, an unknown label would be rewarded at random."""
    w: Float64s = np.zeros(objectives[0].n_weights)
    for _ in range(_PASSES):
        for objective in objectives:
            for i in objective.samples.tolist():
                objective.problem.update(i, w)
    return w


def _check(objectives: Sequence[PartialObjective]) -> int:
    if not any(len(objective.samples) for objective in objectives):
        raise DataError("nothing is annotated yet; there is nothing to learn from")
    return objectives[0].n_weights


def _sum(cuts: list[Cut]) -> Cut:
    slope: Float64s = np.sum([cut.slope for cut in cuts], axis=0)
    return Cut(sum(cut.upper for cut in cuts), sum(cut.lower for cut in cuts), slope)
