"""R_obj, what GLACER lowers: the mean loss and how much the losses depend on the examples.

For predictions Phi_i of N examples z_i = (x_i, y_i), with v the variance of y,

    R_obj = sqrt(R_emp^2 + dCorr^2(L, Z)),   R_emp = mean_i l_i,   L = (l_1..l_N), Z = (z_1..z_N)

    "paper"       l_i = 1 - exp(1/N - (y_i - Phi_i)^2 / v - 1)
    "r2_sum"      l_i = 1 - exp(1/N - (y_i - Phi_i)^2 / (N v) - 1): the exponents + 1 sum to R^2
    "zero_based"  l_i = 1 - exp(-(y_i - Phi_i)^2 / v): a perfect fit has 0, not the paper's 0.632

Above 10,000 examples the distance correlation is that of 64 random projections, always the same.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, one_of
from trellis.errors import DataError
from trellis.regression.distance_correlation import CentredDistances
from trellis.regression.rows import check_targets, finite_rows

__all__ = ["LOSSES", "Loss", "Objective"]

Loss = Literal["paper", "r2_sum", "zero_based"]

LOSSES = ("paper", "r2_sum", "zero_based")
_PROJECTIONS = 64
_EXACT_UP_TO = 10_000


class Objective:
    """R_obj of ensemble predictions on fixed examples.

    Parameters
    ----------
    X : (N, d)
    y : (N,)
    loss : {"paper", "r2_sum", "zero_based"}
    use_dcorr : bool
        False leaves R_emp alone.
    standardise : bool
        Whether the columns of (X, y) are scaled to unit variance before distances are taken.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> objective = Objective(y[:, None], y, loss="zero_based")
    >>> [float(v[0]) for v in objective(y[None, :])]  # a perfect fit
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        X: Float64s,
        y: Float64s,
        *,
        loss: Loss = "paper",
        use_dcorr: bool = True,
        standardise: bool = False,
    ) -> None:
        one_of("paper", "r2_sum", "zero_based").check("loss", loss)
        flag.check("use_dcorr", use_dcorr)
        flag.check("standardise", standardise)
        X = finite_rows(X, "X", flat=True)
        y = check_targets(y, len(X))
        if not np.var(y) > 0:
            raise DataError("targets are so small that their variance is 0; multiply them")
        self._y, self._loss = y, loss
        self._distances: CentredDistances | None = None
        if use_dcorr:
            Z = np.column_stack([X, y])
            if standardise:
                spread = Z.std(axis=0)
                Z = (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            count = _PROJECTIONS if len(y) > _EXACT_UP_TO else None
            self._distances = CentredDistances(Z, n_projections=count)

    def losses(self, predictions: Float64s) -> Float64s:
        """Return the loss of every example, for each row of `predictions`, (c, N)."""
        n = len(self._y)
        predictions = as_array(predictions, np.float64, "predictions", (None, n), finite=True)
        errors = (predictions - self._y) ** 2 / np.var(self._y)
        if self._loss == "zero_based":
            return np.asarray(-np.expm1(-errors))
        if self._loss == "r2_sum":
            errors = errors / n
        return np.asarray(-np.expm1(1.0 / n - errors - 1.0))

    def __call__(self, predictions: Float64s) -> tuple[Float64s, Float64s, Float64s]:
        """Return R_obj, R_emp and dCorr for each row of `predictions`, (c, N)."""
        losses = self.losses(predictions)
        r_emp = losses.mean(axis=1)
        if self._distances is None:
            return r_emp, r_emp, np.zeros(len(r_emp))
        squared = self._distances.correlation_squared(losses)
        return np.sqrt(r_emp**2 + squared), r_emp, np.sqrt(squared)
