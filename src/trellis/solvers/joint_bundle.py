r"""The bundle method for related risks that share a part of their weights (transfer learning).

.. math::

    \min_{w, w_1 \dots w_D} \; J = \lambda \lVert w\rVert^2 + \rho \sum_d \lVert w_d - w\rVert^2
    + \sum_d R_d(w_d)

(Lou et al., Eq. 1.9, whose :math:`\lambda/2` and :math:`\rho/2` are :math:`\lambda` and
:math:`\rho` here, as everywhere in Trellis). Domain d has weights of its own, :math:`w_d`, drawn
towards the shared ones by :math:`\rho`. Each risk is convex and known through an oracle; its planes
lie below it, :math:`R_d(w_d) \ge \langle a_i, w_d\rangle + b_i`. With the planes of domain d as the
rows of :math:`A_d`, :math:`s_d = A_d^\top \alpha_d`, and the multipliers of each domain on a
simplex, the dual of the master problem is

.. math::

    \max_\alpha \; - \frac{1}{4\lambda} \Bigl\lVert \sum_d s_d \Bigr\rVert^2
    - \frac{1}{4\rho} \sum_d \lVert s_d \rVert^2 + \sum_d b_d^\top \alpha_d , \qquad
    w = -\frac{1}{2\lambda} \sum_d s_d, \quad w_d = w - \frac{1}{2\rho} s_d ,

a quadratic program over a product of simplices (:mod:`trellis.solvers.simplices_qp`) with
:math:`A_d A_e^\top / 2\lambda` in its blocks and :math:`A_d A_d^\top / 2\rho` added on the
diagonal. It bounds min J from below, and so there is a gap as in :mod:`trellis.solvers.bundle`,
where also ``floor``, ``step`` and the stops are explained.

**Limits.** :math:`\rho = \infty` is training on the union of the domains, :math:`w_d = w`. One
domain alone is regularised by
:math:`\tau = \lambda\rho/(\lambda + \rho)`: as :math:`\rho \to 0` that vanishes, and in (1.9) as it
stands nothing holds the weights of a domain at :math:`\rho = 0`. What is meant by "learned
independently" is that each has the regulariser that it would have alone, so ``rho=0`` here
minimises :math:`\sum_d (\lambda \lVert w_d\rVert^2 + R_d(w_d))`, with w = 0. It is not the limit of
the problems with small :math:`\rho`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.solvers.bundle import _NOTHING, Bundle, BundleRecord, Cut, Risk, _cut
from trellis.solvers.simplices_qp import solve_simplices_qp

__all__ = ["JointBundle", "JointResult", "minimise_joint_bundle"]

Float64s = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointBundle:
    """Planes below the risks of several domains.

    They stay valid as long as the risks are the same, whatever the regulariser: when l2 and rho are
    chosen by trial, one run can hand them to the next.

    Parameters
    ----------
    planes : Bundle
        The planes of all domains.
    domains : list of int
        Whose risk each plane belongs to.
    """

    planes: Bundle
    domains: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class JointResult:
    """Outcome of a run.

    Parameters
    ----------
    shared : float64, shape (n,)
        Weights w that the domains share.
    weights : float64, shape (D, n)
        Weights w_d of each domain.
    objective, lower_bound, gap : float
        J at the best point met (its upper bound, if an oracle is not exact), a lower bound on min
        J, and the difference.
    stop_reason : str
        "gap", "max_iterations", "interrupted" or "no progress": the oracles have nothing to add, as
        happens when one is not exact or the gap is down to rounding errors.
    exact : bool
        Whether the oracles gave the values of the risks each time.
    records : list of BundleRecord
        One for each iteration, in which every oracle is asked once.
    bundle : JointBundle
        The planes.
    """

    shared: Float64s
    weights: Float64s
    objective: float
    lower_bound: float
    gap: float
    stop_reason: str
    exact: bool
    records: list[BundleRecord]
    bundle: JointBundle


def minimise_joint_bundle(
    risks: Sequence[Risk],
    n_weights: int,
    *,
    l2: float,
    rho: float,
    floor: float | None = 0.0,
    bundle: JointBundle | None = None,
    tol: float = 1e-3,
    max_iterations: int = 1000,
    step: float = 0.2,
    report: Callable[[BundleRecord], None] | None = None,
) -> JointResult:
    """Minimise the risks of several domains, whose weights are drawn towards shared ones.

    Parameters
    ----------
    risks : sequence of functions of float64 (n,)
        One for each domain; returns the value and a subgradient of the risk, or a
        :class:`~trellis.solvers.Cut`.
    n_weights : int
        Number of weights n of each domain.
    l2 : float
        Factor of the squared norm of the shared weights, positive.
    rho : float
        Factor of the squared distances of the domains' weights from the shared ones; ``inf`` for
        training on the union, 0 for training each alone with ``l2``.
    floor : float, optional
        A number that no risk is ever below: 0 for losses.
    bundle : JointBundle, optional
        Planes known from an earlier run; it is changed.
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
    JointResult
        After an interrupt (Ctrl-C) the best so far, with the reason "interrupted".

    Raises
    ------
    DataError
        If a parameter is out of its range, or a risk is not finite.

    Examples
    --------
    Two domains that draw their weight to 1 and to 3:

    >>> def towards(x):
    ...     return lambda w: (10 * float(abs(w[0] - x)), np.array([10 * np.sign(w[0] - x)]))
    >>> risks = [towards(1.0), towards(3.0)]
    >>> found = minimise_joint_bundle(risks, 1, l2=0.5, rho=0.25, tol=1e-9)
    >>> found.weights.ravel().round(6).tolist(), found.shared.round(6).tolist()
    ([1.0, 3.0], [1.0])
    """
    joint = JointBundle(Bundle(n_weights)) if bundle is None else bundle
    _check(risks, n_weights, l2, rho, step, joint)
    planes, domains, n_domains = joint.planes, joint.domains, len(risks)
    problem = _Problem.of(l2, rho, n_domains, floor)
    # A point is its shared weights (first row) and those of the domains.
    point = np.zeros((1 + n_domains, n_weights))
    alpha = np.zeros(len(planes))
    if len(set(domains)) == n_domains:
        point, alpha, _ = problem.solve(planes, domains, alpha)
    best, best_point, lower = np.inf, point, -np.inf
    target, model = point, -np.inf
    exact = True
    records: list[BundleRecord] = []
    reason = "max_iterations"
    try:
        for number in range(1, max_iterations + 1):
            clock = time.perf_counter()
            cuts = [_cut(risk(w), w) for risk, w in zip(risks, point[1:], strict=True)]
            exact = exact and all(_is_exact(cut) for cut in cuts)
            J = problem.regulariser(point) + sum(cut.upper for cut in cuts)
            if best > J:
                best, best_point = J, point
            rise = -model
            for d, cut in enumerate(cuts):
                offset = cut.lower - float(cut.slope @ point[1 + d])
                rise += float(cut.slope @ target[1 + d]) + offset
                planes.add(cut.slope, offset)
                domains.append(d)
            alpha = np.append(alpha, np.zeros(n_domains))
            solution, alpha, value = problem.solve(planes, domains, alpha)
            lower = max(lower, value)
            gap = max(0.0, best - lower)
            record = BundleRecord(number, best, lower, gap, time.perf_counter() - clock)
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
            model = problem.height(planes, domains, target)
            whole = nothing_new or step == 1
            point = target if whole else best_point + step * (target - best_point)
    except KeyboardInterrupt:
        reason = "interrupted"
    gap = max(0.0, best - lower)
    shared, weights = best_point[0], best_point[1:]
    return JointResult(shared, weights, best, lower, gap, reason, exact, records, joint)


@dataclass(frozen=True)
class _Problem:
    """The regulariser as |w|^2 / 2 shared + sum_d |w_d - w|^2 / 2 own; 0 keeps a term at zero."""

    shared: float
    own: float
    n_domains: int
    floor: float | None

    @classmethod
    def of(cls, l2: float, rho: float, n_domains: int, floor: float | None) -> _Problem:
        if rho == 0:
            return cls(0.0, 1 / (2 * l2), n_domains, floor)
        return cls(1 / (2 * l2), 1 / (2 * rho), n_domains, floor)

    def regulariser(self, point: Float64s) -> float:
        shared, own = point[0], point[1:] - point[0]
        value = 0.0
        if self.shared:
            value += float(shared @ shared) / (2 * self.shared)
        if self.own:
            value += float(np.vdot(own, own)) / (2 * self.own)
        return value

    def solve(
        self, planes: Bundle, domains: list[int], start: Float64s
    ) -> tuple[Float64s, Float64s, float]:
        """Solve the master problem: the point, its multipliers, and a lower bound on min J."""
        block = np.array(domains)
        height = 0.0 if self.floor is None else self.floor
        same = block[:, None] == block
        found = solve_simplices_qp(
            planes.gram * (self.shared + self.own * same),
            planes.offsets - height,
            block,
            start=start,
            at_most=self.floor is not None,
            tol=1e-13,
        )
        slopes = np.stack(
            [found.alpha[block == d] @ planes.slopes[block == d] for d in range(self.n_domains)]
        )
        shared = -self.shared * slopes.sum(0)
        point = np.vstack([shared, shared - self.own * slopes])
        return point, found.alpha, self.n_domains * height - found.value

    def height(self, planes: Bundle, domains: list[int], point: Float64s) -> float:
        """Height of the planes at a point, summed over the domains."""
        block = np.array(domains)
        heights = np.einsum("td,td->t", planes.slopes, point[1 + block]) + planes.offsets
        highest = np.full(self.n_domains, -np.inf if self.floor is None else self.floor)
        np.maximum.at(highest, block, heights)
        return float(highest.sum())


def _is_exact(cut: Cut) -> bool:
    return cut.upper - cut.lower <= 1e-9 * max(1.0, abs(cut.upper))


def _check(
    risks: Sequence[Risk], n_weights: int, l2: float, rho: float, step: float, joint: JointBundle
) -> None:
    if not len(risks):
        raise DataError("there must be at least one risk")
    if not 0 < l2 < np.inf:
        raise DataError(f"l2 must be a positive number, got {l2!r}")
    if not rho >= 0:
        raise DataError(f"rho must be at least 0 (inf for one model of all domains), got {rho!r}")
    if not 0 < step <= 1:
        raise DataError(f"step must lie in (0, 1], got {step!r}")
    if joint.planes.n_weights != n_weights:
        raise DataError(f"the bundle is one of {joint.planes.n_weights} weights, not {n_weights}")
    if len(joint.domains) != len(joint.planes) or set(joint.domains) - set(range(len(risks))):
        raise DataError(
            f"the bundle has {len(joint.planes)} planes of domains {sorted(set(joint.domains))}; "
            f"there are {len(risks)} risks"
        )
