"""Tables and targets as users give them, checked: finite numbers, one row for each node."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError

__all__ = ["check_observed", "check_targets", "finite_rows", "n_rows"]


def finite_rows(values: Any, name: str, *, flat: bool = False) -> Float64s:
    """Return a table as (n, d) finite floats; ``flat`` allows one number a row, (n,).

    Examples
    --------
    >>> finite_rows([1, 2], "x", flat=True).shape
    (2, 1)
    """
    try:
        rows = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} is not a table of numbers: {error}") from error
    if flat and rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"{name} must have the shape (n, d) with n >= 1, got {rows.shape}")
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"row {row} of {name} holds a NaN or an infinite value: {rows[row]}")
    return rows


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a table.

    Examples
    --------
    >>> n_rows([[1, 2], [3, 4]])
    2
    """
    try:
        n = int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)
    except TypeError:  # a number, an array without dimensions
        raise DataError(f"X is of type {type(X).__name__}; expected a table") from None
    if n == 0:
        raise DataError("X has no rows")
    return n


def check_targets(y: Any, n: int, *, varied: bool = True, gaps: bool = False) -> Float64s:
    """Return the targets as n finite floats, which are not all alike if they must be ``varied``.

    With ``gaps`` some may be NaN, which says that they are not known.

    Examples
    --------
    >>> check_targets([1, 2], 2)
    array([1., 2.])
    """
    targets = _one_each(y, n, "y", "the targets")
    bad = np.isinf(targets) if gaps else ~np.isfinite(targets)
    if bad.any():
        raise DataError(
            f"{int(bad.sum())} of {n} targets are missing or infinite (the first in row"
            f" {int(np.argmax(bad))}); leave these rows out of X, y and the graph"
        )
    known = targets[~np.isnan(targets)]
    if len(known) < min(2, n):
        raise DataError(f"{len(known)} of {n} targets are known; two at least are needed")
    if varied and known.min() == known.max():
        raise DataError(f"all targets are {known[0]:g}: there is nothing to learn")
    return targets


def check_observed(observed: Any, n: int) -> Float64s:
    """Return what is known of the targets as n floats, NaN where nothing is.

    Examples
    --------
    >>> check_observed([1, None], 2)
    array([ 1., nan])
    """
    values = _one_each(observed, n, "observed", "the observed values")
    bad = np.isinf(values)
    if bad.any():
        raise DataError(
            f"{int(bad.sum())} of {n} observed values are infinite (the first in row"
            f" {int(np.argmax(bad))}); NaN says that a value is unknown"
        )
    return values


def _one_each(values: Any, n: int, name: str, words: str) -> Float64s:
    """One number for each of n rows."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{words} are not numbers: {error}") from error
    if numbers.shape != (n,):
        raise DataError(
            f"{name} must have one number for each of the {n} rows, got {numbers.shape}"
        )
    return numbers
