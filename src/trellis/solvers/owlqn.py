r"""OWL-QN: L-BFGS for a smooth function and an L1 penalty (Andrew & Gao 2007).

.. math:: \min_x F(x) = f(x) + c \|x\|_1, \qquad x \in R^D

F has no gradient where an entry is zero. Its *pseudo-gradient* ◇ is the slope of least size there:
with g = ∇f, ◇_i = g_i + c sign(x_i) where x_i ≠ 0, else g_i shrunk towards zero by c. One
iteration:

1. d = −H ◇, with H the inverse Hessian that L-BFGS makes of past steps and changes of g (not of ◇:
   the penalty has no curvature); entries of d that do not go downhill are zeroed.
2. The search x(α) = π(x + α d) stays in one *orthant*: entries that would change their sign are set
   to zero by π, and x_i = 0 may only go the way of −◇_i. α is halved until F falls as it should:
   F(x(α)) ≤ F(x) + 10⁻⁴ ◇ᵀ(x(α) − x).

Zeros are exact, and the point has D entries where the usual trick (x = u − v with u, v ≥ 0) has 2 D
and a bound for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trellis.arrays import Float64s

__all__ = ["Ending", "minimise_l1"]

_ENOUGH = 1e-4  # share of the fall that the slope promises
_MOST_HALVINGS = 40


class Ending(NamedTuple):
    """Where a search ended and why: "tol", "gradient", "max_iterations", "line search", "told"."""

    x: Float64s
    value: float
    reason: str


def minimise_l1(
    value_and_gradient: Callable[[Float64s], tuple[float, Float64s]],
    start: Float64s,
    l1: float,
    *,
    memory: int,
    max_iterations: int,
    tol: float,
    gradient_tol: float,
    after: Callable[[Float64s, float], bool],
) -> Ending:
    """Minimise f(x) + l1 · ‖x‖₁.

    Parameters
    ----------
    value_and_gradient : callable
        f and its gradient (an array that the next call may overwrite).
    start : float64, shape (D,)
    l1 : float
        c.
    memory : int
        Past steps that are remembered.
    max_iterations : int
    tol : float
        Stop when F falls by less than this share of itself in one iteration.
    gradient_tol : float
        Stop when no entry of the pseudo-gradient is larger.
    after : callable
        Called with x and F after each iteration; True ends the search.

    Returns
    -------
    Ending

    Examples
    --------
    >>> far = np.array([3.0, 0.5])
    >>> ending = minimise_l1(
    ...     lambda x: (0.5 * float((x - far) @ (x - far)), x - far), np.zeros(2), 1.0,
    ...     memory=5, max_iterations=50, tol=0.0, gradient_tol=1e-9, after=lambda x, value: False,
    ... )
    >>> ending.x, ending.reason
    (array([2., 0.]), 'gradient')
    """
    x = start.copy()
    smooth, slope = value_and_gradient(x)
    slope = slope.copy()
    value = smooth + l1 * float(np.abs(x).sum())
    history = _History(memory)
    for _ in range(max_iterations):
        pseudo = _pseudo_gradient(x, slope, l1)
        if float(np.abs(pseudo).max(initial=0.0)) <= gradient_tol:
            return Ending(x, value, "gradient")
        direction = history.times(pseudo)
        np.negative(direction, out=direction)
        direction[direction * pseudo >= 0] = 0
        orthant = np.where(x != 0, np.sign(x), -np.sign(pseudo))
        # The first step knows nothing of the scale of f; later ones are those of Newton's method.
        step = 1.0 if len(history) else 1 / max(float(np.linalg.norm(pseudo)), 1e-300)
        for _halving in range(_MOST_HALVINGS):
            trial = x + step * direction
            trial[trial * orthant <= 0] = 0
            smooth, trial_slope = value_and_gradient(trial)
            trial_value = smooth + l1 * float(np.abs(trial).sum())
            move = trial - x
            if trial_value <= value + _ENOUGH * float(pseudo @ move):
                break
            step /= 2
        else:
            if len(history):  # a memory that misleads: begin anew, with the slope alone
                history = _History(memory)
                continue
            return Ending(x, value, "line search")
        history.add(move, trial_slope - slope)
        x, slope = trial, trial_slope.copy()
        fell = (value - trial_value) / max(abs(value), abs(trial_value), 1.0)
        value = trial_value
        if after(x, value):
            return Ending(x, value, "told")
        if fell <= tol:
            return Ending(x, value, "tol")
    return Ending(x, value, "max_iterations")


def _pseudo_gradient(x: Float64s, slope: Float64s, l1: float) -> Float64s:
    """◇: the slope of least size of f + l1 · ‖·‖₁ at x."""
    shrunk = np.sign(slope) * np.maximum(np.abs(slope) - l1, 0.0)
    return np.where(x != 0, slope + l1 * np.sign(x), shrunk)


class _History:
    """The last steps and changes of the gradient: H, by the two loops of L-BFGS."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._pairs: list[tuple[Float64s, Float64s, float]] = []

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, move: Float64s, change: Float64s) -> None:
        """Remember a step, unless the function did not curve upwards along it."""
        curvature = float(move @ change)
        if curvature <= 1e-12 * float(change @ change):
            return
        self._pairs = [*self._pairs, (move, change, curvature)][-self._memory :]

    def times(self, vector: Float64s) -> Float64s:
        """H times a vector."""
        result, shares = vector.copy(), []
        for move, change, curvature in reversed(self._pairs):
            share = float(move @ result) / curvature
            shares.append(share)
            result -= share * change
        if self._pairs:
            _, change, curvature = self._pairs[-1]
            result *= curvature / float(change @ change)
        for (move, change, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            result += (share - float(change @ result) / curvature) * move
        return result
