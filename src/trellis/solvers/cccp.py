r"""The concave-convex procedure (Lou et al., Algorithm 1.1), with cutting planes or another solver.

.. math:: \min_w \; J(w) = \Omega(w) + P(w) - R(w), \qquad
    \Omega(w) = \lambda \lVert w\rVert^2 \;\text{ or }\; \lambda \lVert w\rVert_1,

the penalty P and the reward R being convex and known through oracles. Losses of partly annotated
outputs are of this kind: P and R are sums of maxima over two sets of outputs. A tangent of R at
:math:`w_t`, of slope :math:`-v_t`, lies below R; with it in place of R the objective becomes the
convex surrogate

.. math:: \tilde J_t(w) = \Omega(w) + P(w) + \langle v_t, w\rangle + c_t \;\ge\; J(w), \qquad
    \tilde J_t(w_t) = J(w_t),

which is minimised, to a precision, beginning at :math:`w_t`. The best point met is
:math:`w_{t+1}`, and so :math:`J(w_{t+1}) \le \tilde J_t(w_{t+1}) \le J(w_t)`: the objective never
rises, however coarse the precision. Where no step is left, w is a stationary point of J, which need
not be its minimum.

**The inner solver** is a :class:`Surrogate`, which gives tangents of R and minimises what comes of
them. Any solver of convex problems will do; :class:`PlaneSurrogate` has cutting planes, to which
recycling and the free plane (below) belong.

**Bounds recycling.** Planes lie below P, which is the same in all rounds; only the linear term
changes. They are kept from round to round. The value of P at :math:`w_t` is known, too, so that a
round asks the oracle only where something new can be learned: one whose first point is good enough
already asks nothing.

**Adaptive precision.** Round t is solved to a relative gap of
:math:`\max(\varepsilon_0 f^t, \varepsilon)`: there is no point in a precise solution of a
surrogate that is soon to be replaced. As J may have several stationary points, the precision can
also decide which of them is found.

**The reward lies below.** Where :math:`P \ge R` everywhere, as with all losses that cannot be
negative (:math:`[p - r]_+ = \max(p, r) - r`), the tangent of R is a plane of P as well, for free.
It is what the floor of zero is to a hinge loss: with it :math:`\tilde J_t \ge \Omega` from
the first plane on.

Neither recycling nor adaptive precision is the plain procedure of Yu & Joachims (2009), with the
bundle method of Teo et al. (2010) if ``step`` is 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, function, has, nothing, number, takes, whole
from trellis.errors import DataError
from trellis.problems.cut import Cut, Risk, as_cut
from trellis.solvers.bundle import Bundle
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.solution import Solution

__all__ = ["CCCPRecord", "PlaneSurrogate", "Surrogate", "Tangent", "minimise_cccp"]


@dataclass(frozen=True, eq=False)
class Tangent:
    """A plane below the reward.

    Parameters
    ----------
    slope : float64, of the shape of w
        Slope.
    offset : float
        Height at w = 0.
    exact : bool
        Whether it touches the reward at the point that it was made for.
    """

    slope: Float64s
    offset: float
    exact: bool = True

    def height(self, w: Float64s) -> float:
        """Height at w."""
        return float(np.vdot(self.slope, w)) + self.offset


class Surrogate(Protocol):
    """A regularised difference of convex functions, as the procedure sees it.

    ``n_planes`` counts the calls of the oracle of the penalty, and ``exact`` says whether it gave
    the value each time. Tangents may be of any kind that has ``height(w)`` and ``exact``.
    """

    n_planes: int
    exact: bool

    def tangent(self, w: Float64s) -> Any:
        """Return a tangent of the reward at w."""
        ...

    def begin(self, w: Float64s, tangent: Any) -> float:
        """Begin a run at w, and return the surrogate there."""
        ...

    def minimise(self, w: Float64s, tangent: Any, objective: float, tol: float) -> Solution:
        """Minimise the surrogate from w, where it is ``objective``, to a gap of ``tol`` times it.

        The objective is that of the surrogate, no more than at w if the weights are not w; the
        reasons "gap" and "no progress" mean that there is no more to gain.
        """
        ...


class PlaneSurrogate:
    """Penalty and reward known by oracles, and cutting planes (:mod:`trellis.solvers.planes`).

    Parameters
    ----------
    penalty, reward : functions of float64 (D,)
        P and R: each returns the value and a subgradient, or a :class:`~trellis.problems.Cut`.
    l2, l1, memory, step
        As for :func:`~trellis.solvers.minimise_bundle`.
    reward_below : bool
        P(w) >= R(w) for every w, as with losses that are never negative.
    recycle : bool
        Keep the planes of the penalty from round to round.
    box : float, optional
        With L1: only weights of at most this size are considered. It can be left out with
        ``reward_below``, from which there follows one.
    max_iterations : int
        Most calls of the penalty in one round.

    Attributes
    ----------
    bundle : Bundle
        Planes of the penalty (those of the last round, if they are not recycled).
    """

    @takes(
        penalty=function, reward=function, l2=number(at_least=0), l1=number(at_least=0),
        reward_below=flag, recycle=flag, box=nothing | number(above=0), memory=nothing | whole(2),
        step=number(above=0, at_most=1), max_iterations=whole(1),
    )  # fmt: skip
    def __init__(
        self,
        penalty: Risk,
        reward: Risk,
        *,
        l2: float = 0.0,
        l1: float = 0.0,
        reward_below: bool = False,
        recycle: bool = True,
        box: float | None = None,
        memory: int | None = None,
        step: float = 0.2,
        max_iterations: int = 1000,
    ) -> None:
        if (l2 > 0) == (l1 > 0):
            raise DataError(
                f"one of l2 and l1 must be positive and the other 0, got l2={l2!r} and l1={l1!r}"
            )
        if l1 and box is None and not reward_below:
            raise DataError(
                "with l1 the surrogate is unbounded until enough planes are known: give a box, or "
                "reward_below=True if the loss is never negative"
            )
        self.l2, self.l1, self.box = l2, l1, box
        self.reward_below, self.recycle = reward_below, recycle
        self.memory, self.step, self.max_iterations = memory, step, max_iterations
        self.n_planes, self.exact = 0, True
        self.bundle = Bundle(0)
        self._penalty, self._reward = penalty, reward
        self._known: Cut | None = None  # what is known of the first point of a round

    def _ask(self, w: Float64s) -> Cut:
        if self._known is not None:
            known, self._known = self._known, None
            return known
        cut = as_cut(self._penalty(w), w)
        self.n_planes += 1
        self.exact = self.exact and cut.exact
        return cut

    def _regulariser(self, w: Float64s) -> float:
        return self.l2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    def tangent(self, w: Float64s) -> Tangent:
        """Return a plane below the reward that touches it at w, if the oracle is exact."""
        cut = as_cut(self._reward(w), w)
        return Tangent(cut.slope, cut.lower - float(cut.slope @ w), cut.exact)

    def begin(self, w: Float64s, tangent: Tangent) -> float:
        """Begin a run at w, and return the surrogate there."""
        self.bundle = Bundle(len(w))
        self.n_planes, self.exact, self._known = 0, True, None
        known = self._known = self._ask(w)
        return self._regulariser(w) + known.upper - tangent.height(w)

    def minimise(self, w: Float64s, tangent: Tangent, objective: float, tol: float) -> Solution:
        """Minimise the surrogate from w, where it is ``objective``, to a relative gap."""
        if not self.recycle:
            self.bundle = Bundle(len(w))
        if self.reward_below:
            self.bundle.add(tangent.slope, tangent.offset)
        box = self.box
        if self.l1 and self.reward_below:  # no better point is farther than J(w) / l1
            box = min(np.inf if box is None else box, max(objective / self.l1, 1e-9))
        result = minimise_bundle(
            self._ask, len(w), l2=self.l2, l1=self.l1, linear=-tangent.slope, box=box, start=w,
            bundle=self.bundle, memory=self.memory, tol=tol,
            max_iterations=self.max_iterations + (self._known is not None), step=self.step,
        )  # fmt: skip
        if self.recycle and result.stop_reason != "interrupted":
            w = result.weights
            value = result.objective - self._regulariser(w) + float(tangent.slope @ w)
            self._known = self._as_asked(w, value)
        return replace(result, objective=result.objective - tangent.offset)

    def _as_asked(self, w: Float64s, value: float) -> Cut:
        """What the planes and the value of the penalty at w say of it: as the oracle would."""
        heights = self.bundle.heights(w[None])
        highest = int(np.argmax(heights))
        lower = min(float(heights[highest]), value)
        return Cut(value, lower, self.bundle.slopes[highest].copy())


@dataclass(frozen=True)
class CCCPRecord:
    """What one round brought.

    Parameters
    ----------
    number : int
        1 for the first.
    objective : float
        J(w) after the round.
    gap : float
        How far the surrogate may be from its minimum.
    tol : float
        Relative gap that was asked for.
    n_planes : int
        Calls of the oracle of the penalty in this round.
    seconds : float
        Seconds of this round.
    """

    number: int
    objective: float
    gap: float
    tol: float
    n_planes: int
    seconds: float


@takes(
    surrogate=has("tangent", "begin", "minimise"), first_tol=number(at_least=0),
    tol=number(at_least=0), factor=number(above=0, below=1), eta=number(at_least=0, infinite=True),
    max_rounds=whole(1), report=nothing | function,
)  # fmt: skip
def minimise_cccp(
    surrogate: Surrogate,
    start: Float64s,
    *,
    first_tol: float = 0.3,
    tol: float = 1e-3,
    factor: float = 0.3,
    eta: float = 1e-3,
    max_rounds: int = 50,
    report: Callable[[CCCPRecord], None] | None = None,
) -> Solution:
    """Minimise a regularised difference of two convex functions.

    Parameters
    ----------
    surrogate : Surrogate
        The functions and the solver of the convex problems: :class:`PlaneSurrogate`, or another.
    start : float64, shape (D,)
        First point. J may have several stationary points: this decides.
    first_tol, tol, factor : float
        Precision of the first round, and of the last ones; it is multiplied by ``factor`` after
        each round. A round ends when the gap of the surrogate is at most its precision times the
        surrogate. With ``first_tol=tol`` all rounds have the same.
    eta : float
        Stop when a round of precision ``tol`` lowers the objective by at most ``eta`` times it.
    max_rounds : int
        Most rounds.
    report : function, optional
        Called with the record of each round.

    Returns
    -------
    Solution
        With a :class:`CCCPRecord` for each round, and without a gap. After an interrupt (Ctrl-C)
        the best so far, with the reason "interrupted".

    Raises
    ------
    DataError
        If a parameter is out of its range, or a penalty or reward is not finite.

    Examples
    --------
    A loss that grows no further than 2, which lets the outlier 9 go:

    >>> x = np.array([1.0, 1.2, 1.1, 9.0])
    >>> def penalty(w):  # |w - x|, and then beyond a distance of 2 ...
    ...     return float(abs(w - x).sum()), np.array([np.sign(w - x).sum()])
    >>> def reward(w):  # ... the reward takes back what is more
    ...     far = abs(w - x) > 2
    ...     return float((abs(w - x) - 2)[far].sum()), np.array([np.sign(w - x)[far].sum()])
    >>> surrogate = PlaneSurrogate(penalty, reward, l2=0.01, reward_below=True)
    >>> result = minimise_cccp(surrogate, np.zeros(1), tol=1e-6, eta=1e-6)
    >>> result.weights.round(3).tolist(), round(result.objective, 3), result.stop_reason
    ([1.1], 2.212, 'eta')
    """
    if tol > first_tol:
        raise DataError(f"0 <= tol <= first_tol is needed, got {tol!r} and {first_tol!r}")
    w = as_array(start, np.float64, "start", finite=True).copy()
    records: list[CCCPRecord] = []
    best, exact, n_planes, reason = np.inf, True, 0, "max_rounds"
    try:
        tangent = surrogate.tangent(w)
        exact = tangent.exact
        best = surrogate.begin(w, tangent)
        for number in range(1, max_rounds + 1):
            clock = time.perf_counter()
            precision = max(first_tol * factor ** (number - 1), tol)
            result = surrogate.minimise(w, tangent, best, precision)
            before, moved = best, not np.array_equal(result.weights, w)
            if moved:
                w, best = result.weights, result.objective
            if result.stop_reason == "interrupted":
                reason = "interrupted"
                break
            if moved:
                new = surrogate.tangent(w)
                exact = exact and new.exact
                # One as high as the old may still have another slope, from which there is a way
                # on; one that is lower comes of an oracle that is not exact, and is of no use.
                height = tangent.height(w)
                rise = new.height(w) - height
                if rise >= -1e-12 * max(1.0, abs(height)):
                    best, tangent = min(best, best - rise), new
            calls, n_planes = surrogate.n_planes - n_planes, surrogate.n_planes
            seconds = time.perf_counter() - clock
            record = CCCPRecord(number, best, result.gap, precision, calls, seconds)
            records.append(record)
            if report is not None:
                report(record)
            if precision <= tol and before - best <= eta * abs(best):
                done = result.stop_reason in ("gap", "no progress")
                reason = "eta" if done else result.stop_reason
                break
    except KeyboardInterrupt:
        reason = "interrupted"
    exact, n_planes = exact and surrogate.exact, surrogate.n_planes
    return Solution(w, best, np.inf, reason, exact, records, n_planes=n_planes)
