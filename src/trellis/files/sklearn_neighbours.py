"""Nearest neighbours of scikit-learn in files: their rows and answers, from which they are fitted.

The search tree is never in a file, since compiled code follows it without looking at bounds. It
follows from the rows alone, without chance, so it is built from them again: predictions have the
same bits. Metrics are those that need nothing but the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.errors import CorruptModelError, DataError

__all__ = ["NEIGHBOURS", "fit_again", "rows_and_answers"]

NEIGHBOURS = ("KNeighborsRegressor",)
"""The classes that are fitted again."""

_METRICS = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "cosine", "euclidean", "hamming", "l1",
    "l2", "manhattan", "minkowski", "nan_euclidean",
)  # fmt: skip
_KEPT = ("_fit_X", "_y", "feature_names_in_")


def rows_and_answers(estimator: Any, learned: dict[str, Any], where: str) -> dict[str, Any]:
    """What is written of all that was learned.

    Raises
    ------
    DataError
        If the metric is another one, or the rows are no array.
    """
    if not _has_plain_metric(estimator):
        raise DataError(
            f"{where} has a metric that a model file cannot hold; those it can hold are "
            f"{', '.join(_METRICS)}, without metric_params"
        )
    if "_fit_X" in learned and not isinstance(learned["_fit_X"], np.ndarray):
        raise DataError(
            f"{where} was fitted to a sparse matrix, which a model file cannot hold; fit it to an "
            "array (X.toarray())"
        )
    return {name: learned[name] for name in _KEPT if name in learned}


def _has_plain_metric(estimator: Any) -> bool:
    metric = estimator.metric
    return type(metric) is str and metric in _METRICS and estimator.metric_params is None


def fit_again(estimator: Any, learned: dict[str, Any], name: str) -> None:
    """Fit an estimator of a file to the rows in it, checking everything."""
    if not _has_plain_metric(estimator):
        raise CorruptModelError(f"the metric of a {name} is not known")
    if unknown := sorted(learned.keys() - set(_KEPT)):
        raise CorruptModelError(f"{name} learns no {unknown[0]!r}")
    if not learned:  # not fitted
        return
    rows, answers = learned.get("_fit_X"), learned.get("_y")
    for array, shapes in ((rows, (2,)), (answers, (1, 2))):
        fits = isinstance(array, np.ndarray) and array.ndim in shapes and array.dtype.kind in "iuf"
        if not fits:
            raise CorruptModelError(f"the rows or answers of a {name} are no numbers")
    try:
        estimator.fit(rows, answers)
    except (TypeError, ValueError) as error:
        raise CorruptModelError(f"a {name} cannot be fitted to its rows: {error}") from error
    if "feature_names_in_" in learned:
        estimator.feature_names_in_ = learned["feature_names_in_"]
