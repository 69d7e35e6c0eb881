"""Losses of a boosted ensemble, measured: what Lemma 3 and Theorem 5 bound.

See Cortes, Kuznetsov and Mohri (2014); :class:`trellis.experts.ESPBoost` has ``margin_loss`` of its
own votes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import DataError
from trellis.theory.checks import at_least

__all__ = ["empirical_margin_loss", "exponential_loss"]


def exponential_loss(alphas: ArrayLike, margins: ArrayLike) -> float:
    """Lemma 3: mean over positions of exp(-Σ_t α_t ρ_t), at least the Hamming loss of H_Boost.

    Parameters
    ----------
    alphas : float (T,)
        Weights of the base experts.
    margins : float (T, N)
        Margin of each base expert at each position: 1 if right, -1 if wrong for 0/1 scores.

    Examples
    --------
    >>> from studies.measured import exponential_loss
    >>> round(exponential_loss([1.0, 0.5], [[1, 1, -1], [1, -1, 1]]), 3)
    0.826
    """
    total = _combined(alphas, margins)
    return float(np.exp(-total).mean())


def empirical_margin_loss(alphas: ArrayLike, margins: ArrayLike, rho: float) -> float:
    """Share of positions whose margin is at most ρ ‖α‖₁.

    The margin is taken as Σ_t α_t ρ_t. That is at most the margin of the combined scores, so this
    is at least the empirical margin loss of H_Boost, and Theorem 5 bounds it too.

    Examples
    --------
    >>> from studies.measured import empirical_margin_loss
    >>> round(empirical_margin_loss([1.0, 0.5], [[1, 1, -1], [1, -1, 1]], rho=0.5), 3)
    0.667
    """
    at_least(0, rho=rho)
    total = _combined(alphas, margins)
    return float((total <= rho * np.sum(np.asarray(alphas, np.float64))).mean())


def _combined(alphas: ArrayLike, margins: ArrayLike) -> NDArray[np.float64]:
    weights = np.asarray(alphas, np.float64)
    table = np.asarray(margins, np.float64)
    if weights.ndim != 1 or table.shape[:1] != weights.shape or table.ndim != 2 or not table.size:
        raise DataError("margins must be (T, N), one row for each of the T alphas")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and np.isfinite(table).all()):
        raise DataError("alphas must be non-negative numbers and margins finite")
    total: NDArray[Any] = weights @ table
    return total
