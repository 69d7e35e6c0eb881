r"""Cutting planes for regularised risks, of one domain or of several (BMRM; Teo et al. 2010).

.. math::

    \min_{w, w_1 \dots w_D} \; J = \lambda \lVert w\rVert^2
    + \rho \sum_d \lVert w_d - w\rVert^2
    + \sum_d \bigl(\langle v_d, w_d\rangle + R_d(w_d)\bigr)

(Lou et al., Eq. 1.9, whose :math:`\lambda/2` and :math:`\rho/2` are :math:`\lambda` and
:math:`\rho` here, as everywhere in Trellis). Domain d has weights of its own, :math:`w_d`, drawn
towards the shared ones by :math:`\rho`. With one domain and :math:`\rho = \infty` that is
:math:`\lambda \lVert w\rVert^2 + \langle v, w\rangle + R(w)`, the problem of the bundle method.

Each risk is convex, usually a sum of losses, and known through an oracle. Each call at a point
gives a plane that lies below the risk everywhere,
:math:`R_d(w_d) \ge \langle a_i, w_d\rangle + b_i`; the next point minimises :math:`J_t`, which is
J with each risk replaced by the maximum of its planes so far (the *master problem*). Then
:math:`J_t(w_t) \le \min J \le \min_{i \le t} J(w_i)`, and the gap

.. math:: \varepsilon_t = \min_{i \le t} J(w_i) - J_t(w_t)

bounds what is left to gain.

**The dual of the master problem.** With the planes of domain d as the rows of :math:`A_d`,
:math:`s_d = A_d^\top \alpha_d + v_d`, and the multipliers of each domain on a simplex, it is

.. math::

    \max_\alpha \; - \frac{1}{4\lambda} \Bigl\lVert \sum_d s_d \Bigr\rVert^2
    - \frac{1}{4\rho} \sum_d \lVert s_d \rVert^2 + \sum_d b_d^\top \alpha_d , \qquad
    w = -\frac{1}{2\lambda} \sum_d s_d, \quad w_d = w - \frac{1}{2\rho} s_d ,

a quadratic program over a product of simplices (:mod:`trellis.solvers.simplices_qp`) with
:math:`A_d A_e^\top / 2\lambda` in its blocks and :math:`A_d A_d^\top / 2\rho` added on the
diagonal. Its linear part is the heights of the planes at the *origin*, the point of
:math:`\alpha = 0`, which the linear terms determine.

**Limits.** :math:`\rho = \infty` is training on the union of the domains, :math:`w_d = w`. One
domain alone is regularised by
:math:`\tau = \lambda\rho/(\lambda + \rho)`: as :math:`\rho \to 0` that vanishes, and in (1.9) as it
stands nothing holds the weights of a domain at :math:`\rho = 0`. What is meant by "learned
independently" is that each has the regulariser that it would have alone, so ``rho=0`` here
minimises :math:`\sum_d (\lambda \lVert w_d\rVert^2 + R_d(w_d))`, with w = 0. It is not the limit of
the problems with small :math:`\rho`.

**Weights that are drawn less.** :math:`\rho` may be a vector, a factor for each weight, so that
some of them (biases) may differ more between domains than others; :math:`\lVert s_d\rVert^2 / \rho`
is :math:`\sum_j s_{dj}^2 / \rho_j` then. If but a few factors are smaller than the largest, that
costs products of these few columns of the planes.

**L1.** With :math:`\lambda \lVert w\rVert_1` and one domain the master problem is a linear program
in :math:`w = u - v', u, v' \ge 0` (HiGHS). Without a quadratic term its solutions jump about, and
there is no bound on the number of iterations: it is for models of up to some hundreds of weights.

**Where to ask.** The oracle is asked not at the solution :math:`w_t` of the master problem, but at
a point a part (``step``) of the way to it from the best point so far (Ben-Ameur & Neto 2007), and
at the solution itself as soon as such a point brings nothing new. The bounds hold wherever it is
asked. A step of 1 is the plain method, which needs two to three times as many calls.

**A floor.** Losses are not negative: ``floor=0`` adds the plane :math:`R_d \ge 0`, so that
:math:`\mathbf 1^\top\alpha_d \le 1`.

**Limited memory** (Do & Artières 2012). With more than ``memory`` planes, those that are not in use
go first; then older ones are replaced by one of each domain,
:math:`(A_d^\top\alpha_d, b_d^\top\alpha_d)`, which is valid, too, and keeps the lower bound from
falling.

**Inexact oracles.** A plane has to lie below the risk that is minimised. There are two ways.

- A relaxation, such as max over the local polytope in place of labellings, defines another convex
  risk, at least as large as R, that is then minimised exactly: return its value and its
  subgradient, taken from the (fractional) solution of the relaxation.
- With an upper bound but only a labelling at hand, the labelling's plane is valid for R itself,
  while the value is known only between the two: return a :class:`~trellis.problems.Cut` with
  both. The upper bounds enter min J and the planes :math:`J_t`, so the gap stays true but need not
  close. ``exact`` in the result says which it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import function, instance, nothing, number, sequence_of, takes, whole
from trellis.errors import DataError
from trellis.problems.cut import Risk, as_cut
from trellis.solvers.bundle import Bundle
from trellis.solvers.passes import PassRecord
from trellis.solvers.simplices_qp import solve_simplices_qp
from trellis.solvers.solution import Solution

__all__ = ["BundleResult", "minimise_bundle"]

Report = Callable[[PassRecord], None]

# A plane that lies higher than the model by less than this, relatively, brings nothing.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class BundleResult(Solution):
    """Outcome of the bundle method: a :class:`~trellis.solvers.Solution` with the planes.

    Parameters
    ----------
    weights : float64, shape (n,) or, of several domains, (D, n)
        The best point met.
    shared : float64, shape (n,)
        Weights that the domains share: those of one domain are ``weights``.
    bundle : Bundle
        The planes.
    """

    shared: Float64s
    bundle: Bundle


@takes(
    risk=function | sequence_of(function, "a list of functions"), n_weights=whole(0),
    l2=number(at_least=0), l1=number(at_least=0),
    rho=number(at_least=0, infinite=True) | instance(np.ndarray),
    floor=nothing | number(), box=nothing | number(above=0, infinite=True),
    bundle=nothing | instance(Bundle), memory=nothing | whole(), tol=number(at_least=0),
    max_iterations=whole(0), step=number(above=0, at_most=1), report=nothing | function,
)  # fmt: skip
def minimise_bundle(
    risk: Risk | Sequence[Risk],
    n_weights: int,
    *,
    l2: float = 0.0,
    l1: float = 0.0,
    rho: float | Float64s = np.inf,
    linear: Float64s | None = None,
    floor: float | None = None,
    box: float | None = None,
    start: Float64s | None = None,
    bundle: Bundle | None = None,
    memory: int | None = None,
    tol: float = 1e-3,
    max_iterations: int = 1000,
    step: float = 0.2,
    report: Report | None = None,
) -> BundleResult:
    """Minimise a regularised convex risk by cutting planes (the bundle method).

    With a sequence of risks, one for each of D domains, the weights of the domains are drawn
    towards shared ones.

    Parameters
    ----------
    risk : function of float64 (n,), or a sequence of them
        Returns the value and a subgradient of R, or a :class:`~trellis.problems.Cut`.
    n_weights : int
        Number of weights n (of each domain).
    l2, l1 : float
        Factor of ||w||^2, or of ||w||_1; one of them is positive, the other 0. Several domains
        have ``l2``, on the shared weights.
    rho : float or float64, shape (n,)
        Factor of the squared distances of the domains' weights from the shared ones; ``inf`` for
        training on the union, 0 for training each alone with ``l2``. Or one of each weight, all
        positive.
    linear : float64, shape (n,) or (D, n), optional
        The vector v of a linear term, or those of the domains.
    floor : float, optional
        A number that no risk is ever below: 0 for losses.
    box : float, optional
        With L1: only weights of at most this size are considered.
    start : float64, shape (n,) or (D, n), optional
        First point; zero by default, or where the planes of ``bundle`` point to.
    bundle : Bundle, optional
        Planes of the risks known from an earlier run; it is changed.
    memory : int, optional
        Most planes kept, more than there are domains; all by default.
    tol : float
        Stop when the gap is at most ``tol`` times the best objective.
    max_iterations : int
        Most calls of each oracle.
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
    >>> least = minimise_bundle(risk, 1, l2=0.1, floor=0.0, tol=1e-9)
    >>> least.weights.round(6).tolist(), least.stop_reason, round(least.objective, 6)
    ([2.0], 'gap', 8.4)

    Two domains that draw their weight to 1 and to 3:

    >>> def towards(x):
    ...     return lambda w: (10 * float(abs(w[0] - x)), np.array([10 * np.sign(w[0] - x)]))
    >>> risks = [towards(1.0), towards(3.0)]
    >>> result = minimise_bundle(risks, 1, l2=0.5, rho=0.25, floor=0.0, tol=1e-9)
    >>> result.weights.ravel().round(6).tolist(), result.shared.round(6).tolist()
    ([1.0, 3.0], [1.0])
    """
    several = not callable(risk)
    risks: list[Risk] = [risk] if callable(risk) else list(risk)
    if not risks:
        raise DataError("there must be at least one risk")
    shape = (len(risks), n_weights) if several else (n_weights,)
    v = _vectors(linear, "linear", shape).reshape(len(risks), n_weights)
    limit = np.inf if box is None else float(box)
    if several and not l2:
        raise DataError(f"l2 must be a positive number, got {l2!r}")
    if (l2 > 0) == (l1 > 0):
        raise DataError(
            f"one of l2 and l1 must be positive and the other 0, got l2={l2!r} and l1={l1!r}"
        )
    pull = _factors(rho, n_weights)
    if l1 and (pull < np.inf).any():
        raise DataError(f"rho is for l2; with l1 it must be inf, got {rho!r}")
    bounded = floor is not None and np.abs(v).max(initial=0.0) < l1
    if l1 and not bounded and not np.isfinite(limit):
        raise DataError(
            "with l1 the first planes leave the problem unbounded: give a floor of the risk "
            "(0 for losses) and a linear term within the reach of l1, or a box"
        )
    planes = Bundle(n_weights, len(risks)) if bundle is None else bundle
    _check(planes, n_weights, len(risks), memory)
    # At rho = 0 nothing is shared, and l2 draws each domain's weights to zero.
    shared, own = (l2, pull) if pull.all() else (np.inf, np.full(1, float(l2)))
    master = _LinearProgram(l1, v, floor, limit) if l1 else _Quadratic(shared, own, v, floor)
    first = None if start is None else _vectors(start, "start", shape).reshape(v.shape)
    result = _descend(risks, master, planes, first, memory, tol, max_iterations, step, report)
    return result if several else replace(result, weights=result.weights[0])


def _descend(
    risks: Sequence[Risk],
    master: _Quadratic | _LinearProgram,
    planes: Bundle,
    start: Float64s | None,
    memory: int | None,
    tol: float,
    max_iterations: int,
    step: float,
    report: Report | None,
) -> BundleResult:
    """Cut until the gap is closed.

    A point (K, n) is the shared weights and, unless these are all there is, those of the domains.
    ``start`` are weights of the domains.
    """
    row = master.rows
    planes.set_origin(master.origin[row] if master.origin.any() else None)
    alpha = np.zeros(len(planes))
    point = np.zeros_like(master.origin) if start is None else master.point_of(start)
    if start is None and np.bincount(planes.domains, minlength=len(risks)).all():
        point, alpha, _ = master.solve(planes, alpha, np.inf)
    best, best_point, lower = np.inf, point, -np.inf
    # Solution of the last master problem, and the height of the planes there.
    target, model = point, -np.inf
    exact = True
    records: list[PassRecord] = []
    reason = "max_iterations"
    try:
        for number in range(1, max_iterations + 1):
            clock = time.perf_counter()
            weights, ahead = point[row], target[row]
            cuts = [as_cut(risk(w), w) for risk, w in zip(risks, weights, strict=True)]
            exact = exact and all(cut.exact for cut in cuts)
            J = master.regulariser(point) + sum(cut.upper for cut in cuts)
            if best > J:
                best, best_point = J, point
            rise = -model
            for d, cut in enumerate(cuts):
                offset = cut.lower - float(cut.slope @ weights[d])
                rise += float(cut.slope @ ahead[d]) + offset
                planes.add(cut.slope, offset, d)
            alpha = np.append(alpha, np.zeros(len(cuts)))
            solution, alpha, value = master.solve(planes, alpha, best)
            lower = max(lower, value)
            gap = max(0.0, best - lower)
            seconds = time.perf_counter() - clock
            record = PassRecord(number, best, None, None, seconds, lower)
            records.append(record)
            if report is not None:
                report(record)
            if gap <= tol * abs(best):
                reason = "gap"
                break
            nothing_new = np.isfinite(model) and rise <= _NOTHING * max(1.0, abs(model))
            if nothing_new and point is target:
                reason = "no progress"
                break
            target = solution
            highest = np.full(len(risks), -np.inf if master.floor is None else master.floor)
            np.maximum.at(highest, planes.domains, planes.heights(target[row]))
            model = float(highest.sum())
            whole = nothing_new or step == 1
            point = target if whole else best_point + step * (target - best_point)
            if memory is not None and len(planes) > memory:
                alpha = planes.compress(alpha, memory, master.floor)
    except KeyboardInterrupt:
        reason = "interrupted"
    gap = max(0.0, best - lower)
    return BundleResult(
        best_point[row], best, gap, reason, exact, records, lower, len(records),
        shared=best_point[0], bundle=planes,
    )  # fmt: skip


class _Quadratic:
    """The master problem with l2 |w|^2 + sum_d |w_d - w|^2, the latter weighted by ``pull``.

    ``pull`` has one factor, or one of each weight; infinity keeps a term at zero.
    """

    def __init__(self, l2: float, pull: Float64s, linear: Float64s, floor: float | None) -> None:
        self.l2, self.linear, self.floor = l2, linear, floor
        self._shared, self._own = 1 / (2 * l2), 1 / (2 * pull)
        self._apart = bool(self._own.any())  # whether domains have weights of their own at all
        self._pull = np.where(self._own > 0, pull, 0.0)  # where own weights may differ
        # What the factors of most weights leave to those that are drawn less.
        self._most = float(self._own.min())
        self._loose = np.flatnonzero(self._own > self._most)
        self._more = np.sqrt(self._own[self._loose] - self._most)
        n_domains = len(linear)
        self.rows = 1 + np.arange(n_domains) if self._apart else np.zeros(n_domains, np.int64)
        self.origin = self._point(linear)
        self._least = self.regulariser(self.origin)

    def _point(self, sums: Float64s) -> Float64s:
        """Where the regulariser plus <sums_d, w_d> is least."""
        shared = -self._shared * sums.sum(axis=0)
        return np.vstack([shared, shared - self._own * sums]) if self._apart else shared[None]

    def point_of(self, weights: Float64s) -> Float64s:
        """Return the point of the domains' weights whose shared ones are the best."""
        if not self._apart:
            mean: Float64s = weights.mean(axis=0, keepdims=True)
            return mean
        shared = np.zeros(weights.shape[1])
        if self._shared:
            shared = weights.sum(axis=0) / (2 * self.l2 * self._own + len(weights))
        # Weights that cannot differ are those of all.
        return np.vstack([shared, np.where(self._own > 0, weights, shared)])

    def regulariser(self, point: Float64s) -> float:
        """All of J but the risks."""
        value = float(np.vdot(self.linear, point[self.rows]))
        if self._shared:
            value += self.l2 * float(point[0] @ point[0])
        if self._apart:
            value += float((self._pull * np.square(point[1:] - point[0])).sum())
        return value

    def solve(
        self, planes: Bundle, start: Float64s, best: float
    ) -> tuple[Float64s, Float64s, float]:
        """Return the solution, its multipliers, and a lower bound on min J."""
        height = 0.0 if self.floor is None else self.floor
        block, scale = planes.domains, self._shared
        gram = planes.gram * scale
        if self._apart:
            own = planes.gram * self._most
            if len(self._loose):
                slopes = planes.slopes[:, self._loose] * self._more
                own = own + slopes @ slopes.T
            gram = gram + own * (block[:, None] == block)
        dual = solve_simplices_qp(
            gram,
            planes.origin_heights - height,
            block,
            start=start,
            at_most=self.floor is not None,
            tol=1e-13,
        )
        point = self._point(planes.sums(dual.alpha) + self.linear)
        return point, dual.alpha, len(self.rows) * height + self._least - dual.value


