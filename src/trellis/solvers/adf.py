"""ADF: learning rates that adapt to the frequency of features (Sun, Wang & Li 2012).

Every feature has a rate γ, the same for all its labels and label pairs, c at first. A pass has ten
windows of q pieces. In a window, feature i occurs in v_i of them; at its end

    u_i = v_i / q,    η_i = a − u_i (a − b),    γ_i ← η_i γ_i,    v_i ← 0,

with a = 0.995 and b = 0.6: the rate of a frequent feature falls fast, that of a rare one slowly.
Steps are w ← w − γ_i g. The L2 penalty is applied at window ends, by the proximal step of its share
q/N with each feature's rate; L1 and the group lasso once a pass, with the mean rate that a feature
had in it. Rates persist across passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import instance, number, takes, whole
from trellis.problems import FeatureRates, LogLikelihood, Penalty, Weights
from trellis.problems.visits import Visits
from trellis.solvers.passes import Visitor
from trellis.solvers.sgd import SLOWER, slowed_down

__all__ = ["AdaptiveFrequency"]

_SLOW, _FAST = 0.995, 0.6


class AdaptiveFrequency(Visitor):
    """ADF on the penalised log-likelihood of pieces.

    Parameters
    ----------
    objective : LogLikelihood
    start : Weights
        Initial weights; changed in place.
    learning_rate : float
        c, the rate that all features start with.
    penalty : Penalty
    batch_size : int
        Pieces of a mini-batch.
    """

    windows = 10

    @takes(
        objective=instance(LogLikelihood), start=instance(Weights),
        learning_rate=number(above=0), penalty=instance(Penalty), batch_size=whole(1),
    )  # fmt: skip
    def __init__(
        self,
        objective: LogLikelihood,
        start: Weights,
        *,
        learning_rate: float,
        penalty: Penalty,
        batch_size: int = 1,
    ) -> None:
        self.objective, self.problem = objective, objective.problem
        self.penalty, self.batch_size = penalty, batch_size
        self.rates = FeatureRates.constant(len(start.node), learning_rate)
        self._rate = learning_rate
        self._weights = start
        self._guarded = not start.any()
        self._state = np.array([1.0, 0.0])
        self._spent = np.zeros(len(start.node) + 1)  # mean rates of the pass so far

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces; returns the summed loss met."""
        return self.objective.descend(
            self._weights, these, self._state, batch_size=self.batch_size, rates=self.rates
        )

    def end_window(self, number: int, visited: int, total: int) -> None:
        """Apply the L2 penalty's share and renew the rates."""
        gamma = self.rates.gamma
        if self.penalty.l2:
            keep = 1 / (1 + 2 * self.penalty.l2 * visited / total * gamma)
            self._shrink(keep.astype(self._weights.node.dtype))
        self._spent += gamma * (visited / total)
        gamma *= _SLOW - self.rates.fired[0] / visited * (_SLOW - _FAST)
        self.rates.fired[0] = 0

    def _shrink(self, keep: NDArray[Any]) -> None:
        w = self._weights
        w.node *= keep[:-1, None]
        w.transitions *= keep[-1]
        if w.edge is not None:
            from trellis.kernels.proximal import scale_rows

            feature = w.edge.features_of_rows() % len(keep)  # −1, the edges' own, as transitions
            scale_rows(w.edge.values, w.edge.rows(), feature, keep.astype(np.float64))

    def end_pass(self, number: int) -> float:
        """Apply what is applied once a pass; returns the penalty."""
        if not self.penalty.smooth:
            self.penalty.proximal(self._weights, self._spent)
        self._spent[:] = 0
        return self.penalty.value(self._weights)

    def limit(self, these: Visits) -> float:
        """Objective of zero weights."""
        return self.objective.at_zero(these) if self._guarded else np.inf

    def restart(self) -> str:
        """Go back to where the run began, at lower rates; returns a line about it."""
        before, self._rate = self._rate, SLOWER * self._rate
        self._weights.clear()
        fresh = FeatureRates.constant(len(self._weights.node), self._rate)
        self.rates.gamma[:], self.rates.fired[:] = fresh.gamma, fresh.fired
        self._state[:] = 1.0, 0.0
        self._spent[:] = 0
        return slowed_down(before, self._rate)

    def weights(self) -> Weights:
        """The weights as of now (valid until the next visit)."""
        return self._weights

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, rates and counts."""
        return self._weights.named() | {
            "gamma": self.rates.gamma,
            "fired": self.rates.fired,
            "state": self._state,
            "spent": self._spent,
        }
