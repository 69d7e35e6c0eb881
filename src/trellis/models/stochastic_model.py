"""Models that learn by stochastic gradient steps: their rate, and a pass over a batch of a stream.

A batch of a stream is visited at the initial rate, and the penalty's share of it is its share of
the samples seen so far.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from trellis.domains import flag, number, one_of
from trellis.errors import ParametersError
from trellis.estimator import fitted, parameter
from trellis.models.linear_model import LinearModel
from trellis.problems import HingeSteps, LabelProblem, LogLikelihood, Penalty, Weights
from trellis.solvers.passes import Learner
from trellis.solvers.sgd import StochasticGradient, calibrate

__all__ = ["StochasticModel"]


class StochasticModel(LinearModel):
    """What models with gradient steps have in common; not used by itself."""

    l2: float
    solver: str
    learning_rate: float | str = parameter(
        one_of("auto") | number(above=0),
        'Initial rate of stochastic steps; "auto" finds it by short trials on up to 1,000 samples.',
        default="auto",
    )
    decay: float | str = parameter(
        one_of("auto") | number(above=0, at_most=1),
        """With "sgd", the factor by which the rate falls in one pass; "auto": 0.75, or 1, a fixed
        rate, where weights are averaged.""",
        default="auto",
    )
    averaged: bool = parameter(
        flag,
        """With "sgd", predict with the mean of the weights of the last two thirds of the passes,
        all of which are made; not with penalties that make weights zero.""",
        default=False,
    )

    learning_rate_: float = fitted()
    _steps_of: ClassVar[type[LogLikelihood] | type[HingeSteps]]
    """The loss, as one that steps can be made for."""

    @property
    def _tol(self) -> float:
        return -np.inf if self.averaged else super()._tol

    @property
    def _rate_decay(self) -> float:
        if isinstance(self.decay, str):
            return 1.0 if self.averaged else 0.75
        return float(self.decay)

    def _check_together(self) -> None:
        super()._check_together()
        if self.averaged and self.solver != "sgd":
            raise ParametersError("{averaged} is for {solver}", averaged=True, solver="sgd")

    def _penalty(self, share: float = 1.0) -> Penalty:
        """The penalty of all samples, or of a share of them."""
        return Penalty(share * self.l2)

    def _find_rate(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> float:
        """Set the initial rate, by short trials if it is not given."""
        if isinstance(self.learning_rate, str):
            self.learning_rate_ = calibrate(
                problem, self._partitioner(problem), rng, l2=self.l2, like=weights,
                batch_size=self.batch_size, loss=self._steps_of,
            )  # fmt: skip
        else:
            self.learning_rate_ = float(self.learning_rate)
        return self.learning_rate_

    def _descent(self, problem: LabelProblem, weights: Weights, **more: Any) -> StochasticGradient:
        """Gradient steps of a whole training."""
        return self._steps(
            problem, weights, decay=self._rate_decay, penalty=self._penalty(),
            average_from=self._pass_limit() // 3 if self.averaged else None, **more,
        )  # fmt: skip

    def _steps(self, problem: LabelProblem, weights: Weights, **more: Any) -> StochasticGradient:
        """Gradient steps at the rate that was found."""
        return StochasticGradient(
            self._steps_of(problem, self._threads), weights, learning_rate=self.learning_rate_,
            batch_size=self.batch_size, **more,
        )  # fmt: skip

    def _stream_learner(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> Learner:
        self.solver_ = "sgd"
        if self.n_batches_ == 1:
            self._find_rate(problem, weights, rng)
        share = problem.n_samples / self.n_seen_
        sgd = self._steps(problem, weights, decay=1.0, penalty=self._penalty(share))
        return self._passes(sgd, rng)
