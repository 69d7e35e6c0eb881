r"""Convex quadratic programs over a product of simplices: the dual problem of cutting planes.

.. math::

    \min_{\alpha} \; f(\alpha) = \tfrac12 \alpha^\top G \alpha - b^\top \alpha
    \quad \text{s.t.} \quad \alpha \ge 0, \; \mathbf 1^\top \alpha_d = 1
    \;\; (\text{or} \le 1), \; d = 1 \dots D,

:math:`\alpha_d` being the part of :math:`\alpha` that belongs to block d and G symmetric and
positive semidefinite, of a few hundred rows. One block is the simplex. The solver is a primal
active set method: on the support of alpha the problem has only equality constraints and is solved
by Cholesky, the largest part of each block depending on the others; a step that would leave the
simplices stops at their border and drops what became zero there. After each minimum on the support,
the variable of steepest descent of every block enters. Where G is singular on the support, the step
goes along a direction in which f is linear, until the border. With gradient g,

.. math:: f(\alpha) - f^* \le \sum_d \bigl(g_d^\top \alpha_d - \min(\min_i g_{di}, [0])\bigr)

(the 0 for the variant with at most one) is the certificate that ends it.

Descent by blocks would be simpler, but stalls where the blocks depend on each other strongly: risks
that share nearly all their weights. It is written by hand because there is no small solver of such
problems with a permissive licence among the dependencies of Trellis; SciPy's general methods are
slow here and end far from the support of the solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, as_array
from trellis.domains import flag, nothing, number, takes, whole
from trellis.errors import DataError

__all__ = ["SimplexSolution", "solve_simplices_qp"]


# A pivot so much smaller than the largest counts as zero: the matrix is singular for the step.
_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class SimplexSolution:
    """Solution of a quadratic program over simplices.

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


@takes(at_most=flag, tol=number(at_least=0), max_steps=nothing | whole(0))
def solve_simplices_qp(
    G: npt.ArrayLike,
    b: npt.ArrayLike,
    blocks: npt.ArrayLike | None = None,
    *,
    start: npt.ArrayLike | None = None,
    at_most: bool = False,
    tol: float = 1e-12,
    max_steps: int | None = None,
) -> SimplexSolution:
    """Minimise 1/2 a' G a - b' a over the simplex, or over a product of simplices.

    Parameters
    ----------
    G : array, shape (n, n)
        Symmetric and positive semidefinite; only that it is symmetric is checked.
    b : array, shape (n,)
        Linear part.
    blocks : array of int, shape (n,), optional
        Number of the block of each variable, from 0; variables may come in any order. By default
        all are in one.
    start : array, shape (n,), optional
        Point to start from, such as the solution of a smaller problem with zeros for what is new;
        negative parts are cut and each block is scaled to be feasible.
    at_most : bool
        The sum of each block is at most 1, instead of 1.
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
        If the shapes do not fit, a block has no variable, numbers are not finite, or G is not
        symmetric.

    Examples
    --------
    The point of a triangle nearest to the origin:

    >>> points = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.0]])
    >>> solution = solve_simplices_qp(points @ points.T, np.zeros(3))
    >>> solution.alpha.tolist(), solution.value
    ([0.5, 0.5, 0.0], 0.5)

    The nearest points of two segments:

    >>> ends = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0], [1.0, 5.0]])
    >>> sides = np.array([1, 1, -1, -1])[:, None] * ends
    >>> solution = solve_simplices_qp(sides @ sides.T, np.zeros(4), [0, 0, 1, 1])
    >>> solution.alpha.tolist(), solution.value
    ([0.75, 0.25, 1.0, 0.0], 0.5)
    """
    matrix, linear = _checked(G, b)
    n = len(linear)
    block = np.zeros(n, np.int64) if blocks is None else _checked_blocks(blocks, n)
    alpha = np.zeros(n)
    if start is not None:
        alpha = as_array(start, np.float64, "start", (n,), finite=True).copy()
    n_blocks = int(block.max()) + 1
    if at_most:  # the slack of each block is one more variable, whose row and linear part are zero
        slack = np.zeros(n_blocks)
        padded = np.zeros((n + n_blocks, n + n_blocks))
        padded[:n, :n] = matrix
        matrix = padded
        linear, alpha = np.append(linear, slack), np.append(alpha, slack)
        block = np.append(block, np.arange(n_blocks))
    members = [np.flatnonzero(block == d) for d in range(n_blocks)]
    np.maximum(alpha, 0.0, out=alpha)
    for member in members:
        total = alpha[member].sum()
        if total > 1 or (total > 0 and not at_most):
            alpha[member] /= total
        elif at_most:
            alpha[member[-1]] = 1 - total
        else:  # the best corner
            alpha[member[int(np.argmin(np.diag(matrix)[member] / 2 - linear[member]))]] = 1.0
    limit = 50 + 10 * n if max_steps is None else max_steps
    steps = _descend(matrix, linear, block, members, alpha, tol, limit)
    product = matrix @ alpha
    value = float(alpha @ product) / 2 - float(linear @ alpha)
    gap = float(_gaps(product - linear, members, alpha).sum())
    return SimplexSolution(alpha[:n], value, max(0.0, gap), steps)


