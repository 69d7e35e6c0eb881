r"""Convergence of SGD with a fixed learning rate (Sun 2014, Proposition 5).

Let g be the objective, w* its minimiser and w ← w − η ∇g_z(w) the update with a mini-sample z drawn
at random. Suppose

    g is strongly convex with modulus c                          (Eq. 11)
    ‖∇g(w') − ∇g(w)‖ ≤ q ‖w' − w‖                                (Eq. 12)
    ‖∇g_z(w)‖ ≤ κ |z|, |z| the number of positions of z          (Eq. 13)
    η c < 1                                                      (Eq. 14)

Then with the rate η = c ε β α² / (q κ² n²), β ∈ (0, 1], after

    t ≥ q κ² n² log(q a_0 / ε) / (ε β c² α²)                     (Eq. 15)

updates E[g(w_t) − g(w*)] ≤ ε, where a_0 = ‖w_0 − w*‖².

So t falls as α^-2, *if c, q and κ do not change with α*. Whether they do depends on what g_z is. If
it is the loss of a mini-sample, as in Algorithm 1, then g is the mean loss of a mini-sample, which
shrinks with α, and c and q with it. If g is the loss of a position, Eq. (8), then ∇g_z is the
gradient of the mini-sample divided by n/α, and κ grows with α. ``measure_rate`` of
the repository's package ``studies.measured`` shows what happens.
"""

from __future__ import annotations

import math

from trellis.errors import DataError
from trellis.theory.checks import fraction, positive, strength, within_floats

__all__ = ["sgd_iterations", "sgd_learning_rate"]


@within_floats
def sgd_learning_rate(
    *, n: float, alpha: float, epsilon: float, c: float, q: float, kappa: float, beta: float = 1.0
) -> float:
    """Learning rate of Proposition 5: η = c ε β α² / (q κ² n²).

    Parameters
    ----------
    n : float
        Structure complexity: positions of a sample.
    alpha : float
        Strength α of structure regularisation, in [1, n].
    epsilon : float
        ε, how close g has to come to its minimum.
    c : float
        Modulus of strong convexity of g, at most q.
    q : float
        Lipschitz constant of the gradient of g.
    kappa : float
        κ: the gradient of a mini-sample has at most κ times as large a norm as it has positions.
    beta : float
        β in (0, 1]; a smaller one makes the rate smaller.

    Raises
    ------
    DataError
        If a quantity is out of its range, or η c ≥ 1, for which the proposition says nothing.

    Examples
    --------
    >>> from trellis.theory import sgd_learning_rate
    >>> setting = dict(n=20, epsilon=0.1, c=0.5, q=2.0, kappa=1.0)
    >>> [round(sgd_learning_rate(alpha=a, **setting), 8) for a in (1, 4)]
    [6.25e-05, 0.001]
    """
    strength(alpha, n)
    positive(epsilon=epsilon, c=c, q=q, kappa=kappa)
    fraction(one=True, beta=beta)
    if c > q:
        raise DataError(
            f"c = {c!r} is larger than q = {q!r}: no function is more curved everywhere than its "
            "gradient allows; give a larger q or a smaller c"
        )
    rate = c * epsilon * beta * alpha**2 / (q * kappa**2 * n**2)
    if not rate * c < 1:
        raise DataError(
            f"Proposition 5 needs eta * c < 1, but the learning rate eta = {rate:.4g} and "
            f"c = {c:.4g} give {rate * c:.4g}; use a smaller epsilon or beta"
        )
    return float(rate)


@within_floats
def sgd_iterations(
    *,
    n: float,
    alpha: float,
    epsilon: float,
    c: float,
    q: float,
    kappa: float,
    a0: float,
    beta: float = 1.0,
) -> int:
    """Number of SGD updates that suffice to come within ε of the minimum (Proposition 5, Eq. 15).

    The least whole number t ≥ q κ² n² log(q a_0 / ε) / (ε β c² α²), for the learning rate that
    :func:`sgd_learning_rate` gives; 0 if q a_0 ≤ ε, since then the start is close enough.

    Parameters
    ----------
    n, alpha, epsilon, c, q, kappa, beta : float
        As in :func:`sgd_learning_rate`, and refused as there.
    a0 : float
        Squared distance ‖w_0 − w*‖² of the start from the minimiser.

    Examples
    --------
    >>> from trellis.theory import sgd_iterations
    >>> setting = dict(n=20, epsilon=0.1, c=0.5, q=2.0, kappa=1.0, a0=100.0)
    >>> sgd_iterations(alpha=1, **setting), sgd_iterations(alpha=4, **setting)
    (243229, 15202)
    """
    positive(a0=a0)
    rate = sgd_learning_rate(n=n, alpha=alpha, epsilon=epsilon, c=c, q=q, kappa=kappa, beta=beta)
    updates = math.log(q * a0 / epsilon) / (rate * c) if rate > 0 else math.inf
    if updates == math.inf:
        raise DataError("the number of updates is too large for a float; use a larger epsilon")
    return max(0, math.ceil(updates))
