r"""How good answers are: a score of sums over samples.

For each sample the numbers :math:`c_i \in \mathbb{R}^k` are counted, and the score of a set of
samples is a function of their sum, so that resampling adds up counts and never looks at answers
again:

============  =============================================  ==========================
``hamming``   positions that are right, all positions        share
``span-f1``   spans that are right, predicted, and in gold   2 right / (predicted + gold)
``exact``     1 if the sample is all right, 1                share
``edit``      edit distance, length of the right answer      error rate (less is better)
============  =============================================  ==========================
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.evaluation.edit_distance import edit_distance
from trellis.evaluation.spans import sample_counts

__all__ = ["METRICS", "Quality"]

METRICS = {
    "hamming": "positions that are right, %",
    "span-f1": "F1 of spans, %",
    "exact": "samples that are all right, %",
    "edit": "word error rate, %",
}
"""What is measured, in words."""


@dataclass(frozen=True)
class Quality:
    """A way to score answers.

    Attributes
    ----------
    metric : str
        One of ``METRICS``.
    scheme : str or None
        Tag scheme of the labels, for ``span-f1``; None: answers are spans (start, end, type).

    Examples
    --------
    >>> quality = Quality("hamming")
    >>> counts = quality.counts([["a", "b"], ["a"]], [["a", "a"], ["a"]])
    >>> counts.tolist(), round(float(quality.score(counts.sum(axis=0))), 1)
    ([[1.0, 2.0], [1.0, 1.0]], 66.7)
    """

    metric: str
    scheme: str | None = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise DataError(f"metric is {self.metric!r}: expected {', '.join(METRICS)}")

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return -1 if self.metric == "edit" else 1

    def counts(self, gold: Sequence[Any], answers: Sequence[Any]) -> Float64s:
        """Numbers of each sample, (S, k)."""
        pairs = list(zip(gold, answers, strict=True))
        rows: list[tuple[int, ...]]
        if self.metric == "span-f1":
            if self.scheme is not None:
                return sample_counts(gold, answers, self.scheme).astype(np.float64)
            sets = [({tuple(s[:3]) for s in g}, {tuple(s[:3]) for s in a}) for g, a in pairs]
            rows = [(len(g & a), len(a), len(g)) for g, a in sets]
        elif self.metric == "edit":
            rows = [(0 if g == a else edit_distance(g, a), len(g)) for g, a in pairs]
        elif self.metric == "exact":
            rows = [(list(g) == list(a), 1) for g, a in pairs]
        else:
            rows = [(sum(map(operator.eq, g, a)), len(g)) for g, a in pairs]
        return np.array(rows, np.float64)

    def score(self, sums: NDArray[Any]) -> Float64s:
        """Score in per cent of sums (..., k); 0 where there is nothing to count."""
        top, below = sums[..., 0], sums[..., 1]
        if self.metric == "span-f1":
            top, below = 2 * top, below + sums[..., 2]
        scores: Float64s = 100.0 * np.divide(top, below, out=np.zeros(top.shape), where=below > 0)
        return scores
