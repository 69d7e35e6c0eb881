r"""Block-coordinate Frank–Wolfe for structured hinge losses (Lacoste-Julien et al. 2013).

.. math::

    \min_w \; J(w) = \lambda \lVert w\rVert^2 + \sum_i c_i H_i(w), \qquad
    H_i(w) = \max_y \; \Delta_i(y) - \langle w, \psi_i(y)\rangle, \quad
    \psi_i(y) = \phi(x_i, y_i) - \phi(x_i, y).

The dual has a distribution :math:`\alpha_i` over the labellings of each sample:

.. math::

    w = \sum_i w_i, \quad
    w_i = \frac{c_i}{2\lambda} \sum_y \alpha_{iy} \psi_i(y), \quad
    \ell_i = c_i \sum_y \alpha_{iy} \Delta_i(y), \qquad
    \max_\alpha \; \sum_i \ell_i - \lambda \lVert w\rVert^2 .

A visit of sample i finds the labelling :math:`y^*` that attains :math:`H_i(w)`, with
:math:`w_s = c_i\psi_i(y^*) / 2\lambda` and :math:`\ell_s = c_i\Delta_i(y^*)`, and moves
:math:`\alpha_i` towards it by the step that raises the dual most,

.. math::

    \gamma = \frac{2\lambda\langle w_i - w_s, w\rangle - \ell_i + \ell_s}
                  {2\lambda \lVert w_i - w_s\rVert^2} \quad\text{cut to } [0, 1] .

There is no rate to choose, and the dual is a lower bound on min J at any time. A pass visits all
samples in a fresh random order. The average of the weights after each pass p, weighted by p², is
usually the better solution (averages after each step, as in the paper, are no better and cost
more); both are looked at when the gap is taken.

The oracle may return a worse labelling than the best: the dual stays valid. For a valid gap it then
has to give an upper bound of :math:`H_i(w)` besides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.corpus.sample_weights import sample_weights
from trellis.domains import flag, function, nothing, number, seed, takes, whole
from trellis.errors import DataError
from trellis.files.stored import check_range
from trellis.problems.oracle import as_answer
from trellis.solvers.passes import PassRecord
from trellis.solvers.solution import Solution

__all__ = [
    "MAX_COUNT",
    "FrankWolfeRun",
    "FrankWolfeState",
    "SparseDual",
    "minimise_frank_wolfe",
    "run_frank_wolfe",
]


# A pass that raises the dual by less than this, relatively, brings nothing.
_NOTHING = 1e-13
MAX_COUNT = 1 << 31
"""More passes and rounds than any run makes."""


class FrankWolfeState(Protocol):
    """A dual point of a problem of so many samples, and how to move it."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        ...

    @property
    def exact(self) -> bool:
        """Whether every value of a loss, so far, was exact."""
        ...

    def sweep(self, order: Int64s) -> None:
        """Visit samples in this order."""
        ...

    def dual(self) -> float:
        """Value of the dual."""
        ...

    def weights(self) -> Float64s:
        """The weights of the dual point, valid until the next sweep."""
        ...

    def objective(self, w: Float64s) -> float:
        """J(w), or an upper bound if the oracle is not exact."""
        ...


