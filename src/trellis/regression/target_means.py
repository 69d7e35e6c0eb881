"""Target means: a category with many values as one number, the mean target of its rows.

The mean of a value with few rows is mostly noise, so it is drawn towards that of all. With s^2 the
variance of targets within values and t^2 that between them, a value v with n_v rows becomes

    m + w_v (m_v - m),    w_v = n_v t^2 / (n_v t^2 + s^2)

(the posterior mean of a normal m_v; Micci-Barreca 2001). A row that helped to make its own number
would give its target away: rows that are trained on get numbers made from the other folds.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int64s

__all__ = ["crossed_means", "level_means"]

_FOLDS = 5


def level_means(codes: Int64s, y: Float64s, n_levels: int) -> Float64s:
    """Return one number for each value of a category, and last that of values never seen.

    Parameters
    ----------
    codes : (n,)
        Which value each row has, -1 for none of those known.
    y : (n,)
        Targets.
    n_levels : int
        How many values there are.

    Examples
    --------
    >>> level_means(np.array([0, 0, 0, 1, 1]), np.array([1.0, 1.2, 0.8, 5.0, 5.0]), 2).round(2)
    array([1.  , 4.99, 2.6 ])
    """
    seen = codes >= 0
    count = np.bincount(codes[seen], minlength=n_levels)
    total = np.bincount(codes[seen], weights=y[seen], minlength=n_levels)
    overall = float(y.mean())
    own = total / np.maximum(count, 1)
    residual = y[seen] - own[codes[seen]]
    freedom = max(int(seen.sum()) - int((count > 0).sum()), 1)
    within = float(residual @ residual) / freedom
    between = max(float(y.var()) - within, 1e-3 * float(y.var()))
    weight = count * between / np.maximum(count * between + within, np.finfo(float).tiny)
    return np.append(overall + weight * (own - overall), overall)


def crossed_means(codes: Int64s, y: Float64s, n_levels: int, random_state: int) -> Float64s:
    """Return the number of each row, made from rows of other folds.

    Examples
    --------
    >>> codes, y = np.zeros(10, np.int64), np.append(np.zeros(9), 100.0)
    >>> float(crossed_means(codes, y, 1, 0)[9])
    0.0
    """
    n = len(y)
    fold = np.arange(n) % _FOLDS
    np.random.default_rng(random_state).shuffle(fold)
    values = np.empty(n)
    for f in range(_FOLDS):
        held = fold == f
        if held.any():
            rest = ~held if not held.all() else held
            values[held] = level_means(codes[rest], y[rest], n_levels)[codes[held]]
    return values
