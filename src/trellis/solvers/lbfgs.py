"""L-BFGS on the exact penalised loss (SciPy's L-BFGS-B, Zhu et al. 1997; OWL-QN where there is L1).

    minimise  ℓ(w) + Ω(w),   ℓ the summed log-loss of fixed pieces, Ω as in
    :mod:`trellis.problems.penalty`

- L1: orthant by orthant (OWL-QN, :mod:`trellis.solvers.owlqn`).
- Group lasso: ‖w_g‖ is replaced by √(‖w_g‖² + ε²) − ε; a group that ends at about ε and whose
  gradient without the penalty is within the penalty's reach is then set to zero.
- L2 may draw weights to a centre other than zero: what is thought of them before data are seen.
- ``states="observed"``: only weights whose feature was seen with their label in training are free,
  the others are zero (CRFsuite's default): fewer weights, another optimum.

SciPy does not hand out its memory of past steps, so a run is made of legs of ``LEG`` iterations,
each from a fresh start (with L1, too); a run that is taken up at the start of a leg goes on to the
same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import flag, instance, nothing, sequence_of, takes, whole
from trellis.problems import LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.visits import Visits
from trellis.solvers.owlqn import minimise_l1
from trellis.solvers.passes import Learner, Progress, Watch, check_run

__all__ = ["LEG", "LimitedMemoryBFGS"]

LEG = 100
"""Iterations between fresh starts."""

_SMOOTHING = 1e-4
_GRADIENT = 1e-6  # largest entry of the gradient at which the search ends
_DRAWINGS = instance(Visits) | sequence_of(instance(Visits), "a list of visits")
_L1_ENDINGS = {"max_iterations": "max_passes", "told": "patience"}
_ENDINGS = {0: "tol", 1: "max_passes", 99: "patience"}  # of SciPy's search; else it found no step


class LimitedMemoryBFGS(Learner):
    """L-BFGS on all pieces at once.

    Parameters
    ----------
    objective : LogLikelihood
    start : Weights
        Initial weights.
    visits : Visits, or list of Visits
        The pieces; they stay the same. Of several drawings of them the mean of the losses counts.
    penalty : Penalty
    observed : bool
        Leave weights of feature and label (or pair) never seen together at zero.
    memory : int
        Past steps that are remembered.
    centre : Weights, optional
        The L2 penalty is that of the distance to these, instead of to zero.
    """

    step = "iteration"

    @takes(
        objective=instance(LogLikelihood), start=instance(Weights), visits=_DRAWINGS,
        penalty=instance(Penalty), observed=flag, memory=whole(1, 10_000),
        centre=nothing | instance(Weights),
    )  # fmt: skip
    def __init__(
        self,
        objective: LogLikelihood,
        start: Weights,
        visits: Visits | Sequence[Visits],
        *,
        penalty: Penalty,
        observed: bool = False,
        memory: int = 8,
        centre: Weights | None = None,
    ) -> None:
        objective.problem.check_weights(start)
        self.objective, self.problem = objective, objective.problem
        self.drawings = [visits] if isinstance(visits, Visits) else list(visits)
        self.penalty = penalty
        self.memory = memory
        self._kind = start.node.dtype
        self._free = _observed(objective.problem, start) if observed else None
        flat = _flat(start)
        # The weights as a point of the search: those that are free, one after the other.
        self._x = flat if self._free is None else flat[self._free]
        middle = np.zeros(0) if centre is None else _flat(centre)
        self._centre = middle[self._free] if middle.size and self._free is not None else middle
        # Room that every evaluation uses again, flat arrays with views.
        self._trial_flat, self._slope_flat = np.zeros(flat.size), np.zeros(flat.size)
        self._trial, self._slope = (_views(a, start) for a in (self._trial_flat, self._slope_flat))
        self._part_flat = np.zeros(flat.size if len(self.drawings) > 1 else 0)
        self._part = _views(self._part_flat, start) if len(self.drawings) > 1 else None

    def run(self, *, max_passes: int, tol: float, watch: Watch | None = None) -> Progress:
        """Iterate until the objective falls by less than ``tol`` of itself in one iteration.

        ``stop_reason`` is "tol", "gradient", "max_passes", "patience" or "line search":
        no better point was found along the last direction.
        """
        check_run(max_passes, tol, watch)
        watch = Watch() if watch is None else watch
        now = watch.progress
        clock = time.perf_counter()
        finished = 0  # iterations of finished legs
        self.stop_reason = "max_passes"  # a run that is taken up may have none left

        def after(x: Float64s, objective: float) -> bool:
            nonlocal clock
            seconds = time.perf_counter() - clock
            self._x[:] = x  # so that an interrupt finds the best point so far
            enough = watch.record(self, objective, seconds, change=watch.change(objective))
            clock = time.perf_counter()
            return enough

        while (finished := len(now.records)) < max_passes:
            leg = self._l1_leg if self.penalty.l1 else self._smooth_leg
            x, self.stop_reason = leg(min(LEG, max_passes - finished), max(tol, 0.0), after)
            self._x[:] = x
            if self.stop_reason != "max_passes" or len(now.records) == finished:
                break  # not merely the end of a leg
            watch.save(now)
        self._finish()
        return now

    def _smooth_leg(
        self, n: int, tol: float, after: Callable[[Float64s, float], bool]
    ) -> tuple[Float64s, str]:
        """At most n iterations of SciPy's search: where it ended, and why."""
        import scipy.optimize

        def then(intermediate_result: Any) -> None:
            if after(intermediate_result.x, float(intermediate_result.fun)):
                raise StopIteration

        ending = scipy.optimize.minimize(
            self._value_and_gradient, self._x.copy(), jac=True, method="L-BFGS-B", callback=then,
            options={
                "maxiter": n, "maxcor": self.memory, "ftol": tol, "gtol": _GRADIENT,
                "maxfun": 1 << 30, "maxls": 40,
            },
        )  # fmt: skip
        if ending.status == 0 and float(np.abs(ending.jac).max(initial=0.0)) <= _GRADIENT:
            return ending.x, "gradient"
        return ending.x, _ENDINGS.get(int(ending.status), "line search")

    def _l1_leg(
        self, n: int, tol: float, after: Callable[[Float64s, float], bool]
    ) -> tuple[Float64s, str]:
        """At most n iterations of OWL-QN: where it ended, and why."""
        ending = minimise_l1(
            self._value_and_gradient, self._x.copy(), self.penalty.l1, memory=self.memory,
            max_iterations=n, tol=tol, gradient_tol=_GRADIENT, after=after,
        )  # fmt: skip
        return ending.x, _L1_ENDINGS.get(ending.reason, ending.reason)

    def weights(self) -> Weights:
        """The weights as of now, in the type of those given at the start."""
        return self._at(self._x).map(lambda a: a.astype(self._kind))

    def state(self) -> dict[str, NDArray[Any]]:
        """The point at the start of a leg."""
        return {"point": self._x}

    def objective_at(self, weights: Weights) -> float:
        """What is minimised, but for L1, at other weights."""
        flat = _flat(weights)
        return self._value_and_gradient(flat if self._free is None else flat[self._free])[0]

    # ---------------------------------------------------------------- points

    def _at(self, x: Float64s) -> Weights:
        """The weights at a point, until they are asked for at another."""
        self._trial_flat[slice(None) if self._free is None else self._free] = x
        return self._trial

    def _value_and_gradient(self, x: Float64s) -> tuple[float, Float64s]:
        """The loss and the penalties other than L1."""
        value = self._loss(self._at(x))
        if self.penalty.group_lasso:
            value += self._add_group_lasso()
        slope = self._slope_flat if self._free is None else self._slope_flat[self._free]
        away = x - self._centre if self._centre.size else x
        value += self.penalty.l2 * float(away @ away)
        return value, slope + (2 * self.penalty.l2) * away

    def _loss(self, weights: Weights) -> float:
        """Mean loss of the drawings; its gradient is left in the slope."""
        first, *others = self.drawings
        value, _ = self.objective.value_and_gradient(weights, first, self._slope)
        for drawing in others:
            more, _ = self.objective.value_and_gradient(weights, drawing, self._part)
            value += more
            self._slope_flat += self._part_flat
        if others:
            self._slope_flat /= len(self.drawings)
        return value / len(self.drawings)

    def _add_group_lasso(self) -> float:
        """Value of the smoothed group lasso; its gradient is added to the slope."""
        norms, sizes = self.penalty.group_norms(self._trial)
        smooth = np.sqrt(norms**2 + _SMOOTHING**2)
        strength = self.penalty.group_lasso * np.sqrt(sizes)
        factor = strength / smooth
        pull = self._trial.copy()
        self._scale(pull, factor)
        for slope, array in zip(self._slope.arrays(), pull.arrays(), strict=True):
            np.add(slope, array, out=slope)
        return float(strength @ (smooth - _SMOOTHING))

    def _finish(self) -> None:
        """Set groups to zero that the smoothing kept from it."""
        if not self.penalty.group_lasso:
            return
        trial = self._at(self._x)
        norms, sizes = self.penalty.group_norms(trial)
        reach = self.penalty.group_lasso * np.sqrt(sizes)
        candidate = np.flatnonzero(norms < 100 * _SMOOTHING)
        if not len(candidate):
            return
        keep = np.ones(len(norms))
        keep[candidate] = 0
        self._scale(trial, keep)
        self._loss(trial)
        pull, _ = self.penalty.group_norms(self._pull(self._slope))
        keep[candidate] = pull[candidate] > reach[candidate] * (1 + 1e-3)
        trial = self._at(self._x)
        self._scale(trial, keep)
        flat = self._trial_flat
        self._x[:] = flat if self._free is None else flat[self._free]

    def _scale(self, weights: Weights, factor: Float64s) -> None:
        """Multiply the weights of each group by a factor, in place."""
        for array, each in zip(weights.arrays(), self.penalty.spread(weights, factor), strict=True):
            array.ravel()[:] *= each

    def _pull(self, slope: Weights) -> Weights:
        """What of a gradient moves weights away from zero: that of free ones, beyond L1's reach."""
        if self._free is not None:
            fixed = np.ones(sum(a.size for a in slope.arrays()), bool)
            fixed[self._free] = False
            for array, zero in zip(slope.arrays(), _views(fixed, slope).arrays(), strict=True):
                array[zero] = 0
        return slope.map(lambda a: np.sign(a) * np.maximum(np.abs(a) - self.penalty.l1, 0))


