"""Models that learn by stochastic gradient steps: their rate, and a pass over a batch of a stream.

A batch of a stream is visited at the initial rate, and the penalty's share of it is its share of
the samples seen so far.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from trellis.domains import flag, number, one_of
from trellis.errors import ParametersError
from trellis.estimator import fitted, fixed, parameter
from trellis.models.automatic import is_dense, passes_for
from trellis.models.linear_model import LinearModel
from trellis.problems import HingeSteps, LabelProblem, LogLikelihood, Penalty, Weights
from trellis.solvers.passes import Learner
from trellis.solvers.sgd import StochasticGradient, calibrate

__all__ = ["StochasticModel"]

# The trials of rates are short. A run of many passes ends lower, and predicts better, from twice
# the rate that a trial finds best (on every data set tried, of 4 to 49 labels, words or sensors).
_PUSH = 2.0

# «auto» of l2, by the kind of model. Where features are sparse (development data, seven inputs),
# max-margin steps with 3 were never surely better than with 1, and up to one point worse;
# Frank–Wolfe gained 0.2 at most and lost 0.6.
_SPARSE_L2 = {"crf": 0.1, "max-margin": 1.0}
_DENSE_L2 = {"crf": 1.0, "max-margin": 5.0}


class StochasticModel(LinearModel):
    """What models with gradient steps have in common; not used by itself."""

    l2: float | str
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
    averaged: bool | str = parameter(
        one_of("auto") | flag,
        """With "sgd", predict with the mean of the weights of the last two thirds of the passes,
        all of which are made unless ``tol`` is given; not with penalties that make weights zero.
        "auto": where features
        are sparse (see :mod:`trellis.models.automatic`), the rate is not told to fall, and no such
        penalty is there.""",
        default="auto",
    )

    learning_rate_: float = fitted()
    l2_: float = fitted()
    averaged_: bool = fixed(False)
    _steps_of: ClassVar[type[LogLikelihood] | type[HingeSteps]]
    """The loss, as one that steps can be made for."""

    def _averages(self, problem: LabelProblem) -> bool:
        """Whether the steps of the solver used are averaged."""
        if self.solver_ != "sgd" or not isinstance(self.averaged, str):
            return self.solver_ == "sgd" and bool(self.averaged)
        return isinstance(self.decay, str) and self._penalty().smooth and not is_dense(problem)

    @property
    def _tol(self) -> float:
        # At a fixed rate the objective met does not come to rest as the mean of weights does.
        return -np.inf if self.averaged_ and not self._is_asked("tol") else super()._tol

    def _is_asked(self, name: str) -> bool:
        """Whether a parameter has another value than its default."""
        return bool(getattr(self, name) != self._parameter_table[name].default)

    def _plan_passes(self, problem: LabelProblem, falling: int) -> None:
        """Say whether weights are averaged, and how many passes there are, if not told."""
        self.averaged_ = self._averages(problem)
        self._auto_passes = passes_for(len(problem.labels)) if self.averaged_ else falling

    @property
    def _rate_decay(self) -> float:
        if isinstance(self.decay, str):
            return 1.0 if self.averaged_ else 0.75
        return float(self.decay)

    def _check_together(self) -> None:
        super()._check_together()
        if self._wants_average and self.solver not in ("sgd", "auto"):
            raise ParametersError("{averaged} is for {solver}", averaged=True, solver="sgd")

    @property
    def _wants_average(self) -> bool:
        return not isinstance(self.averaged, str) and bool(self.averaged)

    def penalty_strength(self, problem: LabelProblem) -> float:
        """The factor of ‖w‖²: that given, or what suits the features of a problem."""
        if not isinstance(self.l2, str):
            return float(self.l2)
        return _DENSE_L2[self.kind] if is_dense(problem) else _SPARSE_L2[self.kind]

    def _penalty(self, share: float = 1.0) -> Penalty:
        """The penalty of all samples, or of a share of them."""
        return Penalty(share * self.l2_)

    def _find_rate(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> float:
        """Set the initial rate, by short trials if it is not given."""
        if isinstance(self.learning_rate, str):
            best = calibrate(
                problem, self._partitioner(problem), rng, l2=self.l2_, like=weights,
                batch_size=self.batch_size, loss=self._steps_of, unseen=self.averaged_,
            )  # fmt: skip
            self.learning_rate_ = _PUSH * best
        else:
            self.learning_rate_ = float(self.learning_rate)
        return self.learning_rate_

    def _descent(self, problem: LabelProblem, weights: Weights, **more: Any) -> StochasticGradient:
        """Gradient steps of a whole training."""
        return self._steps(
            problem, weights, decay=self._rate_decay, penalty=self._penalty(),
            average_from=self._pass_limit() // 3 if self.averaged_ else None, **more,
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
        self.solver_, self.averaged_ = "sgd", False
        # A small batch says little about features; what was chosen stays.
        if not isinstance(self.l2, str) or not hasattr(self, "l2_"):
            self.l2_ = self.penalty_strength(problem)
        if self.n_batches_ == 1:
            self._find_rate(problem, weights, rng)
        share = problem.n_samples / self.n_seen_
        sgd = self._steps(problem, weights, decay=1.0, penalty=self._penalty(share))
        return self._passes(sgd, rng)
