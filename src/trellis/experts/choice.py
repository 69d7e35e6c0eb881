r"""Which method to trust: the plain vote, unless another one is surely better.

Methods m = 1 … M have answered each of S samples without having learned from it (cross-validation).
:math:`\delta_m` is the gain of m over the incumbent, the plain vote, and :math:`\sigma_m` the
standard error of it (paired bootstrap over samples). The rule takes

.. math:: \hat m = \arg\max_m \delta_m \quad\text{if}\quad \delta_{\hat m} > \sigma_{\hat m},

and else the incumbent. The gain of the best of M is flattered by the choice, so it is estimated
anew: in each resample the rule chooses by the samples that were drawn, and its choice is scored on
those that were not (bootstrap bias corrected cross-validation). If even that is not above 0, the
incumbent stays.

References
----------
I. Tsamardinos, E. Greasidou and G. Borboudakis, *Bootstrapping the out-of-sample predictions for
efficient and accurate cross-validation*, Machine Learning 107, 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trellis.arrays import Float64s
from trellis.experts.quality import Quality

__all__ = ["Choice", "Trial", "choose"]

_RESAMPLES = 500


@dataclass(frozen=True)
class Trial:
    """How a method did in cross-validation.

    Attributes
    ----------
    name : str
    score : float
    gain, error : float
        Difference to the incumbent, more than 0 if it is better, and its standard error.
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
        What the rule gains over the incumbent on samples that it has not seen, and the standard
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


def choose(counts: Mapping[str, Float64s], quality: Quality, seed: int | None) -> Choice:
    """Choose among methods; the first one is the incumbent.

    Parameters
    ----------
    counts : mapping of str to float64 (S, k)
        Numbers of each sample for the answers of each method (:meth:`Quality.counts`).
    quality : Quality
    seed : int or None
        Of the resampling.

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
    tables = np.stack([counts[name] for name in names])
    n = tables.shape[1]
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64)
    left = (drawn == 0).astype(np.float64)
    inside, outside = (_gains(weights, tables, quality) for weights in (drawn, left))
    scores = quality.score(tables.sum(axis=1))
    gains = quality.sign * (scores - scores[0])
    errors = inside.std(axis=1)
    # The rule in each resample: its standard errors are those of all samples.
    picks = np.where(inside > errors[:, None], inside, 0.0).argmax(axis=0)
    later = outside[picks, np.arange(_RESAMPLES)]
    gain = float(later[left.any(axis=1)].mean()) if left.any() else 0.0
    best = int(np.where(gains > errors, gains, 0.0).argmax())
    if gain <= 0:
        best = 0
    trials = tuple(
        Trial(name, float(s), float(g), float(e))
        for name, s, g, e in zip(names, scores, gains, errors, strict=True)
    )
    # What a resample leaves out is about a third of all: its spread is that of fewer samples.
    share = float(left.mean()) or 1.0
    return Choice(names[best], trials, gain, float(later.std() * np.sqrt(share)))


def _gains(weights: Float64s, tables: Float64s, quality: Quality) -> Float64s:
    """Gains (M, R) over the first method under weights (R, S) of samples."""
    scores = np.stack([quality.score(weights @ table) for table in tables])
    gains: Float64s = quality.sign * (scores - scores[0])
    return gains
