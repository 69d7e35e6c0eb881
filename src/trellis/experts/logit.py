r"""Conditional logit: which of several candidates is the right one (McFadden 1974).

Question q has the candidates a ∈ A(q) with features f(a). The model and what is minimised are

.. math:: p(a \mid q) = \frac{e^{w \cdot f(a)}}{\sum_{b \in A(q)} e^{w \cdot f(b)}}, \qquad
          -\sum_q \log p(a^*_q \mid q) + \lambda \|w\|^2,

which is convex; L-BFGS finds the minimum. Questions whose right answer is no candidate teach
nothing and are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_candidates", "fit_logit"]


def fit_logit(
    features: Any, ends: NDArray[np.int64], right: NDArray[np.bool_], l2: float
) -> NDArray[np.float64]:
    """Weights of the features.

    Parameters
    ----------
    features : float (A, F), dense or scipy.sparse
        Features of all candidates, those of one question after those of another.
    ends : int64 (Q + 1,)
        Question q has the candidates ``ends[q]:ends[q + 1]``, at least one.
    right : bool (A,)
        Whether a candidate is right: at most one of a question is.
    l2 : float
        λ.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.eye(2)[[0, 1] * 4]
    >>> right = np.array([True, False] * 3 + [False, True])
    >>> w = fit_logit(features, np.arange(0, 10, 2), right, l2=0.0)
    >>> round(float(w[0] - w[1]), 3), round(float(np.log(3)), 3)
    (1.099, 1.099)
    """
    from scipy.optimize import minimize

    taught = np.add.reduceat(right, ends[:-1], dtype=np.int64) > 0 if len(ends) > 1 else ends[:0]
    sizes = np.diff(ends)
    keep = np.repeat(taught & (sizes > 1), sizes)
    features, right = features[keep], right[keep]
    starts = np.concatenate([[0], np.cumsum(sizes[taught & (sizes > 1)])])[:-1].astype(np.int64)
    sizes = sizes[taught & (sizes > 1)]
    if not len(sizes):
        return np.zeros(features.shape[1])
    target = np.asarray(features[right].sum(axis=0)).ravel()

    def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = np.asarray(features @ w).ravel()
        top = np.repeat(np.maximum.reduceat(score, starts), sizes)
        weight = np.exp(score - top)
        total = np.add.reduceat(weight, starts)
        share = weight / np.repeat(total, sizes)
        loss = float(np.log(total).sum() - (score - top)[right].sum())
        gradient = np.asarray(features.T @ share).ravel() - target + 2 * l2 * w
        return loss + l2 * float(w @ w), gradient

    start = np.zeros(features.shape[1])
    optimum = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    weights: NDArray[np.float64] = optimum.x
    return weights


def best_candidates(scores: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the candidate with the highest score of each question, the first of equals.

    Examples
    --------
    >>> import numpy as np
    >>> best_candidates(np.array([0.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 3]
    """
    if len(ends) < 2:
        return np.zeros(0, np.int64)
    sizes = np.diff(ends)
    top = np.repeat(np.maximum.reduceat(scores, ends[:-1]), sizes)
    below = scores < top - 1e-12 * (1 + np.abs(top))  # no score that is NaN is
    index = np.where(below, len(scores), np.arange(len(scores)))
    return np.minimum.reduceat(index, ends[:-1])
