"""Encoders of categories in files: what is checked of a one-hot encoder, and what encoders accept.

Category j of column i becomes column c_1 + ... + c_{i-1} + j of the result, where column i has c_i
categories. A sparse matrix believes its indices, so j < c_i has to hold: categories of numbers are
looked up by bisection and must ascend, a category that is dropped must be one of its column, and
the c_i must be as many as there are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError

__all__ = ["check_one_hot", "possible_row"]


def possible_row(estimator: Any, n_features: int) -> NDArray[Any]:
    """A row that an estimator can predict: zeros, unless they are no categories of an encoder.

    An encoder may refuse what it has not seen, so where it comes first, or after imputers, the row
    has the first category of each of its columns.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> possible_row(Ridge(), 2)
    array([[0., 0.]])
    """
    estimator = getattr(estimator, "regressor_", estimator)
    for step in [step for _, step in getattr(estimator, "steps", [("", estimator)])]:
        categories = getattr(step, "categories_", [])
        if len(categories) >= n_features:  # an imputer may add which values were missing
            columns = categories[:n_features]
            as_numbers = all(column.dtype.kind in "iufb" for column in columns)
            row = [column[0] for column in columns]
            return np.array([row], np.float64 if as_numbers else np.object_)
        if type(step).__name__ != "SimpleImputer":
            break
    return np.zeros((1, n_features))


def check_one_hot(encoder: Any) -> None:
    """Refuse a one-hot encoder that could give indices beyond its columns."""
    learned = vars(encoder)
    if "categories_" not in learned:  # not fitted
        return
    categories, n_columns = learned["categories_"], learned.get("n_features_in_")
    if type(categories) is not list or type(n_columns) is not int or n_columns != len(categories):
        raise CorruptModelError("a OneHotEncoder does not have categories for each column")
    if not all(isinstance(some, np.ndarray) and _ascend(some) for some in categories):
        raise CorruptModelError("a OneHotEncoder has categories that do not ascend")
    if learned.get("_infrequent_enabled") is not False:
        raise CorruptModelError("a OneHotEncoder groups rare categories")
    dropped = learned.get("_drop_idx_after_grouping")
    counts = [len(some) for some in categories]
    if dropped is not None:
        if not isinstance(dropped, np.ndarray) or dropped.shape != (n_columns,):
            raise CorruptModelError("a OneHotEncoder does not drop a category of each column")
        for i, which in enumerate(dropped):
            if which is None:
                continue
            if not isinstance(which, int | np.integer) or not 0 <= which < counts[i]:
                raise CorruptModelError("a OneHotEncoder drops a category that there is not")
            counts[i] -= 1
    widths = learned.get("_n_features_outs")
    if type(widths) is not list or any(type(n) is not int for n in widths) or widths != counts:
        raise CorruptModelError("a OneHotEncoder makes columns that its categories do not")


def _ascend(categories: Any) -> bool:
    """Whether these ascend, or are objects of text, looked up in a dict; the missing come last."""
    if categories.ndim != 1 or not len(categories):
        return False
    values = categories.tolist()
    while values and (values[-1] is None or values[-1] != values[-1]):
        values.pop()
    if all(isinstance(value, str) for value in values):
        return categories.dtype == np.object_ or all(a < b for a, b in pairwise(values))
    if not all(isinstance(value, bool | int | float | np.number) for value in values):
        return False
    return all(a < b for a, b in pairwise(values))
