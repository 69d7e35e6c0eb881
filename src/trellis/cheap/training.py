r"""Max-margin training on what is annotated, of one model or of several that share a part.

One model for a number of data sets minimises
:math:`\lambda \lVert w\rVert^2 + \sum_d L_d(w)`, :math:`L_d` being the sum of the losses of the
annotated samples of data set d: a bundle method where all are convex, else the concave-convex
procedure. Related models minimise (1.9) of Lou et al.,

.. math::

    J = \lambda \lVert w\rVert^2 + \rho \sum_d \lVert w_d - w\rVert^2 + \sum_d L_d(w_d) ,

where :math:`\rho` may be a factor of each weight: some differ more between domains than others.

Where some samples are annotated in part, :math:`L_d = P_d - R_d` with convex
:math:`P_d \ge R_d` (:mod:`trellis.problems.partial`), and the concave-convex procedure goes
around it: each :math:`R_d` is replaced by its tangent at the weights of that domain, which leaves a
convex problem. The planes of :math:`P_d` are kept from round to round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.domains import has, number
from trellis.errors import DataError
from trellis.problems.cut import Cut
from trellis.problems.log_objective import LogObjective
from trellis.problems.partial import PartialLoss, PartialObjective
from trellis.problems.problem import Learnable
from trellis.solvers.bundle import Bundle
from trellis.solvers.cccp import PlaneSurrogate, Tangent, minimise_cccp
from trellis.solvers.partial_margin import planes_kept
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.solution import Solution

__all__ = ["LEARNABLE", "Trained", "l2_of", "objective_of", "train", "train_domains"]

Objective = PartialObjective | LogObjective

# Planes kept of each domain, and in all if there are few domains: each step adds one of every
# domain, and its cost grows with the square of all. Fewer take more steps, and the gap is as true.
_PLANES, _PLANES_IN_ALL = 10, 80


LEARNABLE = has(
    "learning_problems",
    "with_weights",
    "trained_on",
    words="a model that can learn from cheap data, such as ChainCRF, MaxMargin or TrackingModel",
)
_SMOOTH_TOL = 1e-4  # an iteration of L-BFGS gains far less than what is left to gain
_START_TOL = 0.05  # of a model to begin with
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


def l2_of(model: Learnable, l2: float | None, problem: Any) -> float:
    """Return the factor of the regulariser: that given, or else the model's for a problem."""
    factor: Any = model.get_params().get("l2") if l2 is None else l2
    if l2 is None and factor == "auto":
        factor = cast(Any, model).penalty_strength(problem)
    number(above=0).check("l2", factor)
    return float(factor)


def objective_of(problem: Any, loss: str | PartialLoss, samples: Int64s | None = None) -> Objective:
    """The losses of the annotated samples of a problem, or of those named."""
    if loss == "log":
        return LogObjective(problem, samples=samples)
    if loss == "perceptron":
        raise DataError(
            "a perceptron has no objective that several domains could share; take a CRF or a "
            "max-margin model"
        )
    return PartialObjective(problem, loss, samples=samples)


def train(
    objectives: Sequence[Objective],
    *,
    l2: float,
    rho: float | Float64s = np.inf,
    start: Float64s | None = None,
    tol: float = 1e-2,
    max_rounds: int = 10,
) -> Trained:
    """Learn from the annotated samples of data sets: one model, or one of each that are related.

    Parameters
    ----------
    objectives : sequence of PartialObjective or LogObjective
        Losses of the data sets.
    l2, rho : float
        Factors of ||w||^2 and of the squared distances ||w_d - w||^2, beside the sums of the
        losses; ``rho=0`` for models that have nothing in common (each with ``l2`` of its own),
        ``rho=inf`` for one model of all. ``rho`` may be a vector (n,) of positive finite numbers:
        a factor for each weight.
    start : float64, shape (D, n), optional
        Weights of the domains to begin with (one model of all: those of the first); such of similar
        factors save most of the work. By default, where the losses are not convex, those of one
        model of the data sets that are annotated in full; of a perceptron if there are none.
    tol : float
        Relative gap of the bundle method; where the losses are not convex, also the relative fall
        of the objective at which the rounds end.
    max_rounds : int
        Most rounds for related models, where the losses are not convex.

    Returns
    -------
    Trained
    """
    if not any(len(objective.samples) for objective in objectives):
        raise DataError("nothing is annotated yet; there is nothing to learn from")
    union = not isinstance(rho, np.ndarray) and rho == np.inf
    if not isinstance(rho, np.ndarray) and rho == 0:
        begin = [None] * len(objectives) if start is None else list(start[:, None])
        alone = [
            train([objective], l2=l2, start=first, tol=tol)
            for objective, first in zip(objectives, begin, strict=True)
        ]
        weights = np.stack([one.shared for one in alone])
        return Trained(np.zeros_like(weights[0]), weights, sum(one.objective for one in alone))
    smooth = [objective for objective in objectives if isinstance(objective, LogObjective)]
    margin = [objective for objective in objectives if isinstance(objective, PartialObjective)]
    if smooth:
        w, value = _minimise_smooth(smooth, l2, rho, start, tol)
    else:
        result = (
            _minimise_union(margin, l2, tol, start)
            if union
            else _minimise_related(margin, l2, rho, start, tol, max_rounds)
        )
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        w, value = np.atleast_2d(result.weights), result.objective
    if union:
        return Trained(w[0], np.tile(w, (len(objectives), 1)), value)
    return Trained(_shared(w, l2, rho), w, value)


