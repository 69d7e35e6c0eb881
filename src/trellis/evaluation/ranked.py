r"""Precision and recall of the answers that a system is surest of.

A system answers with a confidence each: a label at a position, a span. Of those with a confidence
of at least τ let :math:`P_\tau` be all and :math:`R_\tau` the right ones; there are G right answers
to be found. Then

.. math:: \text{precision}(\tau) = \frac{|R_\tau|}{|P_\tau|}, \qquad
          \text{recall}(\tau) = \frac{|R_\tau|}{G},

and with the thresholds :math:`\tau_1 > \tau_2 > \dots` where they change, the average precision is

.. math:: \text{AP} = \sum_k (\text{recall}(\tau_k) - \text{recall}(\tau_{k-1}))
          \, \text{precision}(\tau_k).

Answers that a system does not give at all are never found: the curve ends at its recall, and the
average precision is at most that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array
from trellis.corpus.label_values import plain_label
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.domains import is_finite, samples
from trellis.errors import DataError
from trellis.evaluation.pairs import check_samples, checked_classes, single_label

__all__ = ["PrecisionRecallCurve", "precision_recall_curve"]


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Result of :func:`precision_recall_curve`.

    Attributes
    ----------
    threshold : (K,) array
        Confidences that occur, the highest first.
    precision, recall : (K,) array
        Of the answers with at least this confidence.
    support : int
        Right answers there are.
    average_precision : float
    """

    threshold: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    support: int
    average_precision: float

    def __str__(self) -> str:
        said = f"average precision: {self.average_precision:.4f}"
        if len(self.recall):
            said += f"; all answers: precision {self.precision[-1]:.4f}"
            said += f", recall {self.recall[-1]:.4f}"
        return said


def precision_recall_curve(
    gold: Any,
    found: Any,
    *,
    classes: Sequence[Any] | None = None,
    label: Any = None,
    scheme: str | None = None,
) -> PrecisionRecallCurve:
    """Compare answers that have confidences with gold labels or spans, the surest first.

    Parameters
    ----------
    gold : list of lists of labels, or of spans (type, start, end)
        A label may be None or a set of labels; unless the set is of one label it is skipped.
    found : list, one entry for each sample
        (n, L) arrays of marginals, with `classes`; or lists of (label, confidence), one for each
        position; or lists of (type, start, end, confidence), as ``predict_spans`` gives them.
    classes : sequence, optional
        Labels of the L columns of marginals.
    label : optional
        Find only this label, or spans of this type. Of marginals its column counts then, also where
        another label is more probable; without, the most probable label of each position.
    scheme : str, optional
        Tag scheme of gold labels, where spans are found; by default told from the labels.

    Raises
    ------
    DataError
        If lengths differ, confidences are no numbers, or there is nothing to be found.

    Examples
    --------
    >>> gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> spans = [[("PER", 0, 2, 0.9), ("PER", 2, 3, 0.4), ("LOC", 3, 4, 0.3)]]
    >>> curve = precision_recall_curve(gold, spans)
    >>> curve.precision.round(2).tolist(), curve.recall.tolist()
    ([1.0, 0.5, 0.67], [0.5, 0.5, 1.0])
    >>> round(curve.average_precision, 4)
    0.8333
    """
    check_samples(gold, found, "found")
    for what, given in (("gold", gold), ("found", found)):
        for i, sample in enumerate(given):
            samples.check(f"sample {i} of {what}", sample)
    label = plain_label(label, "label")
    if classes is not None:
        answers, support = _of_marginals(gold, found, checked_classes(classes), label)
    elif _are_spans(found):
        answers, support = _of_spans(gold, found, scheme, label)
    else:
        answers, support = _of_labels(gold, found, label)
    if support == 0:
        what = "nothing that could be found" if label is None else f"no {label!r} to be found"
        raise DataError(f"nothing to evaluate: gold has {what}")
    return _curve(answers, support)


def _curve(answers: list[tuple[float, bool]], support: int) -> PrecisionRecallCurve:
    confidence = np.array([a[0] for a in answers], dtype=np.float64)
    right = np.array([a[1] for a in answers], dtype=np.int64)
    order = np.argsort(-confidence, kind="stable")
    confidence, hits = confidence[order], np.cumsum(right[order])
    last = np.flatnonzero(np.append(confidence[1:] < confidence[:-1], True)[: len(confidence)])
    precision, recall = hits[last] / (last + 1), hits[last] / support
    average = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    return PrecisionRecallCurve(confidence[last], precision, recall, support, average)


