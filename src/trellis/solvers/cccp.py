r"""The concave-convex procedure with cutting planes (Lou et al., Algorithm 1.1), L2 or L1.

.. math:: \min_w \; J(w) = \Omega(w) + P(w) - R(w), \qquad
    \Omega(w) = \lambda \lVert w\rVert^2 \;\text{ or }\; \lambda \lVert w\rVert_1,

the penalty P and the reward R being convex and known through oracles. Losses of partly annotated
outputs are of this kind: P and R are sums of maxima over two sets of outputs. A tangent of R at
:math:`w_t`, of slope :math:`-v_t`, lies below R; with it in place of R the objective becomes the
convex surrogate

.. math:: \tilde J_t(w) = \Omega(w) + P(w) + \langle v_t, w\rangle + c_t \;\ge\; J(w), \qquad
    \tilde J_t(w_t) = J(w_t),

which the bundle method minimises, to a precision, beginning at :math:`w_t`. The best point that it
meets is :math:`w_{t+1}`, and so :math:`J(w_{t+1}) \le \tilde J_t(w_{t+1}) \le J(w_t)`: the
objective never rises, however coarse the precision. Where no step is left, w is a stationary point
of J, which need not be its minimum.

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.problems.cut import Cut, Risk, as_cut
from trellis.solvers.bundle import Bundle
from trellis.solvers.planes import minimise_bundle

__all__ = ["CCCPRecord", "CCCPResult", "minimise_cccp"]

Float64s = NDArray[np.float64]


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


@dataclass(frozen=True, eq=False)
class CCCPResult:
    """Outcome of a run.

    Parameters
    ----------
    weights : float64, shape (D,)
        The best point met.
    objective : float
        J there; an upper bound of it, if an oracle is not exact or the run was interrupted.
    stop_reason : str
        "eta": the objective fell by no more than ``eta`` in a round of full precision;
        "max_iterations": the same, but that precision was not reached; "max_rounds"; "interrupted".
    exact : bool
        Whether the oracles gave the values of penalty and reward each time.
    rounds : list of CCCPRecord
        One for each round.
    n_planes : int
        Calls of the oracle of the penalty in all.
    bundle : Bundle
        Planes of the penalty (those of the last round, if they are not recycled).
    """

    weights: Float64s
    objective: float
    stop_reason: str
    exact: bool
    rounds: list[CCCPRecord]
    n_planes: int
    bundle: Bundle


def minimise_cccp(
    penalty: Risk,
    reward: Risk,
    n_weights: int,
    *,
    l2: float = 0.0,
    l1: float = 0.0,
    start: Float64s | None = None,
    recycle: bool = True,
    adaptive: bool = True,
    reward_below: bool = False,
    first_tol: float = 0.3,
    tol: float = 1e-3,
    factor: float = 0.3,
    eta: float = 1e-3,
    box: float | None = None,
    memory: int | None = None,
    step: float = 0.2,
    max_rounds: int = 50,
    max_iterations: int = 1000,
    report: Callable[[CCCPRecord], None] | None = None,
) -> CCCPResult:
    """Minimise a regularised difference of two convex functions.

    Parameters
    ----------
    penalty, reward : functions of float64 (D,)
        P and R: each returns the value and a subgradient, or a :class:`~trellis.problems.Cut`.
    n_weights : int
        Number of weights D.
    l2, l1 : float
        Factor of ||w||^2, or of ||w||_1; one of them is positive, the other 0.
    start : float64, shape (D,), optional
        First point, zero by default. J may have several stationary points: this decides.
    recycle : bool
        Keep the planes of the penalty from round to round.
    adaptive : bool
        Begin with a precision of ``first_tol`` and multiply it by ``factor`` after each round, down
        to ``tol``; otherwise it is ``tol`` in all rounds.
    reward_below : bool
        P(w) >= R(w) for every w, as with losses that are never negative.
    first_tol, tol, factor : float
        A round ends when the gap of the surrogate is at most its precision times the surrogate.
    eta : float
        Stop when a round of precision ``tol`` lowers the objective by at most ``eta`` times it.
    box : float, optional
        With L1: only weights of at most this size are considered. It can be left out with
        ``reward_below``, from which there follows one.
    memory : int, optional
        Most planes kept, at least 2; all by default.
    step : float
        See :func:`~trellis.solvers.minimise_bundle`.
    max_rounds : int
        Most rounds.
    max_iterations : int
        Most calls of the penalty in one round.
    report : function, optional
        Called with the record of each round.

    Returns
    -------
    CCCPResult
        After an interrupt (Ctrl-C) the best so far, with the reason "interrupted".

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
    >>> found = minimise_cccp(penalty, reward, 1, l2=0.01, reward_below=True, tol=1e-6, eta=1e-6)
    >>> found.weights.round(3).tolist(), round(found.objective, 3), found.stop_reason
    ([1.1], 2.212, 'eta')
    """
    _check(l2, l1, box, reward_below, first_tol, tol, factor, eta, max_rounds, max_iterations)
    w = np.zeros(n_weights) if start is None else np.array(start, np.float64)
    if w.shape != (n_weights,) or not np.isfinite(w).all():
        raise DataError(f"start must be {n_weights} finite numbers")
    asked = _Oracle(penalty)
    planes = Bundle(n_weights)
    records: list[CCCPRecord] = []
    best, exact, reason = np.inf, True, "max_rounds"

    def regulariser(w: Float64s) -> float:
        return l2 * float(w @ w) + l1 * float(np.abs(w).sum())

    try:
        tangent, exact = _tangent(reward, w)
        asked.known = asked(w)
        best = regulariser(w) + asked.known.upper - tangent.height(w)
        calls = 0
        for number in range(1, max_rounds + 1):
            clock = time.perf_counter()
            precision = max(first_tol * factor ** (number - 1), tol) if adaptive else tol
            if not recycle:
                planes = Bundle(n_weights)
            if reward_below:
                planes.add(tangent.slope, tangent.offset)
            found = minimise_bundle(
                asked,
                n_weights,
                l2=l2,
                l1=l1,
                linear=-tangent.slope,
                box=_reach(best, l1, box, reward_below),
                start=w,
                bundle=planes,
                memory=memory,
                tol=precision,
                max_iterations=max_iterations + (asked.known is not None),
                step=step,
            )
            before, moved = best, not np.array_equal(found.weights, w)
            if moved:
                w, best = found.weights, found.objective - tangent.offset
            if found.stop_reason == "interrupted":
                reason = "interrupted"
                break
            if recycle:
                value = found.objective - regulariser(w) + float(tangent.slope @ w)
                asked.known = _known(planes, w, value)
            if moved:
                new, true = _tangent(reward, w)
                exact = exact and true
                # One as high as the old may still have another slope, from which there is a way
                # on; one that is lower comes of an oracle that is not exact, and is of no use.
                rise = new.height(w) - tangent.height(w)
                if rise >= -1e-12 * max(1.0, abs(tangent.height(w))):
                    best, tangent = min(best, best - rise), new
            seconds = time.perf_counter() - clock
            record = CCCPRecord(number, best, found.gap, precision, asked.calls - calls, seconds)
            calls = asked.calls
            records.append(record)
            if report is not None:
                report(record)
            if precision <= tol and before - best <= eta * abs(best):
                out = found.stop_reason == "max_iterations"
                reason = "max_iterations" if out else "eta"
                break
    except KeyboardInterrupt:
        reason = "interrupted"
    exact = exact and asked.exact
    return CCCPResult(w, best, reason, exact, records, asked.calls, planes)


@dataclass(frozen=True, eq=False)
class _Plane:
    slope: Float64s
    offset: float

    def height(self, w: Float64s) -> float:
        return float(self.slope @ w) + self.offset


class _Oracle:
    """The penalty, its calls counted; what is known of the first point of a round is not asked."""

    def __init__(self, penalty: Risk) -> None:
        self.calls = 0
        self.exact = True
        self.known: Cut | None = None
        self._penalty = penalty

    def __call__(self, w: Float64s) -> Cut:
        if self.known is not None:
            known, self.known = self.known, None
            return known
        cut = as_cut(self._penalty(w), w)
        self.calls += 1
        self.exact = self.exact and cut.exact
        return cut


def _tangent(reward: Risk, w: Float64s) -> tuple[_Plane, bool]:
    """Return a plane below the reward, and whether it touches it at w."""
    cut = as_cut(reward(w), w)
    return _Plane(cut.slope, cut.lower - float(cut.slope @ w)), cut.exact


def _known(planes: Bundle, w: Float64s, value: float) -> Cut:
    """What a bundle and the value of the risk at w say of it: as the oracle would."""
    heights = planes.slopes @ w + planes.offsets
    highest = int(np.argmax(heights))
    lower = min(float(heights[highest]), value)
    return Cut(value, lower, planes.slopes[highest].copy())


def _reach(best: float, l1: float, box: float | None, reward_below: bool) -> float | None:
    """Return a bound on the weights: with L1 no better point is farther than J(w) / l1."""
    if not (l1 and reward_below):
        return box
    return min(np.inf if box is None else box, max(best / l1, 1e-9))


def _check(
    l2: float,
    l1: float,
    box: float | None,
    reward_below: bool,
    first_tol: float,
    tol: float,
    factor: float,
    eta: float,
    max_rounds: int,
    max_iterations: int,
) -> None:
    if not (0 <= l2 < np.inf and 0 <= l1 < np.inf and (l2 > 0) != (l1 > 0)):
        raise DataError(
            f"one of l2 and l1 must be positive and the other 0, got l2={l2!r} and l1={l1!r}"
        )
    if l1 and box is None and not reward_below:
        raise DataError(
            "with l1 the surrogate is unbounded until enough planes are known: give a box, or "
            "reward_below=True if the loss is never negative"
        )
    if not 0 <= tol <= first_tol < np.inf:
        raise DataError(f"0 <= tol <= first_tol is needed, got {tol!r} and {first_tol!r}")
    if not 0 < factor < 1:
        raise DataError(f"factor must lie in (0, 1), got {factor!r}")
    if not eta >= 0:
        raise DataError(f"eta must be at least 0, got {eta!r}")
    if max_rounds < 1 or max_iterations < 1:
        raise DataError(
            f"max_rounds and max_iterations must be at least 1, got {max_rounds!r} and "
            f"{max_iterations!r}"
        )
