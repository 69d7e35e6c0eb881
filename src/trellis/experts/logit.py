r"""Conditional logit: which of several candidates is the right one (McFadden 1974).

Question q has the candidates a ∈ A(q) with features f(a). The model and what is minimised are

.. math:: p(a \mid q) = \frac{e^{w \cdot f(a)}}{\sum_{b \in A(q)} e^{w \cdot f(b)}}, \qquad
          -\sum_q \log p(a^*_q \mid q) + \sum_k \lambda_k (w_k - m_k)^2,

which is convex; L-BFGS finds the minimum. The mean m is what is believed before anything is
learned: with few questions the weights stay near it. Questions whose right answer is no candidate
teach nothing and are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import number, one_of
from trellis.estimator import parameter

__all__ = [
    "EQUAL", "L2", "STRENGTHS", "best_candidates", "candidate_shares", "fit_logit", "fit_shrunk",
]  # fmt: skip

L2: Any = parameter(
    one_of("auto") | number(at_least=0),
    """Factor of the squared distance of the weights from those of the plain vote; "auto": chosen by
    cross-validation, the largest within one standard error of the best.""",
    default="auto",
)

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Factors of the squared distance from the mean among which :func:`fit_shrunk` chooses."""

EQUAL = 1e-12
"""Scores closer than this, relatively, are equal."""

_FOLDS = 5
_CHOSEN_BY = 10_000  # questions at most


def fit_logit(
    features: Any,
    ends: NDArray[np.int64],
    right: NDArray[np.bool_],
    l2: float | NDArray[np.float64],
    mean: NDArray[np.float64] | None = None,
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
    l2 : float or float (F,)
        λ.
    mean : float (F,) or None
        m; None: 0.

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
    start = np.zeros(features.shape[1]) if mean is None else mean
    if not len(sizes):
        return start
    target = np.asarray(features[right].sum(axis=0)).ravel()

    def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = np.asarray(features @ w).ravel()
        top = np.repeat(np.maximum.reduceat(score, starts), sizes)
        weight = np.exp(score - top)
        total = np.add.reduceat(weight, starts)
        share = weight / np.repeat(total, sizes)
        loss = float(np.log(total).sum() - (score - top)[right].sum())
        away = l2 * (w - start)
        gradient = np.asarray(features.T @ share).ravel() - target + 2 * away
        return loss + float(away @ (w - start)), gradient

    optimum = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    weights: NDArray[np.float64] = optimum.x
    return weights


def fit_shrunk(
    features: Any,
    ends: NDArray[np.int64],
    right: NDArray[np.bool_],
    group: NDArray[np.int64],
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    l2: float | str = "auto",
) -> tuple[NDArray[np.float64], float]:
    """Weights as near to the mean as the data allow, and the strength s chosen: λ = s · scale.

    The strength is chosen by five-fold cross-validation of the log-loss over groups of questions.
    Of all strengths whose loss is within one standard error of the least it is the largest, so that
    the weights leave the mean only where that is known to pay.

    Parameters
    ----------
    features, ends, right, mean
        As for :func:`fit_logit`.
    group : int64 (Q,)
        Questions with the same number (of one sample) are in the same fold.
    scale : float64 (F,)
        Penalties of the weights relative to each other; those with 0 have one of 0.1 in all.
    l2 : float or "auto"
        The strength, if it is not to be chosen.
    """

    def fit(chosen: Any, strength: float) -> NDArray[np.float64]:
        penalty = np.where(scale > 0, strength * scale, 0.1)
        return fit_logit(chosen[0], chosen[1], chosen[2], penalty, mean)

    if not isinstance(l2, str):
        return fit((features, ends, right), l2), float(l2)
    n = len(np.unique(group))
    if n < 2:
        return mean, STRENGTHS[-1]
    every = (features, ends, right)
    if len(group) > _CHOSEN_BY:  # enough to choose a strength by, but two groups at least
        cut = max(np.sort(group)[_CHOSEN_BY], np.unique(group)[1])
        kept = group <= cut
        sizes = np.diff(ends)
        rows = np.repeat(kept, sizes)
        features, right, group = features[rows], right[rows], group[kept]
        ends = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    names, place = np.unique(group, return_inverse=True)
    n = len(names)
    fold = (place % _FOLDS).reshape(-1)
    sizes = np.diff(ends)
    row_fold = np.repeat(fold, sizes)
    losses = np.zeros((len(STRENGTHS), n))
    for k in range(min(_FOLDS, n)):
        parts = []
        for rows, questions in ((row_fold != k, fold != k), (row_fold == k, fold == k)):
            new = np.concatenate([[0], np.cumsum(sizes[questions])]).astype(np.int64)
            parts.append((features[rows], new, right[rows]))
        rest, held = parts
        known = np.add.reduceat(held[2], held[1][:-1], dtype=np.int64) > 0
        for s, strength in enumerate(STRENGTHS):
            share = candidate_shares(np.asarray(held[0] @ fit(rest, strength)).ravel(), held[1])
            of_right = np.add.reduceat(np.where(held[2], share, 0.0), held[1][:-1])
            loss = np.where(known, -np.log(np.maximum(of_right, 1e-9)), 0.0)
            losses[s] += np.bincount(place.reshape(-1)[fold == k], loss, n)
    best = losses[losses.mean(axis=1).argmin()]
    worse = losses - best
    allowed = worse.mean(axis=1) <= worse.std(axis=1, ddof=1) / np.sqrt(n) + 1e-12
    strength = STRENGTHS[int(np.flatnonzero(allowed)[-1])]
    return fit(every, strength), strength


def candidate_shares(scores: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """p(a | q) of candidates with these scores w·f(a).

    Examples
    --------
    >>> import numpy as np
    >>> candidate_shares(np.array([0.0, 0.0, 7.0]), np.array([0, 2, 3])).tolist()
    [0.5, 0.5, 1.0]
    """
    sizes = np.diff(ends)
    if not len(sizes):
        return np.zeros(0)
    weight = np.exp(scores - np.repeat(np.maximum.reduceat(scores, ends[:-1]), sizes))
    shares: NDArray[np.float64] = weight / np.repeat(np.add.reduceat(weight, ends[:-1]), sizes)
    return shares


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
    below = scores < top - EQUAL * (1 + np.abs(top))  # no score that is NaN is
    index = np.where(below, len(scores), np.arange(len(scores)))
    return np.minimum.reduceat(index, ends[:-1])
