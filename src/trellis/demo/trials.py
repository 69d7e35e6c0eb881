"""Ways to combine on trial: F1 on test sentences, with intervals, by how much gold there was.

F1 is of spans, in per cent. Sentences with right answers are called gold. Where only some of those
that there are may be used, several parts of them are taken in turn and their F1 averaged. Intervals
of 95 % are of a bootstrap over test sentences and over these parts; those of differences are
paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.evaluation.spans import sample_counts
from trellis.experts import AutoCombiner, BestExpert, ExpertOutputs, MajorityVote

__all__ = ["Estimate", "Study", "Trial", "signed", "span_f1"]

Labels = list[list[str]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval.

    Examples
    --------
    >>> Estimate(2.0, 0.5, 3.5).sign, Estimate(0.3, -0.1, 0.7).sign
    (1, 0)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Estimate:
        """From a figure and, after it, what it is in each resample."""
        low, high = np.quantile(values[1:], [0.025, 0.975])
        return cls(float(values[0]), float(low), float(high))

    @property
    def sign(self) -> int:
        """1 or -1 if its interval, as it is shown, is above or below 0, else 0."""
        return int(round(self.low, 1) > 0) - int(round(self.high, 1) < 0)


@dataclass(frozen=True)
class Trial:
    """F1 on the test sentences with so many gold ones.

    Attributes
    ----------
    n_gold : int
    vote, combined : Estimate
        Of the plain vote and of ``AutoCombiner``.
    gain : Estimate
        Of the latter over the vote.
    methods : tuple of str
        What it took, for each part of the gold.
    best, gain_of_best : Estimate or None
        Of the single system that is best on the gold, and its gain over the vote.
    more : Estimate or None
        What the gold adds to what ``AutoCombiner`` does without.
    """

    n_gold: int
    vote: Estimate
    combined: Estimate
    gain: Estimate
    methods: tuple[str, ...]
    best: Estimate | None = None
    gain_of_best: Estimate | None = None
    more: Estimate | None = None


class Study:
    """Answers to the test sentences, measured with the same resamples of them throughout.

    Parameters
    ----------
    new : ExpertOutputs
        What the systems answer to the test sentences.
    truth : list of lists of str
        What is right there.
    alone : AutoCombiner
        One that learned without gold, to compare with.
    n_parts : int
        Parts of the gold that are taken in turn, where there are so many.
    n_resamples, seed : int
        Of the bootstrap.
    """

    def __init__(
        self,
        new: ExpertOutputs,
        truth: Labels,
        alone: AutoCombiner,
        n_parts: int,
        n_resamples: int,
        seed: int,
    ) -> None:
        self._new, self._truth, self._n_parts = new, truth, n_parts
        self._rng = np.random.default_rng(seed)
        n = len(truth)
        self.weights = self._rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(float)
        self._method_alone = alone.method_
        self._alone = self._scores(alone)

    def without_gold(self, said: ExpertOutputs) -> Trial:
        """The plain vote, and the combination that learned without gold."""
        vote = self._scores(MajorityVote().fit(said))
        return Trial(
            n_gold=0,
            vote=Estimate.of(vote),
            combined=Estimate.of(self._alone),
            gain=Estimate.of(self._alone - vote),
            methods=(self._method_alone,),
        )

    def with_gold(
        self, said: ExpertOutputs, gold: Labels, size: int, done: AutoCombiner | None = None
    ) -> Trial:
        """Combine with so many gold sentences, and nothing else; it may be done already."""
        n_parts = 1 if done else max(1, min(self._n_parts, len(gold) // size))
        best, vote, learned, methods = [], [], [], []
        for k in range(n_parts):
            part = slice(k * size, (k + 1) * size)
            known, right = said.take(part), gold[part]
            combiner = done or AutoCombiner().fit(known, right)
            methods.append(combiner.method_)
            learned.append(self._scores(combiner))
            best.append(self._scores(BestExpert().fit(known, right)))
            vote.append(self._scores(MajorityVote().fit(known, right)))
        n_resamples = len(self.weights)
        lots = self._rng.integers(0, n_parts, (n_resamples, n_parts))
        one, two, three = (_averaged(scores, lots) for scores in (best, vote, learned))
        return Trial(
            n_gold=size,
            vote=Estimate.of(two),
            combined=Estimate.of(three),
            gain=Estimate.of(three - two),
            methods=tuple(methods),
            best=Estimate.of(one),
            gain_of_best=Estimate.of(one - two),
            more=Estimate.of(three - self._alone),
        )

    def _scores(self, combiner: Any) -> Floats:
        """F1 on all test sentences, then on each resample of them."""
        counts = sample_counts(self._truth, combiner.predict(self._new), "BIO")
        return span_f1(np.vstack([counts.sum(axis=0), self.weights @ counts]))


def _averaged(scores: Sequence[Floats], lots: NDArray[np.int64]) -> Floats:
    """Means over the parts of the gold, in a resample over those that were drawn."""
    rows = np.array(scores)
    drawn = np.take_along_axis(rows[:, 1:].T, lots, axis=1)
    return np.concatenate([[rows[:, 0].mean()], drawn.mean(axis=1)])


def span_f1(counts: NDArray[Any]) -> Floats:
    """F1 in per cent of numbers (..., 3) of correct, predicted and gold spans.

    Examples
    --------
    >>> float(span_f1(np.array([3, 4, 6])))
    60.0
    """
    correct, both = counts[..., 0], counts[..., 1] + counts[..., 2]
    f1: Floats = 200.0 * correct / np.maximum(both, 1)
    return f1


def signed(value: float) -> str:
    """A difference with its sign.

    Examples
    --------
    >>> signed(-0.24)
    '−0.2'
    """
    return f"{value:+.1f}".replace("-", "−")
