r"""Logistic regression with a Gaussian prior that need not be centred at 0.

Row i has features :math:`f_i` and is right (:math:`y_i = 1`) or wrong (0), or right with a
probability, and counts :math:`c_i` times. With prior means :math:`\mu_k` and precisions
:math:`\lambda_k` the weights minimise

.. math:: \sum_i c_i \Big(\log\big(1 + e^{w \cdot f_i}\big) - y_i\, w \cdot f_i\Big)
          + \tfrac12 \sum_k \lambda_k (w_k - \mu_k)^2,

which is strictly convex if all precisions are positive; Newton's method finds the minimum, each
step halved until the loss falls. With few rows the weights stay near :math:`\mu`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_logistic", "penalised_loss"]

Floats = NDArray[np.float64]

_STEPS, _TOLERANCE, _SHORTEST = 100, 1e-12, 1e-8


def penalised_loss(
    weights: Floats, features: Floats, right: Floats, count: Floats, mean: Floats, precision: Floats
) -> tuple[float, Floats]:
    """Value and gradient of what is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> value, gradient = penalised_loss(
    ...     np.zeros(1), np.ones((2, 1)), np.array([1.0, 0.0]), np.ones(2), np.ones(1), np.ones(1)
    ... )
    >>> round(value, 3), gradient.tolist()
    (1.886, [-1.0])
    """
    from scipy.special import expit

    logit = features @ weights
    shift = weights - mean
    value = float(
        count @ (np.logaddexp(0.0, logit) - right * logit) + 0.5 * (precision * shift) @ shift
    )
    return value, precision * shift + (count * (expit(logit) - right)) @ features


def fit_logistic(
    features: Floats,
    right: NDArray[np.bool_] | Floats,
    mean: Floats,
    precision: Floats,
    start: Floats | None = None,
    count: Floats | None = None,
) -> Floats:
    """Weights of the features, (K,).

    Parameters
    ----------
    features : float64 (n, K)
    right : bool (n,), or float64 (n,) of probabilities
    mean, precision : float64 (K,)
        Of the prior.
    start : float64 (K,), optional
        Where to begin; the mean by default.
    count : float64 (n,), optional
        How often each row counts; once by default.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.array([True, True, True, False])
    >>> w = fit_logistic(np.ones((4, 1)), right, np.zeros(1), np.full(1, 1e-9))
    >>> round(float(w[0]), 3), round(float(np.log(3)), 3)
    (1.099, 1.099)
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    count = np.ones(len(right)) if count is None else count
    known = features, right.astype(np.float64), count, mean, precision
    weights = np.array(mean if start is None else start, np.float64)
    value, gradient = penalised_loss(weights, *known)
    for _ in range(_STEPS):
        p = expit(features @ weights)
        curvature = (features.T * (count * p * (1 - p))) @ features + np.diag(precision)
        step = cho_solve(cho_factor(curvature), gradient)
        fall = float(gradient @ step)
        if fall <= _TOLERANCE * (1 + abs(value)):
            break
        length = 1.0
        while length > _SHORTEST:
            there = penalised_loss(weights - length * step, *known)
            if there[0] <= value - 0.1 * length * fall:
                break
            length /= 2
        else:
            break
        weights -= length * step
        value, gradient = there
    return weights
