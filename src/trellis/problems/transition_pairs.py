"""Which pairs of labels have transition weights, where not all have.

Of the L² pairs of many labels few follow each other in the data. The others would learn from their
absence alone, and that is evidence only where a pair is to be expected: with p(i) and q(j) the
shares of the labels that edges begin and end with, as far as they are known, and n edges, the
pairs are

    {(i, j) : seen, or n p(i) q(j) ≥ 1, or with a weight already};

the transitions of all others are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Int64s
from trellis.corpus.corpus import bounds
from trellis.problems.samples import LabelSamples

__all__ = ["MANY_LABELS", "is_listed", "listed_pairs", "observed_pairs", "with_weights"]

MANY_LABELS = 400
"""Labels from which on "auto" is "observed"."""

# Pairs of a label from which on it has a loop of its own.
_LOOP = 16

# "auto" is so only if this share of the edges is known: of few edges too few pairs were seen.
_KNOWN = 0.2


def is_listed(samples: LabelSamples) -> bool:
    """Whether some pairs only have transition weights."""
    if samples.transitions != "auto" or samples.n_labels < MANY_LABELS:
        return samples.transitions == "observed"
    edges, known = _edges(samples)
    return len(known) >= _KNOWN * len(edges)


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
    edges, known = _edges(samples)
    shares = []
    for end in (edges - 1, edges):
        count = np.bincount(ids[end[ids[end] < n_labels]], minlength=n_labels)
        shares.append(count / max(count.sum(), 1))
    expected = np.flatnonzero(len(edges) * np.outer(*shares) >= 1 - 1e-9)
    return np.union1d(ids[known - 1] * n_labels + ids[known], expected)


def _edges(samples: LabelSamples) -> tuple[Int64s, Int64s]:
    """Positions where edges end: all, and those of edges that both labels are known of."""
    inside = np.ones(len(samples.labels.ids), np.bool_)
    inside[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = False
    edges = np.flatnonzero(inside)
    known = samples.labels.ids < samples.n_labels
    return edges, edges[known[edges - 1] & known[edges]]


def with_weights(pairs: Int64s, transitions: NDArray[Any]) -> Int64s:
    """The pairs, and those whose transitions (L, L) are not zero: learned from other data."""
    return np.union1d(pairs, np.flatnonzero(transitions))


def listed_pairs(pairs: Int64s, n_labels: int) -> Any:
    """Pairs i · L + j, ascending, as kernels take them (:mod:`trellis.kernels.listed_pairs`)."""
    from trellis.kernels.listed_pairs import ListedPairs, PairOrder

    ends = np.divmod(pairs, n_labels)
    number = [np.bincount(end, minlength=n_labels) for end in ends]
    orders = []
    for k in (0, 1):
        many = number[k] >= _LOOP
        pair = np.lexsort((pairs, ends[k], ~many[ends[k]]))
        label = np.flatnonzero(many)
        # The fewer bytes the better: all pairs are gone through at each position.
        small = np.int16 if n_labels < 1 << 15 else np.int32
        start, end = (ends[e][pair].astype(small) for e in (k, 1 - k))
        ptr = bounds(number[k][label])
        orders.append(PairOrder(label.astype(np.int32), ptr, pair, start, end))
    return ListedPairs(bounds(number[0]), ends[1].astype(np.int32), *orders)
