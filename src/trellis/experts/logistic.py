r"""Logistic regression with a Gaussian prior that need not be centred at 0.

Row i has features :math:`f_i` and is right (:math:`y_i = 1`) or wrong (:math:`y_i = -1`). With
prior means :math:`\mu_k` and precisions :math:`\lambda_k` the weights minimise

.. math:: \sum_i \log\big(1 + e^{-y_i\, w \cdot f_i}\big)
          + \tfrac12 \sum_k \lambda_k (w_k - \mu_k)^2,

which is strictly convex if all precisions are positive; L-BFGS finds the minimum. With few rows the
weights stay near :math:`\mu`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_logistic", "penalised_loss"]

Floats = NDArray[np.float64]


def penalised_loss(
    weights: Floats, features: Floats, sign: Floats, mean: Floats, precision: Floats
) -> tuple[float, Floats]:
    """Value and gradient of what is minimised; ``sign`` (n,) is 1 for right rows, -1 for wrong.

    Examples
    --------
    >>> import numpy as np
    >>> value, gradient = penalised_loss(
    ...     np.zeros(1), np.ones((2, 1)), np.array([1.0, -1.0]), np.ones(1), np.ones(1)
    ... )
    >>> round(value, 3), gradient.tolist()
    (1.886, [-1.0])
    """
    from scipy.special import expit

    margin = sign * (features @ weights)
    shift = weights - mean
    value = float(np.logaddexp(0.0, -margin).sum() + 0.5 * (precision * shift) @ shift)
    return value, precision * shift - (sign * expit(-margin)) @ features


def fit_logistic(
    features: Floats,
    right: NDArray[np.bool_],
    mean: Floats,
    precision: Floats,
    start: Floats | None = None,
) -> Floats:
    """Weights of the features, (K,).

    Parameters
    ----------
    features : float64 (n, K)
    right : bool (n,)
    mean, precision : float64 (K,)
        Of the prior.
    start : float64 (K,), optional
        Where to begin; the mean by default.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.array([True, True, True, False])
    >>> w = fit_logistic(np.ones((4, 1)), right, np.zeros(1), np.full(1, 1e-9))
    >>> round(float(w[0]), 3), round(float(np.log(3)), 3)
    (1.099, 1.099)
    """
    from scipy.optimize import minimize

    sign = np.where(right, 1.0, -1.0)
    optimum = minimize(
        penalised_loss, mean if start is None else start, (features, sign, mean, precision),
        method="L-BFGS-B", jac=True, options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-6},
    )  # fmt: skip
    weights: Floats = optimum.x
    return weights
