"""Max-margin training by cutting planes, as a learner of all samples at once.

It is for every loss of :mod:`trellis.problems.partial`, for L1, and for a small gap: the bundle
method where the sum of the losses is convex, else the concave-convex procedure with planes
(:mod:`trellis.solvers.partial_margin`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import ParametersError
from trellis.problems import LabelProblem, PartialObjective, Weights
from trellis.solvers.partial_margin import minimise_partial
from trellis.solvers.passes import Learner, Progress, Watch

__all__ = ["PlaneLearner"]


class PlaneLearner(Learner):
    """Cutting planes on the losses of label sets.

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
        assert isinstance(objective.problem, LabelProblem)
        self.partial, self.problem = objective, objective.problem
        self._settings: dict[str, Any] = {"l2": l2, "l1": l1, "memory": memory, "seed": seed}
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
