r"""What "auto" stands for, by the data: dense features, and passes at a fixed rate.

Features are *dense* if each of F is met at many of N positions (a sensor, a pixel, a letter of a
small alphabet), and sparse if most are met at a few (words and what is made of them):

.. math:: n \ge 20 F \quad\text{and}\quad n \ge N F / 100,

n being the number of features of all positions together. Dense ones have few weights, each with
much data, which want the optimum and a penalty; L-BFGS finds it in seconds. (A fixed rate is wrong
for them: each step moves all weights.) Of sparse ones the mean of weights on the way predicts
better than the optimum, and comes sooner.

Passes of averaged steps: eight for 200,000 positions and more, the more for fewer, since weights
must get from zero to where the mean is worth taking: :math:`8 \, (200{,}000 / N)^{0.27}`, at most
50.
``python -m benchmarks.defaults`` measures what these rules bring and what they miss.
"""

from __future__ import annotations

from trellis.problems import LabelProblem

__all__ = ["is_dense", "passes_for"]

_MET, _SHARE = 20, 0.01


def is_dense(problem: LabelProblem) -> bool:
    """Whether each feature is met at many positions."""
    met, n_features = len(problem.encoded.indices), problem.n_features
    return bool(met >= _MET * n_features and met >= _SHARE * len(problem.labels) * n_features)


def passes_for(n_positions: int) -> int:
    """How many passes of averaged steps so many positions want.

    Examples
    --------
    >>> [passes_for(n) for n in (100, 500, 5_000, 50_000, 200_000)]
    [50, 40, 22, 12, 8]
    """
    return int(min(50, max(8, round(8 * (200_000 / max(1, n_positions)) ** 0.27))))
