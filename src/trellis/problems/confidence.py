r"""How sure a CRF is of samples, by the probabilities of labellings, positions and spans.

With :math:`p(y \mid x) \propto e^{s(x, y)}` over the labellings that what is known allows, and n
positions, the measures are (larger is surer)

- ``"information-density"``: :math:`-\tfrac1{n + 3} \sum_t d_t \varphi_t^2`, :math:`d_t = -\log
  \max_y p(y_t = y \mid x)` being the doubt of a position and :math:`\varphi_t` how familiar its
  features are (:mod:`trellis.problems.familiarity`): what is odd teaches little about the rest. The
  3 keeps samples of one or two positions, of which the mean is a poor estimate, from always being
  first;
- ``"token-confidence"``: :math:`-\tfrac1n \sum_t d_t`;
- ``"token-entropy"``: :math:`-\tfrac1n \sum_t H(y_t \mid x)`, of the marginals;
- ``"entropy"``: :math:`-H(y \mid x) / n`, of whole labellings;
- ``"confidence"``: :math:`\tfrac1n \log p(\hat y \mid x)` of the best labelling, so that long
  samples are not asked for just because they are long;
- ``"span"``: the least :math:`\log p` of a span of the best labelling, where the labels follow a
  tag scheme (its labels, and that it goes no further); of a position, where there is no span.

The first three are sums over positions, so that they tell spans of positions apart, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.corpus.corpus import bounds, ranges
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.errors import DataError
from trellis.problems.label_inference import Batch, LabelInference
from trellis.structures import ChainPotentials, entropy, marginals
from trellis.structures.windows import window_probabilities

__all__ = ["OF_POSITIONS", "PROBABILITIES", "Spans", "confidence", "doubts", "spans"]


OF_POSITIONS = ("information-density", "token-confidence", "token-entropy")
"""Measures that are sums over positions."""

PROBABILITIES = (*OF_POSITIONS, "entropy", "confidence", "span")
"""Measures that need the probabilities of a CRF."""

_FAMILIAR = 2  # power of the familiarity; 1 and 3 choose about as well
_SPARE = {"information-density": 3}  # positions without doubt that each sample is given


def doubts(problem: LabelInference, w: Float64s, measure: str, batch: Batch) -> Float64s:
    """How unsure each position of a batch is (rows,): 0 where the label is known.

    Parameters
    ----------
    problem, w, batch
        As for :func:`confidence`.
    measure : str
        One of ``OF_POSITIONS``.
    """
    _, chances = marginals(problem.compatible(w, batch))
    if measure == "token-entropy":
        logs = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
        entropies: Float64s = np.maximum(-(chances * logs).sum(axis=1), 0.0)
        return entropies
    doubt: Float64s = np.maximum(-np.log(np.maximum(chances.max(axis=1), 1e-300)), 0.0)
    if measure == "information-density":
        doubt *= problem.familiarity[batch.rows] ** _FAMILIAR
    return doubt


def confidence(problem: LabelInference, w: Float64s, measure: str, batch: Batch) -> Float64s:
    """Measure of each sample of a batch: larger is surer.

    Parameters
    ----------
    problem : LabelProblem
        The samples.
    w : float64, shape (D,)
        Weights of a CRF.
    measure : str
        One of ``PROBABILITIES``.
    batch : Batch
        The samples asked for.
    """
    lengths = np.maximum(np.diff(batch.offsets), 1)
    if measure in OF_POSITIONS:
        each = doubts(problem, w, measure, batch)
        total = np.bincount(batch.owner, each, len(lengths))
        means: Float64s = -total / (lengths + _SPARE.get(measure, 0))
        return means
    p = problem.compatible(w, batch)
    if measure == "entropy":
        return -entropy(p) / lengths
    log_z, chances = marginals(p)
    labels, scores, _ = problem.best_of(p)
    if measure == "confidence":
        sure: Float64s = np.minimum(scores - log_z, 0.0) / lengths
        return sure
    name = detect_scheme(problem.classes)
    if problem.structure != "chain" or name is None:
        raise DataError("the measure 'span' is for chains whose labels follow a tag scheme")
    assert isinstance(p, ChainPotentials)
    found = spans(p, problem.classes, get_scheme(name), labels)
    least = np.full(len(lengths), np.inf)
    np.minimum.at(least, found.samples, found.chances)
    at_position = np.full(len(lengths), 1.0)
    np.minimum.at(at_position, batch.owner, chances[np.arange(len(labels)), labels])
    return np.log(np.maximum(np.where(np.isinf(least), at_position, least), 1e-300))


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans of labellings: whose they are, their first rows and those past the last (m,).

    ``chances`` are the probabilities that they are as they are.
    """

    samples: Int64s
    starts: Int64s
    ends: Int64s
    chances: Float64s


def spans(
    p: ChainPotentials, classes: tuple[str, ...], rules: Scheme, labels: NDArray[np.integer[Any]]
) -> Spans:
    """Spans of the labels of sequences, each with the probability that it is as it is.

    Parameters
    ----------
    p : ChainPotentials
        The scores, N rows.
    classes : tuple of str
        What is written for each of the L labels; labels that are written alike count as one.
    rules : Scheme
        How spans are written.
    labels : int, shape (N,)
        The labels. A span counts as it is where these, or others written alike, are at its
        positions, and the labels before and after it let it begin and end there.
    """
    n_labels, n = len(classes), len(labels)
    starts_at, within = rules.boundaries(classes)
    ends_at = starts_at | ~within
    first, last = (np.zeros(n, np.bool_) for _ in range(2))
    filled = np.diff(p.offsets) > 0
    first[p.offsets[:-1][filled]] = last[p.offsets[1:][filled] - 1] = True
    inside = within[labels]
    starts = np.flatnonzero(inside & (first | starts_at[np.roll(labels, 1), labels]))
    ends = np.flatnonzero(inside & (last | ends_at[labels, np.roll(labels, -1)])) + 1

    # Windows of the spans and their neighbours. Sets of labels: those written alike, those after
    # which a span starts at a label, those before which one ends at a label.
    _, written = np.unique(np.array(classes, dtype=object), return_inverse=True)
    table = np.concatenate([written[:, None] == written, starts_at.T, ends_at])
    before, after = ~first[starts], ~last[ends - 1]
    begin, stop = starts - before, ends + after
    offsets = bounds(stop - begin)
    sets = labels[ranges(begin, stop - begin)].astype(np.int64)
    sets[offsets[:-1][before]] = n_labels + labels[starts[before]]
    sets[offsets[1:][after] - 1] = 2 * n_labels + labels[ends[after] - 1]
    samples = np.searchsorted(p.offsets, starts, side="right") - 1
    return Spans(samples, starts, ends, window_probabilities(p, begin, offsets, sets, table))
