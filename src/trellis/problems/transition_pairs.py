"""Which pairs of labels have transition weights, where not all have.

Of the L² pairs of many labels few follow each other in the data. The others would learn from their
absence alone, and that is evidence only where a pair is to be expected: with n₁(i) and n₂(j) the
numbers of edges that begin in i and end in j, and n that of all edges, the pairs are

    {(i, j) : seen, or n₁(i) n₂(j) ≥ n, or with a weight already};

the transitions of all others are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Int64s
from trellis.problems.samples import LabelSamples

__all__ = ["MANY_LABELS", "observed_pairs", "with_weights"]

MANY_LABELS = 400
"""Labels from which on "auto" is "observed"."""


def observed_pairs(samples: LabelSamples) -> Int64s:
    """Pairs i · L + j that were seen or are to be expected, ascending.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems import LabelProblem
    >>> corpus = as_corpus([[["a"]] * 4], [["X", "Y", "Y", "Z"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 1)
    >>> pairs = observed_pairs(problem)  # X Y, Y Y and Y Z are seen; Y Y is to be expected, too
    >>> [f"{problem.classes[i]} {problem.classes[j]}" for i, j in zip(*divmod(pairs, 3))]
    ['X Y', 'Y Y', 'Y Z']
    """
    n_labels, ids = samples.n_labels, samples.labels.ids.astype(np.int64)
    after = np.ones(len(ids), np.bool_)
    after[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = False
    t = np.flatnonzero(after)
    t = t[(ids[t - 1] < n_labels) & (ids[t] < n_labels)]
    first, second = (np.bincount(ids[t - back], minlength=n_labels) for back in (1, 0))
    expected = np.flatnonzero(np.outer(first, second) >= max(len(t), 1))
    return np.union1d(ids[t - 1] * n_labels + ids[t], expected)


def with_weights(pairs: Int64s, transitions: NDArray[Any]) -> Int64s:
    """The pairs, and those whose transitions (L, L) are not zero: learned from other data."""
    return np.union1d(pairs, np.flatnonzero(transitions))
