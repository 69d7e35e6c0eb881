r"""What "auto" stands for, by the data: dense features, passes at a fixed rate, how spans end.

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

Labels in BIO are worth dividing by whether their span goes on (:mod:`trellis.corpus.refinement`) if
the data show the difference: 400 times or more an I follows an I, so that there is a middle to tell
from an end, and what follows a B or an I is known (nine times in ten). Chunks and terms of medicine
then gain at all sizes, names in news, which seldom have three words, lose; where single labels are
known here and there, terms lose, since nothing says where the spans end.

``python -m benchmarks.defaults`` measures what these rules bring and what they miss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.corpus import Labels
from trellis.problems import LabelProblem

__all__ = ["is_dense", "passes_for", "show_ends"]

_MET, _SHARE = 20, 0.01
_MIDDLES, _FOLLOWED = 400, 0.9


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


def show_ends(labels: Labels, offsets: Any) -> bool:
    """Whether labels in BIO show often enough how spans go on and end.

    Examples
    --------
    >>> from trellis.corpus import Labels
    >>> offsets = list(range(0, 1601, 4))
    >>> show_ends(Labels.from_lists([["B", "I", "I", "O"]] * 400), offsets)
    True
    >>> show_ends(Labels.from_lists([["B", "I", "I", None]] * 400), offsets)
    False
    """
    roles = np.array([label[0] for label in labels.classes] + ["?"])
    role = roles[np.minimum(labels.ids, len(labels.classes))]
    goes_on = np.ones(len(role), bool)  # into a next position of the same sample
    goes_on[np.asarray(offsets, np.int64)[1:] - 1] = False
    now, then = role[goes_on], np.roll(role, -1)[goes_on]
    within = (now == "B") | (now == "I")
    known = int((within & (then != "?")).sum())
    middles = int(((now == "I") & (then == "I")).sum())
    return middles >= _MIDDLES and known >= _FOLLOWED * int(within.sum())
