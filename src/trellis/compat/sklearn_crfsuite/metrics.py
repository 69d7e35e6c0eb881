"""scikit-learn's measures of classifiers over the positions of all sequences at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]

Labelling = Sequence[Sequence[Any]] | NDArray[np.object_]


def _flat(y: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(y))


def flat_accuracy_score(y_true: Labelling, y_pred: Labelling) -> float:
    """Share of the positions that are labelled right."""
    from sklearn import metrics

    return float(metrics.accuracy_score(_flat(y_true), _flat(y_pred)))


def flat_precision_score(y_true: Labelling, y_pred: Labelling, **kwargs: Any) -> Any:
    """Precision by position; arguments as of :func:`sklearn.metrics.precision_score`."""
    from sklearn import metrics

    return metrics.precision_score(_flat(y_true), _flat(y_pred), **kwargs)


def flat_recall_score(y_true: Labelling, y_pred: Labelling, **kwargs: Any) -> Any:
    """Recall by position; arguments as of :func:`sklearn.metrics.recall_score`."""
    from sklearn import metrics

    return metrics.recall_score(_flat(y_true), _flat(y_pred), **kwargs)


def flat_f1_score(y_true: Labelling, y_pred: Labelling, **kwargs: Any) -> Any:
    """F1 by position; arguments as of :func:`sklearn.metrics.f1_score`."""
    from sklearn import metrics

    return metrics.f1_score(_flat(y_true), _flat(y_pred), **kwargs)


def flat_fbeta_score(y_true: Labelling, y_pred: Labelling, beta: float, **kwargs: Any) -> Any:
    """F-beta by position; arguments as of :func:`sklearn.metrics.fbeta_score`."""
    from sklearn import metrics

    return metrics.fbeta_score(_flat(y_true), _flat(y_pred), beta=beta, **kwargs)


def flat_classification_report(
    y_true: Labelling, y_pred: Labelling, labels: Sequence[Any] | None = None, **kwargs: Any
) -> Any:
    """Report by position; arguments as of :func:`sklearn.metrics.classification_report`."""
    from sklearn import metrics

    return metrics.classification_report(_flat(y_true), _flat(y_pred), labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Labelling, y_pred: Labelling) -> float:
    """Share of the sequences whose labels are all right; 0 if there are none.

    Examples
    --------
    >>> sequence_accuracy_score([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.5
    """
    if not len(y_true):
        return 0.0
    right = sum(list(a) == list(b) for a, b in zip(y_true, y_pred, strict=True))
    return right / len(y_true)