class FrankWolfeRun:
    """A run of sweeps: the dual point, the average of the weights, and the best point met.

    Parameters
    ----------
    dual : FrankWolfeState
        The problem; it is changed.
    rng : numpy.random.Generator
        Source of the orders.
    averaged : bool
        Look at the average of the weights, too.
    """

    def __init__(
        self, dual: FrankWolfeState, rng: np.random.Generator, *, averaged: bool = True
    ) -> None:
        self.dual, self.rng, self.averaged = dual, rng, averaged
        self.begin()

    def begin(self) -> None:
        """Start from the dual point as it is."""
        self.weights = self.dual.weights().copy()
        self.objective = self.dual.objective(self.weights)
        self.lower_bound = -np.inf
        self._average, self._share, self.passes = np.zeros_like(self.weights), 0.0, 0
        self._move = np.empty_like(self.weights)

    @property
    def gap(self) -> float:
        """By how much the optimum may be lower."""
        return max(0.0, self.objective - self.lower_bound)

    def sweep(self, look: bool) -> bool:
        """Make a pass; look at the objective if asked to, or if the pass brought nothing.

        Returns whether the pass raised the dual.
        """
        self.passes += 1
        self.dual.sweep(self.rng.permutation(self.dual.n_samples))
        w = self.dual.weights()
        if self.averaged:
            self._share += self.passes**2
            np.subtract(w, self._average, out=self._move)  # no array a pass: they are large
            self._move *= self.passes**2 / self._share
            self._average += self._move
        before, self.lower_bound = self.lower_bound, max(self.lower_bound, self.dual.dual())
        moved = self.lower_bound - before > _NOTHING * abs(self.lower_bound)
        if look or not moved:
            self.look()
        return moved

    def look(self) -> None:
        """Find the objective at the present weights and at their average; keep the best."""
        w = self.dual.weights()
        for point in (w, self._average) if self.averaged and self.passes else (w,):
            J = self.dual.objective(point)
            if self.objective > J:
                self.objective, self.weights = J, point.copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that later passes depend on, but the dual point."""
        numbers = [self.objective, self.lower_bound, self._share, self.passes]
        return {
            "best": self.weights, "average": self._average, "numbers": np.array(numbers),
        }  # fmt: skip

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        check_range(state["numbers"][2:3], 0, np.inf, "the share of the average")
        check_range(state["numbers"][3:], 0, MAX_COUNT, "passes")
        self.weights, self._average = np.array(state["best"]), np.array(state["average"])
        self.objective, self.lower_bound, self._share, passes = state["numbers"].tolist()
        self.passes = int(passes)


def run_frank_wolfe(
    state: FrankWolfeState,
    rng: np.random.Generator,
    *,
    max_passes: int = 100,
    tol: float = 1e-3,
    gap_every: int = 10,
    averaged: bool = True,
    report: Callable[[PassRecord], None] | None = None,
) -> Solution:
    """Sweep over all samples, in a random order each time, until the gap is small.

    Parameters
    ----------
    state : FrankWolfeState
        The problem; it is changed.
    rng : numpy.random.Generator
        Source of the orders.
    max_passes : int
        Most passes, at least 1.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    gap_every : int
        Passes between looks at the objective, which cost as much as one or two passes.
    averaged : bool
        Look at the average of the weights, too.
    report : function, optional
        Called with the record of each pass.

    An interrupt (Ctrl-C) ends the run with the best weights so far and the reason "interrupted".
    """
    run = FrankWolfeRun(state, rng, averaged=averaged)
    records: list[PassRecord] = []
    reason = "max_passes"
    try:
        for number in range(1, max_passes + 1):
            clock = time.perf_counter()
            look = number == max_passes or number % gap_every == 0
            moved = run.sweep(look)
            seconds = time.perf_counter() - clock
            records.append(PassRecord(number, run.objective, None, None, seconds, run.lower_bound))
            if report is not None:
                report(records[-1])
            if (look or not moved) and run.gap <= tol * abs(run.objective):
                reason = "gap"
                break
            if not moved:
                reason = "no progress"
                break
    except KeyboardInterrupt:
        reason = "interrupted"
        run.look()
    return Solution(
        run.weights, run.objective, run.gap, reason, state.exact, records, run.lower_bound
    )


Slope = Any  # dense (D,), or a pair of indices and values


@takes(
    oracle=function, n_samples=whole(0), n_weights=whole(0), l2=number(above=0),
    max_passes=whole(1), tol=number(at_least=0), gap_every=whole(1), averaged=flag,
    seed=nothing | seed, report=nothing | function,
)  # fmt: skip
def minimise_frank_wolfe(
    oracle: Callable[[int, Float64s], tuple[Slope, float] | tuple[Slope, float, float]],
    n_samples: int,
    n_weights: int,
    *,
    l2: float,
    sample_weight: Float64s | None = None,
    max_passes: int = 100,
    tol: float = 1e-3,
    gap_every: int = 10,
    averaged: bool = True,
    seed: int | None = None,
    report: Callable[[PassRecord], None] | None = None,
) -> Solution:
    """Minimise a sum of structured hinge losses and l2 ||w||^2.

    Parameters
    ----------
    oracle : function of a sample's number and w
        Finds a labelling y that maximises loss(y) - <w, psi(y)> and returns psi(y), the features of
        the gold labelling less those of y, as an array (D,) or as a pair of distinct indices and
        values; then loss(y); then, if y need not be the best, an upper bound of the maximum.
    n_samples, n_weights : int
        Numbers of samples and of weights D.
    l2 : float
        Factor of ||w||^2, positive.
    sample_weight : float64, shape (n_samples,), optional
        Weight of each sample's loss, not negative.
    max_passes, tol, gap_every, averaged, report
        As for :func:`run_frank_wolfe`.
    seed : int, optional
        Seed of the orders of visiting.

    Returns
    -------
    Solution
        With a :class:`~trellis.solvers.PassRecord` for each pass.

    Raises
    ------
    DataError
        If a parameter is out of its range, or the oracle's answers do not fit.

    Examples
    --------
    Multi-class classification of points in the plane, each with a constant beside it:

    >>> x = np.array([[2.0, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1], [-1, -1, 1], [-2, -2, 1]])
    >>> gold = np.array([0, 0, 1, 1, 2, 2])
    >>> def oracle(i, w):
    ...     scores = w.reshape(3, 3) @ x[i] + (np.arange(3) != gold[i])
    ...     y = scores.argmax()
    ...     psi = np.zeros((3, 3))
    ...     psi[gold[i]] += x[i]
    ...     psi[y] -= x[i]
    ...     return psi.ravel(), float(y != gold[i])
    >>> result = minimise_frank_wolfe(oracle, 6, 9, l2=0.01, seed=0, max_passes=500)
    >>> result.stop_reason, (x @ result.weights.reshape(3, 3).T).argmax(1).tolist()
    ('gap', [0, 0, 1, 1, 2, 2])
    """
    state = SparseDual(oracle, sample_weights(sample_weight, n_samples), n_weights, l2)
    return run_frank_wolfe(
        state, np.random.default_rng(seed), max_passes=max_passes, tol=tol, gap_every=gap_every,
        averaged=averaged, report=report,
    )  # fmt: skip


class SparseDual:
    """A dual point as the parts w_i and l_i of all samples, w_i being sparse.

    Parameters
    ----------
    oracle, n_weights, l2
        As for :func:`minimise_frank_wolfe`.
    weight : float64, shape (n,)
        Weight of each sample.
    """

    def __init__(self, oracle: Any, weight: Float64s, n_weights: int, l2: float) -> None:
        self._oracle = oracle
        self._weight = weight
        self._l2 = l2
        self._w = np.zeros(n_weights)
        none = (np.zeros(0, np.int64), np.zeros(0))
        self._parts: list[tuple[Int64s, Float64s]] = [none] * len(weight)
        self._losses = np.zeros(len(weight))
        self.exact = True

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self._weight)

    def sweep(self, order: Int64s) -> None:
        """Visit samples in this order."""
        scale = 2 * self._l2
        for i in order:
            c = self._weight[i]
            if c == 0:
                continue
            index, psi, loss, _ = self._ask(int(i), self._w)
            # The direction w_s - w_i, on the features of both.
            old_index, old = self._parts[i]
            both, place = np.unique(np.concatenate([old_index, index]), return_inverse=True)
            n = len(old_index)
            part, corner = np.zeros(len(both)), np.zeros(len(both))
            part[place[:n]] = old
            corner[place[n:]] = psi * (c / scale)
            move = corner - part
            gain = c * loss - self._losses[i] - scale * float(move @ self._w[both])
            curve = scale * float(move @ move)
            if gain <= 0:
                continue
            step = 1.0 if gain >= curve else gain / curve
            self._w[both] += step * move
            self._parts[i] = (both, part + step * move)
            self._losses[i] += step * (c * loss - self._losses[i])

    def dual(self) -> float:
        """Value of the dual."""
        return float(self._losses.sum() - self._l2 * (self._w @ self._w))

    def weights(self) -> Float64s:
        """The weights of the dual point, valid until the next sweep."""
        return self._w

    def objective(self, w: Float64s) -> float:
        """J(w), or an upper bound if the oracle is not exact."""
        total = self._l2 * float(w @ w)
        for i in np.flatnonzero(self._weight):
            _, _, _, upper = self._ask(int(i), w)
            total += float(self._weight[i]) * upper
        return total

    def _ask(self, i: int, w: Float64s) -> tuple[Int64s, Float64s, float, float]:
        """Call the oracle: indices and values of psi, loss and (a bound of) the maximum."""
        index, psi, loss, bound = as_answer(self._oracle(i, w), w, i)
        value = loss - float(psi @ w[index])
        upper = value if bound is None else bound
        if upper < value - 1e-9 * max(1.0, abs(value)):
            raise DataError(
                f"sample {i}: the oracle's bound {upper} is below the value {value} of its "
                "labelling"
            )
        self.exact = self.exact and upper - value <= 1e-9 * max(1.0, abs(value))
        return index, psi, loss, upper