def _flat(weights: Weights) -> Float64s:
    """The weights one after the other, in float64."""
    return np.concatenate([a.ravel() for a in weights.arrays()], dtype=np.float64)


def _views(flat: NDArray[Any], like: Weights) -> Weights:
    """Weights whose arrays are consecutive parts of a flat one."""
    at = 0

    def part(a: NDArray[Any]) -> NDArray[Any]:
        nonlocal at
        at += a.size
        return flat[at - a.size : at].reshape(a.shape)

    return like.map(part)


def _observed(problem: LabelProblem, weights: Weights) -> NDArray[np.int64]:
    """Places of the weights whose feature occurs with a label that is allowed there."""
    e, labels = problem.encoded, problem.labels
    n_labels = problem.n_labels
    node = np.zeros(weights.node.shape, bool)
    annotated = labels.ids != n_labels
    position = np.repeat(np.arange(len(labels.ids)), np.diff(e.indptr))
    use = annotated[position]
    feature, ids = e.indices[use], labels.ids[position[use]]
    single = ids < n_labels
    node[feature[single], ids[single]] = True
    for f, row in zip(feature[~single], ids[~single], strict=True):
        node[f] |= labels.table[row]
    n_rest = sum(a.size for a in weights.arrays()[1:])
    return np.flatnonzero(np.concatenate([node.ravel(), np.ones(n_rest, bool)]))
