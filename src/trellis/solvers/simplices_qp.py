r"""Convex quadratic programs over a product of simplices: the master problem of several risks.

.. math::

    \min_{\alpha} \; f(\alpha) = \tfrac12 \alpha^\top G \alpha - b^\top \alpha
    \quad \text{s.t.} \quad \alpha \ge 0, \; \mathbf 1^\top \alpha_d = 1
    \;\; (\text{or} \le 1), \; d = 1 \dots D,

:math:`\alpha_d` being the part of :math:`\alpha` that belongs to block d and G symmetric and
positive semidefinite. The method is that of :mod:`trellis.solvers.simplex_qp`, an active set method
that solves linear systems on the support; in each block the largest part depends on the others.
After each minimum on the support, the variable of steepest descent of every block enters. With
gradient g,

.. math:: f(\alpha) - f^* \le \sum_d \bigl(g_d^\top \alpha_d - \min(\min_i g_{di}, [0])\bigr)

(the 0 for the variant with at most one) is the certificate. Descent by blocks would be simpler, but
stalls where the blocks depend on each other strongly: risks that share nearly all their weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.solvers.simplex_qp import SimplexSolution, _checked, _minimum

__all__ = ["solve_simplices_qp"]

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


def solve_simplices_qp(
    G: npt.ArrayLike,
    b: npt.ArrayLike,
    blocks: npt.ArrayLike,
    *,
    start: npt.ArrayLike | None = None,
    at_most: bool = False,
    tol: float = 1e-12,
    max_steps: int | None = None,
) -> SimplexSolution:
    """Minimise 1/2 a' G a - b' a over a product of simplices.

    Parameters
    ----------
    G : array, shape (n, n)
        Symmetric and positive semidefinite; only that it is symmetric is checked.
    b : array, shape (n,)
        Linear part.
    blocks : array of int, shape (n,)
        Number of the block of each variable, from 0; variables may come in any order.
    start : array, shape (n,), optional
        Point to start from; negative parts are cut and each block is scaled to be feasible.
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
    The nearest points of two segments:

    >>> ends = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0], [1.0, 5.0]])
    >>> sides = np.array([1, 1, -1, -1])[:, None] * ends
    >>> found = solve_simplices_qp(sides @ sides.T, np.zeros(4), [0, 0, 1, 1])
    >>> found.alpha.tolist(), found.value
    ([0.75, 0.25, 1.0, 0.0], 0.5)
    """
    matrix, linear = _checked(G, b)
    n = len(linear)
    block = _checked_blocks(blocks, n)
    alpha = np.zeros(n) if start is None else np.array(start, np.float64)
    if alpha.shape != (n,) or not np.isfinite(alpha).all():
        raise DataError(f"start must be {n} finite numbers")
    n_blocks = int(block.max()) + 1
    if at_most:  # the slack of each block is one more variable, whose row and linear part are zero
        matrix = np.pad(matrix, ((0, n_blocks), (0, n_blocks)))
        linear = np.append(linear, np.zeros(n_blocks))
        alpha = np.append(alpha, np.zeros(n_blocks))
        block = np.append(block, np.arange(n_blocks))
    members = [np.flatnonzero(block == d) for d in range(n_blocks)]
    np.maximum(alpha, 0.0, out=alpha)
    for own in members:
        total = alpha[own].sum()
        if total > 1 or (total > 0 and not at_most):
            alpha[own] /= total
        elif at_most:
            alpha[own[-1]] = 1 - total
        else:  # the best corner
            alpha[own[int(np.argmin(np.diag(matrix)[own] / 2 - linear[own]))]] = 1.0
    limit = 50 + 10 * n if max_steps is None else max_steps
    steps = _descend(matrix, linear, members, alpha, tol, limit)
    product = matrix @ alpha
    gradient = product - linear
    value = float(alpha @ product) / 2 - float(linear @ alpha)
    gap = sum(float(gradient[own] @ alpha[own] - gradient[own].min()) for own in members)
    return SimplexSolution(alpha[:n], value, max(0.0, gap), steps)


def _checked_blocks(blocks: npt.ArrayLike, n: int) -> Int64s:
    block = np.asarray(blocks)
    if block.shape != (n,) or not np.issubdtype(block.dtype, np.integer) or block.min() < 0:
        raise DataError(f"blocks must be {n} whole numbers of at least 0, one for each variable")
    empty = np.flatnonzero(np.bincount(block) == 0)
    if len(empty):
        raise DataError(f"block {empty[0]} has no variable; number the blocks 0, 1, ...")
    return block.astype(np.int64)


def _descend(
    G: Float64s, b: Float64s, members: list[Int64s], alpha: Float64s, tol: float, max_steps: int
) -> int:
    """Bring alpha to the minimum, in place; returns the number of steps."""
    support = alpha > 0
    steps = 0
    while steps < max_steps:
        while steps < max_steps:
            steps += 1
            if _step(G, b, members, alpha, support):
                break
        product = G @ alpha
        gradient = product - b
        allowed = tol * float(np.abs(product) @ alpha + np.abs(b) @ alpha)
        gaps = np.array([gradient[own] @ alpha[own] - gradient[own].min() for own in members])
        if gaps.sum() <= allowed:
            break
        entering = np.array([own[int(np.argmin(gradient[own]))] for own in members])
        entering = entering[(gaps > allowed / len(members)) & ~support[entering]]
        if not len(entering):
            break  # all in the support: rounding keeps the gap from falling any further
        support[entering] = True
    for own in members:
        alpha[own] /= alpha[own].sum()
    return steps


def _step(
    G: Float64s,
    b: Float64s,
    members: list[Int64s],
    alpha: Float64s,
    support: NDArray[np.bool_],
) -> bool:
    """Step towards the minimum on the support; returns whether that was reached."""
    # In each block the largest part depends on the others: that keeps the sum at 1.
    pivot = np.empty(len(alpha), np.int64)
    for own in members:
        pivot[own] = own[int(np.argmax(alpha[own]))]
    rest = np.flatnonzero(support & (pivot != np.arange(len(alpha))))
    if not len(rest):
        return True
    lead = pivot[rest]
    gradient = G @ alpha - b
    rows = G[rest] - G[lead]
    move, bounded = _minimum(rows[:, rest] - rows[:, lead], gradient[rest] - gradient[lead])
    direction = np.zeros(len(alpha))
    direction[rest] = move
    np.subtract.at(direction, lead, move)
    falling = np.flatnonzero(direction < 0)
    limits = alpha[falling] / -direction[falling]
    nearest = int(np.argmin(limits)) if len(limits) else -1
    reached = nearest < 0 or bool(bounded and limits[nearest] >= 1)
    length = 1.0 if reached else limits[nearest]
    alpha[:] = np.maximum(alpha + length * direction, 0.0)
    if not reached:
        dropped = falling[nearest]
        alpha[dropped] = 0.0
        support[dropped] = False
    return reached
