"""How CRFs are trained, whatever their structure: penalties, solvers, rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from trellis.domains import is_number
from trellis.errors import DataError
from trellis.models.trained_model import TrainedModel
from trellis.problems import ChainData, LogLikelihood, Penalty, Weights
from trellis.solvers import AdaptiveFrequency, LimitedMemoryBFGS, StochasticGradient, calibrate

__all__ = ["CRFTraining"]

_PASSES = {"sgd": 12, "adf": 12, "lbfgs": 500, "auto": 0}
"""Solvers, and how many passes or iterations they make at most."""

# «auto» takes L-BFGS up to so many additions for the scores of the data.
_LITTLE_DATA = 2_000_000


class CRFTraining(TrainedModel):
    """What all CRFs have in common; not used by itself."""

    l2: float
    l1: float
    group_lasso: float
    solver: str
    states: str
    learning_rate: float | str
    decay: float
    lock_free: bool
    l2_once: bool

    learning_rate_: float
    solver_: str

    _objective: Callable[..., LogLikelihood] = LogLikelihood

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("l2", "l1", "group_lasso"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < math.inf):
                raise DataError(f"{name} must be a number of at least 0, got {value!r}")
        if not (is_number(self.decay) and 0 < self.decay <= 1):
            raise DataError(f"decay must lie in (0, 1], got {self.decay!r}")
        rate: Any = self.learning_rate
        automatic = isinstance(rate, str) and rate == "auto"
        if not (automatic or (is_number(rate) and 0 < rate < math.inf)):
            raise DataError(f"learning_rate must be 'auto' or a positive number, got {rate!r}")
        if self.solver not in _PASSES:
            raise DataError(f"solver must be one of {', '.join(_PASSES)}, got {self.solver!r}")
        if self.states not in ("all", "observed"):
            raise DataError(f"states must be 'all' or 'observed', got {self.states!r}")
        if self.states == "observed" and self.solver != "lbfgs":
            raise DataError("states='observed' is for solver='lbfgs'")
        if self._lock_free and self.solver != "sgd":
            raise DataError("lock_free is for solver='sgd'")

    @property
    def _lock_free(self) -> bool:
        """Only chains may have threads that do not wait for each other."""
        return bool(getattr(self, "lock_free", False))

    def _pass_limit(self) -> int:
        return _PASSES[self.solver_] if isinstance(self.max_passes, str) else self.max_passes

    def _rate(self, data: ChainData, weights: Weights, rng: np.random.Generator) -> float:
        if isinstance(self.learning_rate, str):
            return calibrate(
                data, self._pieces(data), rng, l2=self.l2, like=weights,
                batch_size=self.batch_size, objective_of=self._objective,
            )  # fmt: skip
        return float(self.learning_rate)

    def _penalty(self, share: float = 1.0) -> Penalty:
        groups = self.encoder_.groups() if self.group_lasso else None
        return Penalty(share * self.l2, share * self.l1, share * self.group_lasso, groups)

    def _learner(
        self, data: ChainData, start: Weights, rng: np.random.Generator
    ) -> StochasticGradient | AdaptiveFrequency | LimitedMemoryBFGS:
        objective = self._objective(data, self._threads)
        penalty = self._penalty()
        self.solver_ = self.solver
        if self.solver == "auto":
            entries = len(data.encoded.indices) * data.n_labels
            small = self.piece_size is None and entries <= _LITTLE_DATA
            self.solver_ = "lbfgs" if small else "sgd"
        if self.solver_ == "lbfgs":
            pieces = self._pieces(data).draw(data.encoded.offsets, rng)
            return LimitedMemoryBFGS(
                objective, start, data.visits(pieces), penalty=penalty,
                observed=self.states == "observed",
            )  # fmt: skip
        self.learning_rate_ = self._rate(data, start, rng)
        if self.solver_ == "adf":
            return AdaptiveFrequency(
                objective, start, learning_rate=self.learning_rate_, penalty=penalty,
                batch_size=self.batch_size,
            )  # fmt: skip
        return StochasticGradient(
            objective, start, learning_rate=self.learning_rate_, decay=self.decay,
            penalty=penalty, l2_once=self.l2_once, batch_size=self.batch_size,
            lock_free=self._lock_free,
        )  # fmt: skip

    def _learn_batch(self, data: ChainData, weights: Weights, rng: np.random.Generator) -> Self:
        """One pass over a batch of a stream, at the initial rate."""
        if self.n_batches_ == 1:
            self.learning_rate_ = self._rate(data, weights, rng)
        self.solver_ = "sgd"
        n = len(data.sample_weight)
        learner = StochasticGradient(
            self._objective(data, self._threads),
            weights,
            learning_rate=self.learning_rate_,
            decay=1.0,
            penalty=self._penalty(n / self.n_seen_),
            batch_size=self.batch_size,
        )
        self._run(learner, rng, None, max_passes=1)
        return self
