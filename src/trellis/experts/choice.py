r"""Which method to trust: the one that answers without right answers, unless another is better.

Methods m = 1 … M have answered each of S samples without having learned from it (cross-validation).
The first is the plain vote. One of them is the incumbent, which would answer if nothing were known.
:math:`\delta_m` is the gain of m over the incumbent and :math:`\sigma_m` the standard error of it
(paired bootstrap over samples). The rule takes

.. math:: \hat m = \arg\max_m \delta_m \quad\text{if}\quad \delta_{\hat m} > 1.64\,\sigma_{\hat m},

and else the incumbent, or the plain vote if the incumbent is worse than it by as much. (With one
standard error, 20 to 50 right answers did more harm than good: one of many methods is better by
luck.) The gain of the best of M is flattered by the choice, so it is estimated anew: in each
resample the rule chooses by the samples that were drawn, and its choice is scored on those that
were not (bootstrap bias corrected cross-validation). If even that is not above the incumbent and
the vote, the better of the two stays.

References
----------
I. Tsamardinos, E. Greasidou and G. Borboudakis, *Bootstrapping the out-of-sample predictions for
efficient and accurate cross-validation*, Machine Learning 107, 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.experts.quality import Quality

__all__ = ["Choice", "Trial", "choose"]

_RESAMPLES = 500
_SURE = 1.64  # standard errors by which one method must be better than another


@dataclass(frozen=True)
class Trial:
    """How a method did in cross-validation.

    Attributes
    ----------
    name : str
    score : float
    gain, error : float
        Difference to the plain vote, more than 0 if it is better, and its standard error.
    """

    name: str
    score: float
    gain: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 % for the gain."""
        return self.gain - 1.96 * self.error, self.gain + 1.96 * self.error


@dataclass(frozen=True)
class Choice:
    """What the rule takes.

    Attributes
    ----------
    name : str
        The method.
    trials : tuple of Trial
        Of all methods, in the order given.
    gain, error : float
        What the rule gains over the plain vote on samples that it has not seen, and the standard
        error of that. It is an estimate for the rule, not for one method.
    """

    name: str
    trials: tuple[Trial, ...]
    gain: float
    error: float

    @property
    def trial(self) -> Trial:
        """The one of the method that was taken."""
        return next(trial for trial in self.trials if trial.name == self.name)


def choose(
    counts: Mapping[str, Float64s],
    quality: Quality,
    seed: int | None,
    incumbent: str | None = None,
) -> Choice:
    """Choose among methods.

    Parameters
    ----------
    counts : mapping of str to float64 (S, k)
        Numbers of each sample for the answers of each method (:meth:`Quality.counts`); the first
        one is the plain vote, over which gains are told.
    quality : Quality
    seed : int or None
        Of the resampling.
    incumbent : str or None
        The method that stays unless another one is surely better; None: the first.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.repeat([[1.0, 1.0], [0.0, 1.0]], [60, 40], axis=0)
    >>> better = np.repeat([[1.0, 1.0], [0.0, 1.0]], [80, 20], axis=0)
    >>> choice = choose({"vote": right, "other": better}, Quality("exact"), seed=0)
    >>> choice.name, round(choice.trial.gain), 15 < choice.gain < 25
    ('other', 20, True)
    """
    names = list(counts)
    first = names.index(incumbent) if incumbent is not None else 0
    tables = np.stack([counts[name] for name in names])
    n = tables.shape[1]
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64)
    left = (drawn == 0).astype(np.float64)
    inside, outside = (_gains(weights, tables, quality) for weights in (drawn, left))
    scores = quality.score(tables.sum(axis=1))
    gains = quality.sign * (scores - scores[0])
    errors = inside.std(axis=1)
    ahead = (inside - inside[first]).std(axis=1)  # standard errors of gains over the incumbent
    # The rule in each resample: its standard errors are those of all samples.
    picks = _picks(inside, first, ahead, errors[first])
    lots = np.arange(_RESAMPLES)
    best = int(_picks(gains[:, None], first, ahead, errors[first])[0])
    later = outside[picks, lots]
    if best not in (0, first) and min(later.mean(), (later - outside[first]).mean()) <= 0:
        best = first if gains[first] >= 0 else 0
        later = outside[best]
    trials = tuple(
        Trial(name, float(s), float(g), float(e))
        for name, s, g, e in zip(names, scores, gains, errors, strict=True)
    )
    # What a resample leaves out is about a third of all: its spread is that of fewer samples.
    error = float(later.std() * np.sqrt(left.mean()))
    return Choice(names[best], trials, float(later.mean()), error)


def _picks(gains: Float64s, first: int, ahead: Float64s, error: float) -> NDArray[np.int64]:
    """What the rule takes for each column of gains (M, R) over the plain vote."""
    over = gains - gains[first]
    sure = np.where(over > _SURE * ahead[:, None], over, 0.0)
    stays = np.where(gains[first] < -_SURE * error, 0, first)
    picks: NDArray[np.int64] = np.where(sure.max(axis=0) > 0, sure.argmax(axis=0), stays)
    return picks


def _gains(weights: Float64s, tables: Float64s, quality: Quality) -> Float64s:
    """Gains (M, R) over the first method under weights (R, S) of samples."""
    scores = np.stack([quality.score(weights @ table) for table in tables])
    gains: Float64s = quality.sign * (scores - scores[0])
    return gains
