r"""How unsure a model is of a sample, and when to stop asking.

**Uncertainty** (Table 1.2 of Lou, Kloft, Rätsch and Hamprecht). With the best output
:math:`\hat y = \arg\max_y f(x, y; w)`, the uncertainty of a sample is :math:`q(x, w) = e^{-m}`,
where the *margin* m is

- ``"scoring"``: the score of the best output;
- ``"best-vs-worst"``: its lead over the worst one;
- ``"best-vs-second"``: its lead over the second best.

Probabilities of labels give more: ``"information-density"``, ``"token-confidence"``,
``"token-entropy"``, ``"entropy"``, ``"confidence"`` and ``"span"``
(:mod:`trellis.problems.confidence`); they are those of a CRF that learns on the way, whatever model
is trained in the end. ``"auto"`` is ``"information-density"`` for CRFs and for any model of chains
and trees, and ``"best-vs-second"`` for all others (:mod:`trellis.cheap.session`).

``"random"`` draws :math:`q \sim U(0, 1)`. The most uncertain sample has the least margin: samples
are ranked by margins, which cannot overflow, while the averages below are those of q, cut off at
:data:`LARGEST`.

``"disagreement"`` asks several experts instead. At a node where the share :math:`p_k` of them says
k, the *vote entropy* is :math:`-\sum_k p_k \log p_k / \log M`, M being the number of experts that
say anything, and the uncertainty of a sample is the mean over its nodes. For two experts it is the
share of nodes on which they disagree.

**Stopping.** With the average uncertainties :math:`\bar q_1, \bar q_2, \dots` of the samples left
after each round, the measure of convergence is

.. math::

    \eta = \bigl| \operatorname{mean}(\bar q_{t-T+1 : t}) - \operatorname{mean}(\bar q_{t-T : t-1})
    \bigr|, \tag{1.8}

where the mean is over the elements between the 10 % and the 90 % quantile. Asking ends when
:math:`\eta` is at most a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import Float64s, as_array
from trellis.domains import number, takes, whole
from trellis.errors import DataError
from trellis.problems.confidence import PROBABILITIES

__all__ = [
    "LARGEST",
    "STRATEGIES",
    "StoppingRule",
    "convergence",
    "robust_mean",
    "uncertainty",
    "vote_entropy",
]


STRATEGIES = (
    "auto", "random", "scoring", "best-vs-worst", "best-vs-second", *PROBABILITIES, "disagreement",
)  # fmt: skip
"""Ways to choose the sample to ask for."""

LARGEST = 1e100
"""Uncertainties are cut off here, so that sums of them stay finite."""


def uncertainty(margins: ArrayLike) -> Float64s:
    """Return q = exp(-margin), at most :data:`LARGEST`.

    Examples
    --------
    >>> uncertainty([0.0, np.inf, -1e9]).tolist()
    [1.0, 0.0, 1e+100]
    """
    exponent = -np.asarray(margins, np.float64)
    if np.isnan(exponent).any():
        raise DataError("margins must be numbers, got NaN; are the weights finite?")
    capped = np.minimum(exponent, math.log(LARGEST))
    q: Float64s = np.where(exponent >= math.log(LARGEST), LARGEST, np.exp(capped))
    return q


def vote_entropy(codes: NDArray[np.integer]) -> Float64s:
    """Return the normalised entropy of the votes at each node, from 0 (all agree) to 1.

    Parameters
    ----------
    codes : integers, shape (N, M)
        Label code that each of M experts gives to each node; negative: it says nothing.

    Returns
    -------
    float64, shape (N,)
        0 where fewer than two experts say anything.

    Examples
    --------
    >>> vote_entropy(np.array([[0, 0], [0, 1], [1, -1]])).tolist()
    [0.0, 1.0, 0.0]
    """
    n_labels = int(codes.max(initial=-1)) + 1
    votes = (codes[:, :, None] == np.arange(n_labels)).sum(axis=1).astype(np.float64)
    total = votes.sum(axis=1)
    several = total > 1
    share = votes[several] / total[several, None]
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    disagreement = np.zeros(len(codes))
    # Rounding may leave a trifle below 0 or above 1.
    entropy = 0.0 - (share * logs).sum(axis=1)
    disagreement[several] = np.clip(entropy / np.log(total[several]), 0.0, 1.0)
    return disagreement


def robust_mean(values: ArrayLike) -> float:
    """Return the mean of the elements between the 10 % and the 90 % quantile, both included.

    Two elements lie beyond their quantiles; their mean is the plain one.

    Examples
    --------
    >>> robust_mean([1e6, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1e6])
    5.0
    """
    array = np.asarray(values, np.float64)
    low, high = np.quantile(array, [0.1, 0.9])
    within = (array >= low) & (array <= high)
    return float(array[within].mean() if within.any() else array.mean())


@takes(window=whole(1))
def convergence(history: Sequence[float] | Float64s, window: int = 80) -> float | None:
    """Return the measure of convergence (1.8), None with fewer than ``window + 1`` values.

    Parameters
    ----------
    history : sequence of float
        Average uncertainty after each round.
    window : int
        Number T of values that are averaged.

    Examples
    --------
    >>> convergence([0.75, 0.5, 0.25, 0.25], window=3), convergence([0.5, 0.3, 0.2], window=3)
    (0.25, None)
    """
    values = as_array(history, np.float64, "history", (None,), finite=True)
    if len(values) < window + 1:
        return None
    last = values[-window - 1 :]
    return abs(robust_mean(last[1:]) - robust_mean(last[:-1]))


@dataclass(frozen=True)
class StoppingRule:
    """Stop when the average uncertainty has come to rest.

    Parameters
    ----------
    window : int
        Number T of values that are averaged.
    threshold : float
        Stop at a measure (1.8) of at most this.

    Examples
    --------
    >>> rule = StoppingRule(window=3, threshold=0.01)
    >>> rule([0.5, 0.3, 0.2, 0.2]), rule([0.5, 0.2, 0.2, 0.2, 0.2])
    (False, True)
    """

    window: int = 80
    threshold: float = 1e-4

    def __post_init__(self) -> None:
        whole(1).check("window", self.window)
        number(at_least=0, infinite=True).check("threshold", self.threshold)

    def __call__(self, history: Sequence[float] | Float64s) -> bool:
        """Whether to stop after these average uncertainties."""
        eta = convergence(history, int(self.window))
        return eta is not None and eta <= self.threshold