class _LinearProgram:
    """The master problem of one domain with l1 |w|_1, within a box."""

    def __init__(self, l1: float, linear: Float64s, floor: float | None, box: float) -> None:
        self.l1, self.linear, self.floor, self.box = l1, linear, floor, box
        self.rows = np.zeros(1, np.int64)
        self.origin = np.zeros_like(linear)

    def point_of(self, weights: Float64s) -> Float64s:
        """Return the point of the weights."""
        return weights

    def regulariser(self, point: Float64s) -> float:
        """All of J but the risk."""
        return self.l1 * float(np.abs(point).sum()) + float(np.vdot(self.linear, point))

    def solve(
        self, planes: Bundle, start: Float64s, best: float
    ) -> tuple[Float64s, Float64s, float]:
        """Return the solution, its multipliers, and a lower bound on min J."""
        import scipy.optimize

        n, l1, v, floor, box = planes.n_weights, self.l1, self.linear[0], self.floor, self.box
        A = np.hstack([planes.slopes, -planes.slopes, -np.ones((len(planes), 1))])
        cost = np.concatenate([l1 + v, l1 - v, [1.0]])
        bounds: Any = np.zeros((2 * n + 1, 2))
        bounds[:, 1] = box
        bounds[-1] = -np.inf if floor is None else floor, np.inf
        solution = scipy.optimize.linprog(cost, A, -planes.offsets, bounds=bounds, method="highs")
        if solution.x is None:
            raise DataError(f"the linear program of the bundle method failed: {solution.message}")
        weights = solution.x[:n] - solution.x[n : 2 * n]
        # A bound that holds whatever the tolerances of the linear program: the multipliers, made
        # feasible, and what the rounding leaves beyond the reach of L1, times the room there is.
        alpha = np.maximum(-solution.ineqlin.marginals, 0.0)
        alpha /= max(1.0, alpha.sum()) if floor is not None else alpha.sum()
        excess = np.maximum(np.abs(alpha @ planes.slopes + v) - l1, 0.0)
        height = 0.0 if floor is None else floor
        value = float(alpha @ planes.offsets) + height * (1 - float(alpha.sum()))
        room = box * excess.sum() if np.isfinite(box) else np.inf
        reach = l1 - np.abs(v).max(initial=0.0)
        if floor is not None and reach > 0 and np.isfinite(best):
            room = min(room, (best - floor) / reach * excess.max(initial=0.0))
        return weights[None], alpha, value - (room if excess.any() else 0.0)


def _factors(rho: float | Float64s, n_weights: int) -> Float64s:
    """One factor for all weights (1,), or one of each (n,)."""
    if not isinstance(rho, np.ndarray):
        return np.full(1, float(rho))
    factors: Float64s = as_array(rho, np.float64, "rho", (n_weights,))
    if not (factors > 0).all():
        raise DataError("rho, if there is one of each weight, must be positive")
    return factors


def _vectors(values: Float64s | None, name: str, shape: tuple[int, ...]) -> Float64s:
    if values is None:
        return np.zeros(shape)
    return as_array(values, np.float64, name, shape, finite=True).copy()


def _check(planes: Bundle, n_weights: int, n_domains: int, memory: int | None) -> None:
    if planes.n_weights != n_weights:
        raise DataError(f"the bundle is one of {planes.n_weights} weights, not {n_weights}")
    if planes.n_domains != n_domains:
        raise DataError(
            f"the bundle is one of {planes.n_domains} domains, but the number of risks is "
            f"{n_domains}"
        )
    if memory is not None and memory <= n_domains:
        raise DataError(f"memory must be None or at least {n_domains + 1}, got {memory!r}")