def _checked(G: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Float64s, Float64s]:
    matrix, linear = as_array(G, np.float64, "G"), as_array(b, np.float64, "b")
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


def _checked_blocks(blocks: npt.ArrayLike, n: int) -> Int64s:
    block = as_array(blocks, np.int64, "blocks", (n,), low=0, high=n)
    empty = np.flatnonzero(np.bincount(block) == 0)
    if len(empty):
        raise DataError(f"block {empty[0]} has no variable; number the blocks 0, 1, ...")
    return block


def _gaps(gradient: Float64s, members: list[Int64s], alpha: Float64s) -> Float64s:
    """How far each block may be from its minimum."""
    return np.array(
        [gradient[member] @ alpha[member] - gradient[member].min() for member in members]
    )


def _descend(
    G: Float64s,
    b: Float64s,
    block: Int64s,
    members: list[Int64s],
    alpha: Float64s,
    tol: float,
    max_steps: int,
) -> int:
    """Bring alpha to the minimum, in place; returns the number of steps."""
    support = alpha > 0
    steps = 0
    while steps < max_steps:
        # On the support first: a start need not be the minimum there.
        while steps < max_steps:
            steps += 1
            if _step(G, b, block, members, alpha, support):
                break
        product = G @ alpha
        gradient = product - b
        allowed = tol * float(np.abs(product) @ alpha + np.abs(b) @ alpha)
        gaps = _gaps(gradient, members, alpha)
        if gaps.sum() <= allowed:
            break
        entering = np.array([member[int(np.argmin(gradient[member]))] for member in members])
        entering = entering[(gaps > allowed / len(members)) & ~support[entering]]
        if not len(entering):
            break  # all in the support: rounding keeps the gap from falling any further
        support[entering] = True
    for member in members:
        alpha[member] /= alpha[member].sum()
    return steps


def _step(
    G: Float64s,
    b: Float64s,
    block: Int64s,
    members: list[Int64s],
    alpha: Float64s,
    support: NDArray[np.bool_],
) -> bool:
    """Step towards the minimum on the support; returns whether that was reached."""
    # In each block the largest part depends on the others: that keeps the sum at 1.
    largest = np.array([member[int(np.argmax(alpha[member]))] for member in members])
    free = np.flatnonzero(support)
    leader = np.searchsorted(free, largest[block[free]])
    rest = np.flatnonzero(leader != np.arange(len(free)))
    if not len(rest):
        return True
    lead = leader[rest]
    inner = G[np.ix_(free, free)]
    gradient = inner @ alpha[free] - b[free]
    rows = inner[rest] - inner[lead]
    move, bounded = _minimum(rows[:, rest] - rows[:, lead], gradient[rest] - gradient[lead])
    direction = -np.bincount(lead, move, len(free))
    direction[rest] = move
    falling = np.flatnonzero(direction < 0)
    limits = alpha[free[falling]] / -direction[falling]
    nearest = int(np.argmin(limits)) if len(limits) else -1
    reached = nearest < 0 or bool(bounded and limits[nearest] >= 1)
    length = 1.0 if reached else limits[nearest]
    alpha[free] = np.maximum(alpha[free] + length * direction, 0.0)
    if not reached:
        dropped = free[falling[nearest]]
        alpha[dropped] = 0.0
        support[dropped] = False
    return reached


def _minimum(H: Float64s, slope: Float64s) -> tuple[Float64s, bool]:
    """Where 1/2 u' H u + slope' u is least, or else a direction in which it falls for ever."""
    from scipy.linalg.lapack import dpotrf, dpotrs  # the wrappers take longer than they do

    factor, failed = dpotrf(H, lower=1)
    pivots = np.diag(factor)
    if not failed and pivots.min() ** 2 > _SINGULAR * pivots.max() ** 2:
        move: Float64s = -dpotrs(factor, slope, lower=1)[0]
        return move, True
    values, vectors = np.linalg.eigh(H)
    parts = vectors.T @ slope
    regular = values > _SINGULAR * max(values[-1], 0.0)
    flat = -vectors[:, ~regular] @ parts[~regular]
    if np.abs(flat).max(initial=0.0) > 1e-10 * np.abs(slope).max():
        return flat, False
    return -vectors[:, regular] @ (parts[regular] / values[regular]), True
