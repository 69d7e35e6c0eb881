r"""Shares of positions and of samples that are right.

With :math:`A` the annotated positions, :math:`Y_{it}` the set of labels allowed at position t of
sample i and :math:`\hat y` the prediction,

.. math:: \text{accuracy} = \frac{1}{|A|} \sum_{(i,t) \in A} [\hat y_{it} \in Y_{it}].

The Hamming loss is one minus that, over all positions at once (``average="token"``) or within each
sample first (``average="sample"``: the normalised Hamming loss of the structured-prediction
literature, in which a short sample weighs as much as a long one).

A gold entry of ``None`` is not annotated and skipped. A set of labels is right if the prediction
is in it: an *optimistic* count where the set is large, since the full set is never wrong.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import chain, repeat
from operator import eq, is_not
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.label_values import is_missing
from trellis.domains import one_of
from trellis.errors import DataError
from trellis.evaluation.pairs import Gold, Labels, check_lengths, single_label

__all__ = ["hamming_loss", "sequence_accuracy", "token_accuracy"]

_PLAIN = {str, int, bool, type(None)}  # gold entries that are told right from wrong by ==


def token_accuracy(gold: Gold, predicted: Labels) -> float:
    """Share of the annotated positions whose prediction is right.

    Parameters
    ----------
    gold : list of lists of labels
        An entry may be None (skipped) or a set of allowed labels.
    predicted : list of lists of labels

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DataError
        If lengths differ or no position is annotated.

    Examples
    --------
    >>> token_accuracy([["A", "B"], ["A", None]], [["A", "A"], ["A", "B"]])
    0.6666666666666666
    >>> token_accuracy([[{"A", "B"}, "A"]], [["B", "B"]])
    0.5
    """
    right, annotated = sample_counts(gold, predicted).sum(axis=0)
    return float(right / annotated)


def sequence_accuracy(gold: Gold, predicted: Labels) -> float:
    """Share of the samples that are right at every annotated position.

    Samples without any annotated position are skipped. Parameters and errors are those of
    :func:`token_accuracy`.

    Examples
    --------
    >>> sequence_accuracy([["A", "B"], ["A", None]], [["A", "A"], ["A", "B"]])
    0.5
    """
    counts = sample_counts(gold, predicted)
    right, annotated = counts[counts[:, 1] > 0].T
    return float(np.mean(right == annotated))


def hamming_loss(
    gold: Gold, predicted: Labels, *, average: Literal["token", "sample"] = "token"
) -> float:
    """Share of the annotated positions whose prediction is wrong.

    Parameters
    ----------
    gold, predicted : list of lists of labels
        As in :func:`token_accuracy`, and refused as there.
    average : {"token", "sample"}, default="token"
        Over all positions, or the mean over samples of the share within each sample (samples
        without any annotated position are skipped).

    Examples
    --------
    >>> gold, predicted = [["A"], ["A", "B", "A"]], [["B"], ["A", "B", "A"]]
    >>> hamming_loss(gold, predicted)
    0.25
    >>> hamming_loss(gold, predicted, average="sample")
    0.5
    """
    one_of("token", "sample").check("average", average)
    counts = sample_counts(gold, predicted)
    if average == "token":
        right, annotated = counts.sum(axis=0)
        return float((annotated - right) / annotated)
    right, annotated = counts[counts[:, 1] > 0].T
    return float(np.mean((annotated - right) / annotated))


def verdicts(gold: Gold, predicted: Labels, name: str = "predicted") -> list[list[bool | None]]:
    """Whether each position is right; None where it is not annotated."""
    check_lengths(gold, predicted, name)
    samples: list[list[bool | None]] = []
    for i, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        sample: list[bool | None] = []
        for t, (entry, label) in enumerate(zip(g, p, strict=True)):
            if isinstance(entry, str):
                sample.append(bool(entry == label))
            elif is_missing(entry):
                sample.append(None)
            else:
                single_label(entry, i, t)  # refuses what is neither label nor set
                allowed = isinstance(entry, AbstractSet)
                sample.append(label in entry if allowed else bool(entry == label))
        samples.append(sample)
    if all(verdict is None for sample in samples for verdict in sample):
        raise DataError("nothing to evaluate: no position of gold is annotated")
    return samples


def sample_counts(gold: Gold, predicted: Labels, name: str = "predicted") -> NDArray[np.int64]:
    """Right and annotated positions of each sample, as an (N, 2) array."""
    check_lengths(gold, predicted, name)
    entries = list(chain.from_iterable(gold))
    said = list(chain.from_iterable(predicted))
    if set(map(type, entries)) <= _PLAIN and set(map(type, said)) <= _PLAIN:
        lengths = np.fromiter(map(len, gold), np.int64, len(gold))
        known = np.fromiter(map(is_not, entries, repeat(None)), bool, len(entries))
        right = np.fromiter(map(eq, entries, said), bool, len(entries))
        if known.any():
            sums = np.zeros((len(entries) + 1, 2), np.int64)
            np.cumsum(np.column_stack([right & known, known]), axis=0, out=sums[1:])
            ends = np.cumsum(lengths)
            counts: NDArray[np.int64] = sums[ends] - sums[ends - lengths]
            return counts
    return np.array(
        [
            (sum(v is True for v in sample), sum(v is not None for v in sample))
            for sample in verdicts(gold, predicted, name)
        ],
        dtype=np.int64,
    )