def train_domains(
    objectives: Mapping[str, Objective],
    *,
    l2: float,
    rho: float,
    loose: Int64s | None = None,
    looseness: float = 1.0,
    start: Mapping[str, Float64s] | None = None,
    tol: float = 1e-2,
) -> tuple[Trained, dict[str, Float64s]]:
    """Learn models of domains by their names, of which some may have no annotation.

    Parameters
    ----------
    objectives : dict of str to PartialObjective or LogObjective
        Losses of each domain.
    l2, rho, tol : float
        As for :func:`train`.
    loose : int64, shape (m,), optional
        Weights that are drawn together by ``rho`` times ``looseness`` only.
    looseness : float
        That part, in (0, 1].
    start : dict of str to float64 (n,), optional
        Weights to begin with.

    Returns
    -------
    trained : Trained
        What was learned of the domains that have annotated samples.
    weights : dict of str to float64 (n,)
        Weights of each domain; those without annotation get the shared ones, the best there are
        without a loss.
    """
    known = [name for name, objective in objectives.items() if objective.samples.size]
    unknown = [name for name in objectives if name not in known]
    if not known:
        raise DataError("no domain has an annotated sample; there is nothing to learn from")
    if unknown and rho == 0:
        raise DataError(
            f"{unknown[0]!r} has no annotated sample, and with rho=0 it learns nothing from the "
            "others; give a positive rho"
        )
    parts = [objectives[name] for name in known]
    pull: float | Float64s = rho
    # Of a domain that nobody annotated, biases that differ as they like would tell nothing.
    if loose is not None and len(loose) and not unknown and 0 < rho < np.inf:
        pull = np.full(parts[0].n_weights, rho)
        pull[loose] *= looseness
    begin = None if start is None else np.stack([start[name] for name in known])
    found = train(parts, l2=l2, rho=pull, start=begin, tol=tol)
    weights = dict(zip(known, found.weights, strict=True))
    return found, weights | dict.fromkeys(unknown, found.shared)


def _minimise_union(
    objectives: Sequence[PartialObjective],
    l2: float,
    tol: float,
    start: Float64s | None = None,
) -> Solution:
    """One model of all data sets, whose losses are summed."""
    n = objectives[0].n_weights

    def total(cuts: list[Cut]) -> Cut:
        slope: Float64s = np.sum([cut.slope for cut in cuts], axis=0)
        return Cut(sum(cut.upper for cut in cuts), sum(cut.lower for cut in cuts), slope)

    def risk(w: Float64s) -> Cut:
        return total([objective.risk(w) for objective in objectives])

    def penalty(w: Float64s) -> Cut:
        return total([objective.penalty(w) for objective in objectives])

    def reward(w: Float64s) -> tuple[float, Float64s]:
        values, slopes = zip(*(objective.reward(w) for objective in objectives), strict=True)
        return sum(values), np.sum(slopes, axis=0)

    if all(objective.convex for objective in objectives):
        return minimise_bundle(risk, n, l2=l2, floor=0.0, memory=planes_kept(n), tol=tol)
    surrogate = PlaneSurrogate(penalty, reward, l2=l2, reward_below=True, memory=planes_kept(n))
    first_tol = max(tol, 0.1)
    begin = _start(objectives, l2) if start is None else start[0]
    return minimise_cccp(surrogate, begin, first_tol=first_tol, tol=tol, eta=tol)


def _minimise_related(
    objectives: Sequence[PartialObjective],
    l2: float,
    rho: float | Float64s,
    start: Float64s | None,
    tol: float,
    max_rounds: int,
) -> Solution:
    """A model of each data set: weights (D, n)."""
    if all(objective.convex for objective in objectives):
        risks = [objective.risk for objective in objectives]
        n = objectives[0].n_weights
        memory = _memory(len(risks))
        return minimise_bundle(
            risks, n, l2=l2, rho=rho, start=start, floor=0.0, memory=memory, tol=tol
        )
    if start is None:
        start = np.tile(_start(objectives, l2), (len(objectives), 1))
    return minimise_cccp(
        _JointSurrogate(objectives, l2, rho), start, first_tol=max(tol, 0.1), tol=tol, eta=tol,
        max_rounds=max_rounds,
    )  # fmt: skip