# ------------------------------------------------------------------------------- answers
#
# Each gives (confidence, whether it is right) of all answers, and how many right ones there are.

_Answers = tuple[list[tuple[float, bool]], int]


def _of_marginals(gold: Any, found: Any, classes: list[Any], label: Any) -> _Answers:
    if not classes:
        raise DataError("classes is empty: expected one label at least")
    column = None
    if label is not None:
        if label not in classes:
            raise DataError(f"label {label!r} is none of the classes")
        column = classes.index(label)
    answers, support = [], 0
    for i, (g, m) in enumerate(zip(gold, found, strict=True)):
        p = as_array(m, np.float64, f"marginals of sample {i}", (len(g), len(classes)), finite=True)
        for t, (entry, row) in enumerate(zip(g, p, strict=True)):
            single = single_label(entry, i, t)
            if single is None:
                continue
            support += label is None or single == label
            j = int(row.argmax()) if column is None else column
            answers.append((float(row[j]), classes[j] == single))
    return answers, support


def _of_labels(gold: Any, found: Any, label: Any) -> _Answers:
    answers, support = [], 0
    for i, (g, f) in enumerate(zip(gold, found, strict=True)):
        if len(g) != len(f):
            raise DataError(
                f"sample {i} has {len(g)} positions in gold but {len(f)} in found: expected a "
                "pair (label, confidence) for each"
            )
        for t, (entry, (said, confidence)) in enumerate(zip(g, _tuples(f, 2, i), strict=True)):
            single = single_label(entry, i, t)
            if single is None:
                continue
            support += label is None or single == label
            if label is None or said == label:
                answers.append((confidence, said == single))
    return answers, support


def _of_spans(gold: Any, found: Any, scheme: str | None, label: Any) -> _Answers:
    answers, support = [], 0
    for i, (wanted, f) in enumerate(zip(_gold_spans(gold, scheme), found, strict=True)):
        there = {span for span in wanted if label is None or span[0] == label}
        support += len(there)
        for kind, start, end, confidence in _tuples(f, 4, i):
            if label is not None and kind != label:
                continue
            answers.append((confidence, (kind, start, end) in there))
            there.discard((kind, start, end))  # found once
    return answers, support


def _gold_spans(gold: Any, scheme: str | None) -> list[list[Any]]:
    entries = [entry for sample in gold for entry in sample]
    if scheme is None and all(isinstance(e, tuple) and len(e) == 3 for e in entries):
        return [[plain_label(span, f"sample {i} of gold") for span in sample]
                for i, sample in enumerate(gold)]  # fmt: skip
    if scheme is None:
        strings = {entry for entry in entries if isinstance(entry, str)}
        scheme = detect_scheme(sorted(strings))
        if scheme is None or len(strings) == 0:
            raise DataError(
                "gold labels follow no tag scheme that could be told from them: give scheme, or "
                "gold as lists of (type, start, end)"
            )
    rules = get_scheme(scheme)
    return [list(rules.spans(list(sample))) for sample in gold]


def _are_spans(found: Any) -> bool:
    """Whether answers are spans: four things each, or none at all."""
    for sample in found:
        if isinstance(sample, np.ndarray) and sample.ndim == 2 and sample.dtype.kind == "f":
            raise DataError("found holds arrays of marginals: say by classes what columns mean")
        for answer in sample:
            return not (isinstance(answer, tuple | list) and len(answer) == 2)
    return True


def _tuples(answers: Any, length: int, sample: int) -> Iterator[tuple[Any, ...]]:
    for answer in answers:
        if not (isinstance(answer, tuple | list) and len(answer) == length):
            raise DataError(
                f"sample {sample} of found holds {answer!r:.60}: expected (label, confidence) at "
                "each position, or spans (type, start, end, confidence)"
            )
        if not is_finite(answer[-1]):
            raise DataError(
                f"sample {sample} of found: the confidence of {answer!r:.60} is no finite number"
            )
        said = tuple(answer[:-1])
        plain_label(said, f"sample {sample} of found")  # refuses what has no hash
        yield (*said, float(answer[-1]))
