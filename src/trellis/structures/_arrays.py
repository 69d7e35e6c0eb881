"""What the potentials of all structures check at the door: arrays of scores, ids and offsets.

Arrays are brought to one kind, because each further kind (layout, read-only) would have the
kernels compiled anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError

__all__ = ["integers", "place", "refuse_node", "require_offsets", "scores"]


def scores(values: npt.ArrayLike, what: str) -> Float64s:
    """Read scores as a writable float64 array."""
    array = _array(values, what)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{what} have dtype {array.dtype}; expected numbers")
    return np.require(array, np.float64, ["C", "A", "W"])


def integers(values: npt.ArrayLike, what: str) -> Int64s:
    """Read integers (label ids, offsets) as a writable int64 array."""
    array = _array(values, what)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise DataError(f"{what} have dtype {array.dtype}; expected integers")
    return np.require(array, np.int64, ["C", "A", "W"])


def _array(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} cannot be read as an array: {error}") from error


def require_offsets(offsets: Int64s, n_rows: int) -> None:
    """Raise unless the offsets cut the rows of node scores into samples."""
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0:
        raise DataError("offsets must be a one-dimensional array that starts with 0")
    falling = np.flatnonzero(np.diff(offsets) < 0)
    if len(falling) > 0:
        s = falling[0]
        raise DataError(f"offsets fall at sample {s}, from {offsets[s]} to {offsets[s + 1]}")
    if offsets[-1] != n_rows:
        raise DataError(
            f"offsets end at {offsets[-1]}, but there are {n_rows} rows of node scores; "
            "the last offset must be the number of rows"
        )


def refuse_node(values: Float64s, what: str, offsets: Int64s, position: str) -> None:
    """Raise if one of the values (N, L) is NaN or +inf, and say where."""
    bad = np.argwhere(~(values < np.inf))
    if len(bad) > 0:
        row, label = bad[0]
        raise DataError(
            f"{what} of label {label} at {place(offsets, row, position)} is "
            f"{values[row, label]}; scores must be finite, or -inf to forbid"
        )


def place(offsets: Int64s, row: int, position: str) -> str:
    """Say which position (or node) of which sample a row is."""
    s = np.searchsorted(offsets, row, side="right") - 1
    return f"{position} {row - offsets[s]} of sample {s}"