def _memory(n_domains: int) -> int:
    """Number of planes that are kept."""
    return max(_PLANES * n_domains, _PLANES_IN_ALL)


def _shared(w: Float64s, l2: float, rho: float | Float64s) -> Float64s:
    """Shared weights that are the best for weights of the domains (D, n)."""
    shared: Float64s = rho * w.sum(axis=0) / (l2 + len(w) * rho)
    return shared


def _regulariser(w: Float64s, l2: float, rho: float | Float64s) -> tuple[float, Float64s]:
    """What weights of the domains (D, n) cost beside their losses, and the gradient.

    The shared weights are the best for those of the domains: at their optimum they add nothing to
    the gradient.
    """
    shared = _shared(w, l2, rho)
    pull = rho * (w - shared)
    return l2 * float(shared @ shared) + float(np.vdot(pull, w - shared)), 2 * pull


def _minimise_smooth(
    objectives: Sequence[LogObjective],
    l2: float,
    rho: float | Float64s,
    start: Float64s | None,
    tol: float,
) -> tuple[Float64s, float]:
    """Minimise smooth losses by L-BFGS: weights (D, n), or (1, n) for rho = inf, and J."""
    import scipy.optimize

    union = not isinstance(rho, np.ndarray) and rho == np.inf
    shape = (1 if union else len(objectives), objectives[0].n_weights)
    begin = np.zeros(shape) if start is None else start[: shape[0]]

    def value_and_slope(x: Float64s) -> tuple[float, Float64s]:
        w = x.reshape(shape)
        value, slope = (l2 * float(x @ x), 2 * l2 * w) if union else _regulariser(w, l2, rho)
        for d, objective in enumerate(objectives):
            row = min(d, shape[0] - 1)
            loss, gradient = objective.value_and_gradient(w[row])
            value += loss
            slope[row] += gradient
        return value, slope.ravel()

    result = scipy.optimize.minimize(
        value_and_slope, begin.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": 1000, "ftol": tol * _SMOOTH_TOL, "gtol": 1e-6, "maxfun": 1 << 30},
    )  # fmt: skip
    w: Float64s = result.x.reshape(shape)
    return w, float(result.fun)


class _JointSurrogate:
    """Losses of several domains with tangents in place of their rewards; a point is (D, n).

    Rewards are maxima of scores, which are linear in w: their tangents go through zero. Since no
    loss is negative, they lie below the penalties, too.
    """

    def __init__(
        self, objectives: Sequence[PartialObjective], l2: float, rho: float | Float64s
    ) -> None:
        self._objectives, self._l2, self._rho = objectives, l2, rho
        self.n_planes, self.exact = 0, True
        self._planes = Bundle(objectives[0].n_weights, len(objectives))

    def tangent(self, w: Float64s) -> Tangent:
        parts = zip(self._objectives, w, strict=True)
        return Tangent(np.stack([objective.reward(one)[1] for objective, one in parts]), 0.0)

    def begin(self, w: Float64s, tangent: Tangent) -> float:
        value, _ = _regulariser(w, self._l2, self._rho)
        parts = zip(self._objectives, w, strict=True)
        value += sum(objective.penalty(one).upper for objective, one in parts)
        return value - tangent.height(w)

    def minimise(self, w: Float64s, tangent: Tangent, objective: float, tol: float) -> Solution:
        for d, slope in enumerate(tangent.slope):
            self._planes.add(slope, 0.0, d)
        result = minimise_bundle(
            [one.penalty for one in self._objectives], len(w[0]), l2=self._l2, rho=self._rho,
            linear=-tangent.slope, start=w, bundle=self._planes,
            memory=_memory(len(self._objectives)), tol=tol,
        )  # fmt: skip
        self.n_planes += len(result.records)
        self.exact = self.exact and result.exact
        return result


def _start(objectives: Sequence[PartialObjective], l2: float) -> Float64s:
    """Weights that know something: at zero, an unknown label would be rewarded at random.

    What is annotated in full says best how to complete what is not. From a perceptron, which has
    to learn that from the rest, ten links of new movies beside a movie annotated in full ended
    at twice the mistakes, after ten times the time.
    """
    full = [objective for objective in objectives if objective.convex and len(objective.samples)]
    if full:
        return _minimise_union(full, l2, _START_TOL).weights
    w: Float64s = np.zeros(objectives[0].n_weights)
    for _ in range(_PASSES):
        for objective in objectives:
            for i in objective.samples.tolist():
                objective.problem.update(i, w)
    return w
