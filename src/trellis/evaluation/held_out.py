r"""The one score of labelled data, and which one it is where nobody says.

    accuracy      share of the annotated positions that are right
    f1            F1 of spans, in the tag scheme of the labels
    sequences     share of the samples that are right at every annotated position
    macro_f1      F1 of each label, and the mean over labels
    weighted_f1   the same, each label counting as often as it is in gold
    auto          f1 where there are spans, else accuracy

``score`` of models, ``dev=`` of ``fit``, :func:`trellis.tuning.tune` and the command line all use
"auto" by default. There are spans if three things hold: the model's labels are written in a tag
scheme, so are the gold labels, and every position has its label (spans with holes cannot be
counted). With weights each sample counts as often as its weight says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.labels import Label
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.errors import DataError
from trellis.evaluation import accuracy, spans
from trellis.evaluation.pairs import single_label

__all__ = ["METRICS", "held_out_score", "metric_name", "scoring_scheme"]

METRICS = ("auto", "f1", "accuracy", "sequences", "macro_f1", "weighted_f1")


def scoring_scheme(
    scheme: Any,
    classes: Iterable[Any],
    gold: Sequence[Sequence[Label]],
    gold_classes: Iterable[Any],
) -> str | None:
    """Tag scheme whose spans are to be scored, None for token accuracy.

    Parameters
    ----------
    scheme : str, Scheme or None
        The model's own scheme; None tells it from ``classes``.
    classes : iterable
        Labels that the model predicts.
    gold : list of label lists
    gold_classes : iterable
        The labels of the gold data; they may lack some, but must fit the scheme.

    Examples
    --------
    >>> scoring_scheme(None, ["B-X", "I-X", "O"], [["B-X", "O"]], ["B-X", "O"])
    'BIO'
    >>> scoring_scheme(None, ["B-X", "I-X", "O"], [["B-X", None]], ["B-X"]) is None
    True
    """
    scheme = scheme or detect_scheme(classes)
    complete = all(isinstance(label, str) for sample in gold for label in sample)
    if scheme is None or not complete:
        return None
    rules = get_scheme(scheme)
    try:
        rules.validity(list(gold_classes))
    except DataError:
        return None
    return rules.name


def held_out_score(
    gold: Sequence[Sequence[Label]],
    predicted: Sequence[Sequence[Any]],
    scheme: str | None,
    metric: str = "auto",
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Score of predictions, in [0, 1].

    Parameters
    ----------
    gold, predicted : lists of label lists
    scheme : str or None
        That of :func:`scoring_scheme`.
    metric : str
        One of :data:`METRICS`.
    weights : array (S,), optional
        Weights of samples.

    Examples
    --------
    >>> held_out_score([["B-X", "I-X", "O"]], [["B-X", "O", "O"]], "BIO")
    0.0
    >>> round(held_out_score([["B-X", "I-X", "O"]], [["B-X", "O", "O"]], None), 3)
    0.667
    """
    each = np.ones(len(gold)) if weights is None else weights
    if metric == "f1" or (metric == "auto" and scheme is not None):
        if scheme is None:
            raise DataError(
                "metric='f1' is about spans, but the labels follow no tag scheme, or some are "
                "missing; use metric='accuracy' or 'macro_f1'"
            )
        right, found, wanted = each @ spans.sample_counts(gold, predicted, scheme)
        # Where there is nothing to find and nothing was found, all is right.
        return float(2 * right / (found + wanted)) if found + wanted > 0 else 1.0
    if metric in ("macro_f1", "weighted_f1"):
        return _label_f1(gold, predicted, each, by_support=metric == "weighted_f1")
    counts = accuracy.sample_counts(gold, predicted)
    if metric == "sequences":
        some = counts[:, 1] > 0
        return float(np.average((counts[:, 0] == counts[:, 1])[some], weights=each[some]))
    right, annotated = each @ counts
    if not annotated > 0:
        raise DataError("nothing to evaluate: all annotated samples have the weight 0")
    return float(right / annotated)


def metric_name(metric: str, scheme: str | None) -> str:
    """What a metric is called where it is shown.

    Examples
    --------
    >>> metric_name("auto", "BIO"), metric_name("auto", None)
    ('span F1', 'accuracy')
    """
    if metric == "auto":
        metric = "accuracy" if scheme is None else "f1"
    return {"f1": "span F1", "macro_f1": "macro F1", "weighted_f1": "weighted F1"}.get(
        metric, metric
    )


def _label_f1(
    gold: Sequence[Sequence[Label]],
    predicted: Sequence[Sequence[Any]],
    weights: NDArray[np.float64],
    by_support: bool,
) -> float:
    counts: defaultdict[Any, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))
    for i, (verdicts, g, p) in enumerate(
        zip(accuracy.verdicts(gold, predicted), gold, predicted, strict=True)
    ):
        for t, (is_right, entry, label) in enumerate(zip(verdicts, g, p, strict=True)):
            wanted = label if is_right else single_label(entry, i, t)
            if is_right is None or wanted is None:  # which of a set was missed cannot be told
                continue
            counts[wanted] += np.array([is_right, 0, 1]) * weights[i]
            counts[label] += np.array([0, 1, 0]) * weights[i]
    table = np.array(list(counts.values()))
    if not table[:, 2].sum() > 0:
        raise DataError("nothing to evaluate: all annotated samples have the weight 0")
    table = table[table[:, 1:].sum(axis=1) > 0]  # others are in samples that do not count
    f1 = 2 * table[:, 0] / table[:, 1:].sum(axis=1)
    return float(np.average(f1, weights=table[:, 2] if by_support else None))
