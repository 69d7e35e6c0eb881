r"""The bundle method for regularised risk minimisation (BMRM; Teo et al. 2010), L2 or L1.

.. math::

    \min_w \; J(w) = \Omega(w) + \langle v, w\rangle + R(w), \qquad
    \Omega(w) = \lambda \lVert w\rVert^2 \;\text{ or }\; \lambda \lVert w\rVert_1,

R being convex and known through an oracle. Each call at a point :math:`w_t` gives a plane that lies
below R everywhere, :math:`R(w) \ge \langle a_t, w\rangle + b_t`; the next point minimises
:math:`J_t`, which is J with R replaced by the maximum of the planes so far (the *master problem*).
Then :math:`J_t(w_t) \le \min J \le \min_{i \le t} J(w_i)`, and the gap

.. math:: \varepsilon_t = \min_{i \le t} J(w_i) - J_t(w_t)

bounds what is left to gain. Note that :math:`\lambda` multiplies :math:`\lVert w\rVert^2` without a
factor 1/2 and R is usually a sum of losses, as everywhere in Trellis.

**L2.** With planes as the rows of A, :math:`w = -(A^\top\alpha + v) / 2\lambda`, where
:math:`\alpha` minimises, over the simplex,

.. math::

    \tfrac12 \alpha^\top \frac{A A^\top}{2\lambda} \alpha
    - \Bigl(b - \frac{A v}{2\lambda}\Bigr)^\top \alpha .

**L1.** The master problem is a linear program in :math:`w = u - v', u, v' \ge 0` (HiGHS). Without a
quadratic term its solutions jump about, and there is no bound on the number of iterations: it is
for models of up to some hundreds of weights.

**Where to ask.** The oracle is asked not at the solution :math:`w_t` of the master problem, but at
a point a part (``step``) of the way to it from the best point so far (Ben-Ameur & Neto 2007), and
at the solution itself as soon as such a point brings nothing new. The bounds hold wherever it is
asked. A step of 1 is the plain method, which needs two to three times as many calls.

**A floor.** Losses are not negative: ``floor=0`` adds the plane R >= 0, so that
:math:`\mathbf 1^\top\alpha \le 1`.

**Limited memory** (Do & Artières 2012). With more than ``memory`` planes, those that are not in use
go first; then older ones are replaced by one, :math:`(A^\top\alpha, b^\top\alpha)`, which is
valid, too, and keeps the lower bound from falling.

**Inexact oracles.** A plane has to lie below the risk that is minimised. There are two ways.

- A relaxation, such as max over the local polytope in place of labellings, defines another convex
  risk, at least as large as R, that is then minimised exactly: return its value and its
  subgradient, taken from the (fractional) solution of the relaxation.
- With an upper bound but only a labelling at hand, the labelling's plane is valid for R itself,
  while the value is known only between the two: return a :class:`Cut` with both. The upper bounds
  enter min J and the planes :math:`J_t`, so the gap stays true but need not close. ``exact`` in the
  result says which it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.problems.oracle import Cut
from trellis.solvers.simplex_qp import solve_simplex_qp

__all__ = ["Bundle", "BundleRecord", "BundleResult", "Cut", "minimise_bundle"]

Float64s = NDArray[np.float64]

# A plane that lies higher than the model by less than this, relatively, brings nothing.
_NOTHING = 1e-12


Risk = Callable[[Float64s], "Cut | tuple[float, Float64s]"]


class Bundle:
    """Planes below a risk: R(w) >= slopes @ w + offsets, row by row.

    They stay valid as long as the risk is the same, whatever the regulariser; a bundle can be given
    to another run.

    Parameters
    ----------
    n_weights : int
        Number of weights D.

    Examples
    --------
    >>> bundle = Bundle(1)
    >>> for w in (-1.0, 2.0):  # tangents of w ** 2
    ...     bundle.add(np.array([2 * w]), -(w**2))
    >>> bundle.slopes.ravel().tolist(), bundle.height(np.array([1.0]))
    ([-2.0, 4.0], 0.0)
    """

    def __init__(self, n_weights: int) -> None:
        self._slopes = np.zeros((4, n_weights))
        self._offsets = np.zeros(4)
        self._gram = np.zeros((4, 4))
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        return self._slopes.shape[1]

    @property
    def slopes(self) -> Float64s:
        """Slopes of the planes (T, D)."""
        return self._slopes[: self._n]

    @property
    def offsets(self) -> Float64s:
        """Heights of the planes at w = 0 (T,)."""
        return self._offsets[: self._n]

    @property
    def gram(self) -> Float64s:
        """Inner products of the slopes (T, T)."""
        return self._gram[: self._n, : self._n]

    def add(self, slope: Float64s, offset: float) -> None:
        """Add a plane."""
        n = self._n
        if n == len(self._offsets):
            self._slopes = np.concatenate([self._slopes, np.zeros_like(self._slopes)])
            self._offsets = np.concatenate([self._offsets, np.zeros(n)])
            self._gram = np.pad(self._gram, ((0, n), (0, n)))
        self._slopes[n] = slope
        self._offsets[n] = offset
        self._n += 1
        row = self.slopes @ self._slopes[n]
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = row

    def height(self, w: Float64s) -> float:
        """Return the maximum of the planes at w; -inf if there are none."""
        return float((self.slopes @ w + self.offsets).max(initial=-np.inf))

    def compress(self, alpha: Float64s, memory: int, floor: float | None = None) -> Float64s:
        """Reduce the planes to ``memory``: first to go are the oldest whose ``alpha`` is zero.

        If more are in use, the last ``memory - 1`` of these stay, and the mean of all by ``alpha``
        comes before them; what ``alpha`` lacks to 1 is the share of the plane of height ``floor``.
        Returns the new ``alpha``, at which the master problem has the value that it had before.
        """
        used = np.flatnonzero(alpha > 0)
        if len(used) <= memory:
            spare = np.flatnonzero(alpha <= 0)
            kept = np.sort(np.append(used, spare[len(spare) - (memory - len(used)) :]))
            self._keep(kept)
            return alpha[kept]
        rest = 0.0 if floor is None else floor * (1 - alpha.sum())
        mean, offset = alpha @ self.slopes, float(alpha @ self.offsets) + rest
        kept = used[len(used) - memory + 1 :]
        self._keep(np.append(kept[:1], kept))  # the first is overwritten
        self._slopes[0] = mean
        self._offsets[0] = offset
        self._gram[0, : self._n] = self._gram[: self._n, 0] = self.slopes @ mean
        first: Float64s = np.eye(1, self._n)[0]
        return first

    def _keep(self, rows: NDArray[np.int64]) -> None:
        n = self._n = len(rows)
        self._slopes[:n] = self._slopes[rows]
        self._offsets[:n] = self._offsets[rows]
        self._gram[:n, :n] = self._gram[np.ix_(rows, rows)]


@dataclass(frozen=True)
class BundleRecord:
    """What one iteration brought.

    Parameters
    ----------
    number : int
        1 for the first.
    objective : float
        Least J(w) met so far (its upper bound, if the oracle is not exact).
    lower_bound : float
        min J is at least this.
    gap : float
        The difference.
    seconds : float
        Seconds of this iteration.
    """

    number: int
    objective: float
    lower_bound: float
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class BundleResult:
    """Outcome of a run.

    Parameters
    ----------
    weights : float64, shape (D,)
        The best point met.
    objective, lower_bound, gap : float
        J there (its upper bound, if the oracle is not exact), a lower bound on min J, and the
        difference.
    stop_reason : str
        "gap", "max_iterations" or "no progress": the oracle has nothing to add at the solution of
        the master problem, as happens when it is not exact or the gap is down to rounding errors.
    exact : bool
        Whether the oracle gave the value of the risk each time.
    records : list of BundleRecord
        One for each iteration.
    bundle : Bundle
        The planes.
    """

    weights: Float64s
    objective: float
    lower_bound: float
    gap: float
    stop_reason: str
    exact: bool
    records: list[BundleRecord]
    bundle: Bundle


def minimise_bundle(
    risk: Risk,
    n_weights: int,
    *,
    l2: float = 0.0,
    l1: float = 0.0,
    linear: Float64s | None = None,
    floor: float | None = None,
    box: float | None = None,
    start: Float64s | None = None,
    bundle: Bundle | None = None,
    memory: int | None = None,
    tol: float = 1e-3,
    max_iterations: int = 1000,
    step: float = 0.2,
    report: Callable[[BundleRecord], None] | None = None,
) -> BundleResult:
    """Minimise a regularised convex risk by cutting planes.

    Parameters
    ----------
    risk : function of float64 (D,)
        Returns the value and a subgradient of R, or a :class:`Cut`.
    n_weights : int
        Number of weights D.
    l2, l1 : float
        Factor of ||w||^2, or of ||w||_1; one of them is positive, the other 0.
    linear : float64, shape (D,), optional
        The vector v of a linear term.
    floor : float, optional
        A number that R is never below: 0 for losses.
    box : float, optional
        With L1: only weights of at most this size are considered.
    start : float64, shape (D,), optional
        First point; zero by default, or where the planes of ``bundle`` point to.
    bundle : Bundle, optional
        Planes of R known from an earlier run; it is changed.
    memory : int, optional
        Most planes kept, at least 2; all by default.
    tol : float
        Stop when the gap is at most ``tol`` times the best objective.
    max_iterations : int
        Most calls of the oracle.
    step : float
        Part of the way to the solution of the master problem, in (0, 1].
    report : function, optional
        Called with the record of each iteration.

    Returns
    -------
    BundleResult
        After an interrupt (Ctrl-C) the best so far, with the reason "interrupted".

    Raises
    ------
    DataError
        If a parameter is out of its range, or a risk is not finite.

    Examples
    --------
    The median of three numbers, drawn towards zero:

    >>> x = np.array([1.0, 2.0, 9.0])
    >>> def risk(w):
    ...     return float(abs(w - x).sum()), np.array([np.sign(w - x).sum()])
    >>> found = minimise_bundle(risk, 1, l2=0.1, floor=0.0, tol=1e-9)
    >>> found.weights.round(6).tolist(), found.stop_reason, round(found.objective, 6)
    ([2.0], 'gap', 8.4)
    """
    v = np.zeros(n_weights) if linear is None else np.asarray(linear, np.float64)
    limit = np.inf if box is None else box
    _check(n_weights, l2, l1, v, floor, limit, memory, bundle, step)
    planes = Bundle(n_weights) if bundle is None else bundle
    known = len(planes) > 0
    w = np.zeros(n_weights) if start is None else np.array(start, np.float64)
    if w.shape != (n_weights,):
        raise DataError(f"start must have shape ({n_weights},), got {w.shape}")
    alpha = np.zeros(len(planes))
    if known and start is None:
        master = _solve(planes, alpha, l2, l1, v, floor, limit, np.inf)
        w, alpha = master.weights, master.alpha
    best, best_w, lower = np.inf, w, -np.inf
    target, model = w, -np.inf  # solution of the last master problem, height of the planes there
    exact = True
    records: list[BundleRecord] = []
    reason = "max_iterations"
    try:
        for number in range(1, max_iterations + 1):
            clock = time.perf_counter()
            cut = _cut(risk(w), w)
            exact = exact and cut.upper - cut.lower <= 1e-9 * max(1.0, abs(cut.upper))
            J = l2 * float(w @ w) + l1 * float(np.abs(w).sum()) + float(v @ w) + cut.upper
            if best > J:
                best, best_w = J, w
            offset = cut.lower - float(cut.slope @ w)
            rise = float(cut.slope @ target) + offset - model
            planes.add(cut.slope, offset)
            alpha = np.append(alpha, 0.0)
            master = _solve(planes, alpha, l2, l1, v, floor, limit, best)
            alpha, lower = master.alpha, max(lower, master.value)
            gap = max(0.0, best - lower)
            record = BundleRecord(number, best, lower, gap, time.perf_counter() - clock)
            records.append(record)
            if report is not None:
                report(record)
            if gap <= tol * abs(best):
                reason = "gap"
                break
            nothing_new = np.isfinite(model) and rise <= _NOTHING * max(1.0, abs(model))
            if nothing_new and w is target:
                reason = "no progress"
                break
            target = master.weights
            model = max(planes.height(target), -np.inf if floor is None else floor)
            w = target if nothing_new or step == 1 else best_w + step * (target - best_w)
            if memory is not None and len(planes) > memory:
                alpha = planes.compress(alpha, memory, floor)
    except KeyboardInterrupt:
        reason = "interrupted"
    return BundleResult(best_w, best, lower, max(0.0, best - lower), reason, exact, records, planes)


@dataclass(frozen=True, eq=False)
class _Master:
    weights: Float64s
    alpha: Float64s
    value: float  # a lower bound on the master problem and so on min J


def _solve(
    planes: Bundle,
    start: Float64s,
    l2: float,
    l1: float,
    v: Float64s,
    floor: float | None,
    box: float,
    best: float,
) -> _Master:
    if l1:
        return _solve_l1(planes, l1, v, floor, box, best)
    height = 0.0 if floor is None else floor
    b = planes.offsets - height - planes.slopes @ v / (2 * l2)
    found = solve_simplex_qp(
        planes.gram / (2 * l2), b, start=start, at_most=floor is not None, tol=1e-13
    )
    weights = -(found.alpha @ planes.slopes + v) / (2 * l2)
    return _Master(weights, found.alpha, height - found.value - float(v @ v) / (4 * l2))


def _solve_l1(
    planes: Bundle, l1: float, v: Float64s, floor: float | None, box: float, best: float
) -> _Master:
    import scipy.optimize

    n = planes.n_weights
    A = np.hstack([planes.slopes, -planes.slopes, -np.ones((len(planes), 1))])
    cost = np.concatenate([l1 + v, l1 - v, [1.0]])
    bounds: Any = np.zeros((2 * n + 1, 2))
    bounds[:, 1] = box
    bounds[-1] = -np.inf if floor is None else floor, np.inf
    found = scipy.optimize.linprog(cost, A, -planes.offsets, bounds=bounds, method="highs")
    if found.x is None:
        raise DataError(f"the linear program of the bundle method failed: {found.message}")
    weights = found.x[:n] - found.x[n : 2 * n]
    # A bound that holds whatever the tolerances of the linear program: the multipliers, made
    # feasible, and what the rounding leaves beyond the reach of L1, times the room there is.
    alpha = np.maximum(-found.ineqlin.marginals, 0.0)
    alpha /= max(1.0, alpha.sum()) if floor is not None else alpha.sum()
    excess = np.maximum(np.abs(alpha @ planes.slopes + v) - l1, 0.0)
    height = 0.0 if floor is None else floor
    value = float(alpha @ planes.offsets) + height * (1 - float(alpha.sum()))
    room = box * excess.sum() if np.isfinite(box) else np.inf
    reach = l1 - np.abs(v).max(initial=0.0)
    if floor is not None and reach > 0 and np.isfinite(best):
        room = min(room, (best - floor) / reach * excess.max(initial=0.0))
    return _Master(weights, alpha, value - (room if excess.any() else 0.0))


def _cut(answer: Any, w: Float64s) -> Cut:
    cut = answer if isinstance(answer, Cut) else Cut(answer[0], answer[0], answer[1])
    slope = np.asarray(cut.slope, np.float64)
    if slope.shape != w.shape:
        raise DataError(f"the slope of the risk must have shape {w.shape}, got {slope.shape}")
    if not (np.isfinite(cut.upper) and np.isfinite(cut.lower) and np.isfinite(slope).all()):
        raise DataError("the risk or its slope is not finite")
    if cut.lower > cut.upper + 1e-9 * max(1.0, abs(cut.upper)):
        raise DataError(f"the plane ({cut.lower}) lies above the bound of the risk ({cut.upper})")
    return Cut(float(cut.upper), float(cut.lower), slope)


def _check(
    n_weights: int,
    l2: float,
    l1: float,
    v: Float64s,
    floor: float | None,
    box: float,
    memory: int | None,
    bundle: Bundle | None,
    step: float,
) -> None:
    if not (0 <= l2 < np.inf and 0 <= l1 < np.inf and (l2 > 0) != (l1 > 0)):
        raise DataError(
            f"one of l2 and l1 must be positive and the other 0, got l2={l2!r} and l1={l1!r}"
        )
    if v.shape != (n_weights,):
        raise DataError(f"linear must have shape ({n_weights},), got {v.shape}")
    if bundle is not None and bundle.n_weights != n_weights:
        raise DataError(f"the bundle is one of {bundle.n_weights} weights, not {n_weights}")
    if memory is not None and memory < 2:
        raise DataError(f"memory must be None or at least 2, got {memory!r}")
    if not 0 < step <= 1:
        raise DataError(f"step must lie in (0, 1], got {step!r}")
    if not box > 0:
        raise DataError(f"box must be positive, got {box!r}")
    bounded = floor is not None and np.abs(v).max(initial=0.0) < l1
    if l1 and not bounded and not np.isfinite(box):
        raise DataError(
            "with l1 the first planes leave the problem unbounded: give a floor of the risk "
            "(0 for losses) and a linear term within the reach of l1, or a box"
        )
