r"""Which unmarked positions are missed mentions: learning from positive and unlabelled examples.

Annotators marked some mentions and passed over others, so that a position without a mark may be
outside or be part of a mention that was missed. A model that was trained as if all unmarked
positions were outside, and has not seen the sample that it judges, gives each position v the
chance :math:`q_v` of being in a mention. The chance is of little use as a number, since the model
was taught that mentions are rare, but it puts the positions in order: the marked ones among
neighbours in that order are the share c that is marked of their mentions. (That marks fall on
mentions by chance, likely or unlikely ones alike, is what is presumed.)

1. *Share of the mentions that are marked.* Among the positions with the highest chances nearly all
   are in mentions, so the share of marked ones there is nearly c, and less with any that is not:

   .. math:: \hat c = \max_\theta \frac{M_\theta}{M_\theta + U_\theta},

   :math:`M_\theta, U_\theta` being the numbers of marked and unmarked positions with
   :math:`q \ge \theta`. Only θ with a tenth of the marked positions above them count (and with
   fifty, if there are as many), lest the maximum be one of noise.
2. *Chance that a position is marked*, :math:`m_v`, by isotonic regression of the marks on
   :math:`q_v`.
3. *Chance that an unmarked position is in a mention.* Of mentions like it the share c is marked, so

   .. math:: p_v = \frac{m_v}{1 - m_v} \cdot \frac{1 - \hat c}{\hat c}.

C. Elkan and K. Noto, *Learning classifiers from only positive and unlabeled data*, KDD 2008.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s

__all__ = ["missed_by_type", "missed_chances", "share_marked"]

# Marked positions above a threshold that counts: this share of them, and so many if there are.
_SHARE, _FEWEST = 0.1, 50

# Marked less often than this share of the share of all, a type is judged by itself.
_SELDOM = 0.5

# All mentions are never surely marked.
_MOST_MARKED = 0.98


def share_marked(marked: Bools, chances: Float64s, *, fewest: int = _FEWEST) -> float:
    """Share of the positions in mentions that are marked.

    Parameters
    ----------
    marked : bool, shape (N,)
        Whether each position is marked; at least one is.
    chances : float64, shape (N,)
        How likely each is to be in a mention, by a model that has not seen it; only the order
        counts.
    fewest : int
        Marked positions above a threshold that counts, if there are as many.

    Examples
    --------
    Of the hundred most likely positions, every other is marked; of the rest none is:

    >>> chances = np.linspace(1, 0, 1000)
    >>> marked = (np.arange(1000) < 100) & (np.arange(1000) % 2 == 0)
    >>> round(share_marked(marked, chances), 2)
    0.51
    """
    order = np.argsort(-chances, kind="stable")
    above = np.cumsum(marked[order])
    n_marked = int(above[-1])
    needed = max(int(np.ceil(_SHARE * n_marked)), min(fewest, n_marked))
    # A threshold lies between different chances.
    last = np.append(np.diff(chances[order]) < 0, True)
    counts = last & (above >= needed)
    return float((above / np.arange(1, len(order) + 1))[counts].max())


def missed_chances(marked: Bools, chances: Float64s) -> Float64s:
    """Chance of each unmarked position to be in a mention that was missed; 0 of marked ones.

    Parameters
    ----------
    marked : bool, shape (N,)
    chances : float64, shape (N,)
        As for :func:`share_marked`.

    Examples
    --------
    >>> chances = np.linspace(1, 0, 1000)
    >>> marked = (np.arange(1000) < 100) & (np.arange(1000) % 2 == 0)
    >>> missed = missed_chances(marked, chances)
    >>> missed[1].round(1), missed[999].round(1)
    (np.float64(1.0), np.float64(0.0))
    """
    from scipy.optimize import isotonic_regression

    result = np.zeros(len(marked))
    if not marked.any():
        return result
    share = min(share_marked(marked, chances), _MOST_MARKED)
    # Equal chances are one point of the regression.
    _, place, count = np.unique(chances, return_inverse=True, return_counts=True)
    mean = np.bincount(place, marked) / count
    m = isotonic_regression(mean, weights=count.astype(np.float64)).x[place]
    odds = m * (1 - share) / (share * np.maximum(1 - m, 1e-9))
    result[~marked] = np.minimum(odds[~marked], 1.0)
    return result


def missed_by_type(types: Int64s, chances: Float64s) -> Float64s:
    """The same where mentions have types, some of which may be marked far less often than others.

    Types of which less than half the share of all is marked are judged by themselves, all others
    together: a share of a type alone is estimated from fewer marks, and worse.

    Parameters
    ----------
    types : int64, shape (N,)
        The type that each position is marked as, −1 if it is not marked.
    chances : float64, shape (N, K)
        Chance of each position to be in a mention of each type.

    Examples
    --------
    >>> chances = np.linspace(1, 0, 1000)
    >>> types = np.where((np.arange(1000) < 100) & (np.arange(1000) % 2 == 0), 0, -1)
    >>> missed = missed_by_type(types, np.stack([chances, np.zeros(1000)], axis=1))
    >>> bool(np.array_equal(missed, missed_chances(types == 0, chances)))
    True
    """
    overall = share_marked(types >= 0, chances.sum(axis=1))
    alone: list[list[int]] = []
    together: list[int] = []
    for k, n_marks in enumerate(np.bincount(types[types >= 0], minlength=chances.shape[1])):
        seldom = False
        if n_marks >= _FEWEST:
            used = (types < 0) | (types == k)  # what is marked as another type says nothing
            share = share_marked(types[used] == k, chances[used, k], fewest=_FEWEST // 5)
            seldom = share < _SELDOM * overall
        if seldom:
            alone.append([k])
        else:
            together.append(k)
    result = np.zeros(len(types))
    for group in [*alone, together]:
        marked = np.isin(types, group)
        used = marked | (types < 0)
        result[used] += missed_chances(marked[used], chances[used][:, group].sum(axis=1))
    return np.minimum(result, 1.0)
