r"""Max-margin training by planes, from annotations complete or partial: a call, and a learner.

.. math:: \min_w \; \Omega(w) + \sum_n c_n \, [P_n(w) - R_n(w)]_+

(:mod:`trellis.problems.partial`). Where the sum of the losses is convex, the bundle method finds
the optimum to a known gap. Where it is not, the concave-convex procedure finds a stationary point,
and where that lies depends on where it starts (:mod:`trellis.solvers.start`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, function, instance, nothing, number, seed, takes, whole
from trellis.errors import DataError, ParametersError
from trellis.problems import LabelProblem, PartialObjective, Weights
from trellis.solvers.cccp import PlaneSurrogate, minimise_cccp
from trellis.solvers.passes import Learner, Progress, Watch
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.solution import Solution
from trellis.solvers.start import start_weights

__all__ = ["MAX_ITERATIONS", "MAX_ROUNDS", "PlaneLearner", "minimise_partial", "planes_kept"]

MAX_ITERATIONS, MAX_ROUNDS = 1000, 50
"""Most of them if nobody says how many."""


# Numbers that all planes may take if nobody says how many to keep: 64 MB, or a few planes. An
# iteration reads all of them several times, which soon costs more than the inference: with 97,000
# weights, 86 planes took half the time of all (415), to the same objective.
_NUMBERS, _FEW = 1 << 23, 50


def planes_kept(n_weights: int) -> int:
    """Number of planes that are kept if nobody says how many."""
    return max(_FEW, _NUMBERS // max(n_weights, 1))


@takes(
    objective=instance(PartialObjective), l2=number(at_least=0), l1=number(at_least=0),
    tol=number(at_least=0), memory=nothing | whole(2), limit=nothing | whole(1), recycle=flag,
    adaptive=flag, seed=nothing | seed, report=nothing | function,
)  # fmt: skip
def minimise_partial(
    objective: PartialObjective,
    *,
    l2: float = 0.0,
    l1: float = 0.0,
    tol: float = 1e-2,
    memory: int | None = None,
    limit: int | None = None,
    start: Float64s | None = None,
    recycle: bool = True,
    adaptive: bool = True,
    seed: int | None = None,
    report: Callable[[Any], None] | None = None,
) -> Solution:
    """Minimise the regularised losses of annotated samples.

    Parameters
    ----------
    objective : PartialObjective
        The losses.
    l2, l1 : float
        Factor of ||w||^2 or of ||w||_1.
    tol : float
        Relative gap of the bundle method, and relative fall of the objective at which the
        concave-convex procedure ends.
    memory : int, optional
        Most planes kept; as many as 64 MB hold by default.
    limit : int, optional
        Most iterations (1000 by default), or rounds where the objective is not convex (50).
    start : float64, shape (D,), optional
        Where to begin if the objective is not convex.
    recycle, adaptive : bool
        Bounds recycling and adaptive precision of :mod:`trellis.solvers.cccp`.
    seed : int, optional
        Of the perceptron that finds the start, where it does.
    report : function, optional
        Called with the record of each iteration or round.

    Returns
    -------
    Solution

    Raises
    ------
    DataError
        If nothing is annotated.
    """
    if not len(objective.samples):
        raise DataError("nothing is annotated: there is nothing to learn from")
    n = objective.n_weights
    memory = planes_kept(n) if memory is None else memory
    if objective.convex:
        return minimise_bundle(
            objective.risk, n, l2=l2, l1=l1, floor=0.0, memory=memory, tol=tol,
            max_iterations=MAX_ITERATIONS if limit is None else limit, report=report,
        )  # fmt: skip
    if start is None:
        start = start_weights(objective, l2, seed)
    start = as_array(start, np.float64, "start", (n,), finite=True)
    surrogate = PlaneSurrogate(
        objective.penalty, objective.reward, l2=l2, l1=l1, reward_below=True, recycle=recycle,
        memory=memory,
    )  # fmt: skip
    return minimise_cccp(
        surrogate, start, first_tol=max(tol, 0.1) if adaptive else tol, tol=tol, eta=tol,
        max_rounds=MAX_ROUNDS if limit is None else limit, report=report,
    )  # fmt: skip


class PlaneLearner(Learner):
    """Cutting planes on the losses of label sets; a learner of all samples at once.

    It is for every loss of :mod:`trellis.problems.partial`, for L1, and for a small gap.

    Parameters
    ----------
    objective : PartialObjective
        The losses.
    l2, l1 : float
        Factor of ||w||² or of ||w||₁; one of them is positive, the other 0.
    memory : int, optional
        Most planes kept.
    seed : int, optional
        Of the perceptron that finds the start, where it does.
    """

    resumable = False

    def __init__(
        self,
        objective: PartialObjective,
        *,
        l2: float,
        l1: float,
        memory: int | None = None,
        seed: int | None = None,
    ) -> None:
        instance(LabelProblem).check("objective.problem", objective.problem)
        assert isinstance(objective.problem, LabelProblem)
        self.partial, self.problem = objective, objective.problem
        self._settings: dict[str, Any] = {"l2": l2, "l1": l1, "memory": memory, "seed": seed}
        self.step = "iteration" if objective.convex else "round"
        self._w = np.zeros(objective.n_weights)
        self.objective_value, self.gap, self.exact = np.inf, np.inf, True

    def run(self, *, max_passes: int, tol: float, watch: Watch | None = None) -> Progress:
        """Ask for planes until the gap, or the fall of a round, is at most ``tol`` of J."""
        watch = Watch() if watch is None else watch
        now = watch.progress
        if watch.dev_score is not None and not self.partial.convex:
            raise ParametersError(
                "held-out data cannot be scored between rounds of planes; leave it out, or take "
                "{solver}",
                solver="frank-wolfe",
            )

        def after(record: Any) -> None:
            if self.partial.convex and record.objective < self.objective_value:
                self.objective_value, self._w = record.objective, self.partial.asked
            bound = getattr(record, "lower_bound", None)
            if watch.record(self, record.objective, record.seconds, lower_bound=bound):
                raise _Enough

        try:
            result = minimise_partial(
                self.partial, tol=tol, limit=max_passes, report=after, **self._settings
            )
        except _Enough:
            self.stop_reason, self.gap = "patience", now.records[-1].gap
            return now
        self._w, self.objective_value, self.gap = result.weights, result.objective, result.gap
        self.stop_reason, self.exact = result.stop_reason, result.exact
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return now

    def weights(self) -> Weights:
        """The best weights met, in float32."""
        return self.problem.weights(self._w).map(lambda a: a.astype(np.float32))

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: a run of planes cannot be taken up."""
        return {}


class _Enough(Exception):  # noqa: N818 (no error)
    """No better score for as long as patience goes."""
