r"""Convex quadratic programs over the simplex: the dual master problem of the bundle method.

.. math::

    \min_{\alpha} \; f(\alpha) = \tfrac12 \alpha^\top G \alpha - b^\top \alpha
    \quad \text{s.t.} \quad \alpha \ge 0, \; \mathbf 1^\top \alpha = 1
    \;\; (\text{or} \le 1),

G being symmetric and positive semidefinite, of a few hundred rows. The solver is a primal active
set method: on the support of alpha the problem has only an equality constraint and is solved by
Cholesky; a step that would leave the simplex stops at its border and drops what became zero there;
the variable of steepest descent enters. Where G is singular on the support, the step goes along a
direction in which f is linear, until the border. With gradient g,

.. math:: f(\alpha) - f^* \le g^\top \alpha - \min(\min_i g_i, [0])

(the 0 for the variant with at most one) is the certificate that ends it.

It is written by hand because there is no small solver of such problems with a permissive licence
among the dependencies of Trellis; SciPy's general methods are slow here and end far from the
support of the solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from trellis.errors import DataError

__all__ = ["SimplexSolution", "solve_simplex_qp"]

Float64s = NDArray[np.float64]

# A pivot so much smaller than the largest counts as zero: the matrix is singular for the step.
_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class SimplexSolution:
    """Solution of a quadratic program over the simplex.

    Parameters
    ----------
    alpha : float64, shape (n,)
        The point found, feasible.
    value : float
        f(alpha).
    gap : float
        Upper bound on f(alpha) - min f.
    steps : int
        Linear systems that were solved.
    """

    alpha: Float64s
    value: float
    gap: float
    steps: int


def solve_simplex_qp(
    G: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    start: npt.ArrayLike | None = None,
    at_most: bool = False,
    tol: float = 1e-12,
    max_steps: int | None = None,
) -> SimplexSolution:
    """Minimise 1/2 a' G a - b' a over the simplex.

    Parameters
    ----------
    G : array, shape (n, n)
        Symmetric and positive semidefinite; only that it is symmetric is checked.
    b : array, shape (n,)
        Linear part.
    start : array, shape (n,), optional
        Point to start from, such as the solution of a smaller problem with zeros for what is new;
        negative parts are cut and the rest is scaled to be feasible.
    at_most : bool
        The sum of alpha is at most 1, instead of 1.
    tol : float
        Stop when the gap is at most ``tol`` times the size of the terms of f.
    max_steps : int, optional
        Most linear systems to solve; by default 50 and ten for each variable.

    Returns
    -------
    SimplexSolution

    Raises
    ------
    DataError
        If the shapes do not fit, or numbers are not finite, or G is not symmetric.

    Examples
    --------
    The point of a triangle nearest to the origin:

    >>> points = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.0]])
    >>> found = solve_simplex_qp(points @ points.T, np.zeros(3))
    >>> found.alpha.tolist(), found.value
    ([0.5, 0.5, 0.0], 0.5)
    """
    matrix, linear = _checked(G, b)
    n = len(linear)
    alpha = np.zeros(n) if start is None else np.array(start, np.float64)
    if alpha.shape != (n,) or not np.isfinite(alpha).all():
        raise DataError(f"start must be {n} finite numbers")
    if at_most:  # the slack is one more variable, whose row and linear part are zero
        matrix = np.pad(matrix, ((0, 1), (0, 1)))
        linear = np.append(linear, 0.0)
        alpha = np.append(alpha, 0.0)
    np.maximum(alpha, 0.0, out=alpha)
    total = alpha.sum()
    if total > 1 or (total > 0 and not at_most):
        alpha /= total
    elif at_most:
        alpha[-1] = 1 - total
    else:  # the best corner
        alpha[int(np.argmin(np.diag(matrix) / 2 - linear))] = 1.0
    steps = _descend(matrix, linear, alpha, tol, 50 + 10 * n if max_steps is None else max_steps)
    product = matrix @ alpha
    gradient = product - linear
    value = float(alpha @ product) / 2 - float(linear @ alpha)
    gap = max(0.0, float(gradient @ alpha - gradient.min()))
    return SimplexSolution(alpha[:n], value, gap, steps)


def _checked(G: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Float64s, Float64s]:
    matrix, linear = np.asarray(G, np.float64), np.asarray(b, np.float64)
    n = linear.size
    if linear.ndim != 1 or n == 0 or matrix.shape != (n, n):
        raise DataError(
            f"G must be (n, n) and b (n,) with n >= 1, got {matrix.shape} and {linear.shape}"
        )
    if not (np.isfinite(matrix).all() and np.isfinite(linear).all()):
        raise DataError("G and b must be finite")
    if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
        raise DataError("G must be symmetric")
    return matrix, linear


def _descend(G: Float64s, b: Float64s, alpha: Float64s, tol: float, max_steps: int) -> int:
    """Bring alpha to the minimum, in place; returns the number of steps."""
    support = alpha > 0
    steps = 0
    while steps < max_steps:
        # On the support first: a start need not be the minimum there.
        while steps < max_steps:
            steps += 1
            if _step(G, b, alpha, support):
                break
        product = G @ alpha
        gradient = product - b
        entering = int(np.argmin(gradient))
        scale = float(np.abs(product) @ alpha + np.abs(b) @ alpha)
        if gradient @ alpha - gradient[entering] <= tol * scale or support[entering]:
            break  # in the support: rounding keeps the gap from falling any further
        support[entering] = True
    alpha /= alpha.sum()
    return steps


def _step(G: Float64s, b: Float64s, alpha: Float64s, support: NDArray[np.bool_]) -> bool:
    """Step towards the minimum on the support; returns whether that was reached."""
    free = np.flatnonzero(support)
    if len(free) == 1:
        alpha[:] = 0.0
        alpha[free[0]] = 1.0
        return True
    # The largest part depends on the others: that keeps the sum at 1.
    last = int(np.argmax(alpha[free]))
    rest = np.delete(free, last)
    pivot = free[last]
    gradient = G[free] @ alpha - b[free]
    slope = np.delete(gradient, last) - gradient[last]
    hessian = G[np.ix_(rest, rest)] - G[rest, pivot][:, None] - G[pivot, rest] + G[pivot, pivot]
    move, bounded = _minimum(hessian, slope)
    direction = np.empty(len(free))
    direction[np.arange(len(free)) != last] = move
    direction[last] = -move.sum()
    falling = np.flatnonzero(direction < 0)
    limits = alpha[free[falling]] / -direction[falling]
    nearest = int(np.argmin(limits)) if len(limits) else -1
    if nearest < 0 or (bounded and limits[nearest] >= 1):
        alpha[free] = np.maximum(alpha[free] + direction, 0.0)
        return True
    alpha[free] = np.maximum(alpha[free] + limits[nearest] * direction, 0.0)
    dropped = free[falling[nearest]]
    alpha[dropped] = 0.0
    support[dropped] = False
    return False


def _minimum(H: Float64s, slope: Float64s) -> tuple[Float64s, bool]:
    """Where 1/2 u' H u + slope' u is least, or else a direction in which it falls for ever."""
    import scipy.linalg

    try:
        factor = scipy.linalg.cho_factor(H, lower=True, check_finite=False)
        pivots = np.diag(factor[0])
        if pivots.min() ** 2 > _SINGULAR * pivots.max() ** 2:
            move: Float64s = -scipy.linalg.cho_solve(factor, slope, check_finite=False)
            return move, True
    except scipy.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(H)
    parts = vectors.T @ slope
    regular = values > _SINGULAR * max(values[-1], 0.0)
    flat = -vectors[:, ~regular] @ parts[~regular]
    if np.abs(flat).max(initial=0.0) > 1e-10 * np.abs(slope).max():
        return flat, False
    return -vectors[:, regular] @ (parts[regular] / values[regular]), True
