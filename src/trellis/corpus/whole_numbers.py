"""Whole numbers as arrays of one type, however they are given.

Kernels are compiled for one type of each argument and trust what they are given. So numbers are
converted and checked where they come in, and kept read-only: nobody can make them wrong later.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trellis.errors import DataError

__all__ = ["for_kernels", "read_only", "whole_numbers"]


def whole_numbers(values: Any, dtype: DTypeLike, what: str) -> NDArray[Any]:
    """A read-only array of an integer type; anything but whole numbers is refused.

    The memory is that of ``values`` if they are such an array already.

    Examples
    --------
    >>> whole_numbers([2.0, 5], np.int32, "codes")
    array([2, 5], dtype=int32)
    >>> whole_numbers([0.5], np.int32, "codes")
    Traceback (most recent call last):
    trellis.errors.DataError: codes must be whole numbers, got 0.5
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} must be an array of whole numbers: {error}") from None
    if array.dtype.kind == "O":
        array = _from_objects(array, what)
    if array.dtype.kind not in "iuf":
        raise DataError(f"{what} must be whole numbers, got an array of {array.dtype}")
    wanted = np.dtype(dtype)
    if array.dtype != wanted and array.size:
        limits = np.iinfo(wanted)
        fits = (array >= limits.min) & (array <= limits.max)
        if array.dtype.kind == "f":
            fits &= (array == np.trunc(array)) & (np.abs(array) < 2.0**53)
        if not fits.all():
            raise DataError(f"{what} must be whole numbers, got {array[~fits][0]}")
    return read_only(np.require(array, wanted, ["C", "A", "E"]))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory, not to be written to; the array itself stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def for_kernels(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a writable array, for which kernels are compiled; they only read it."""
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:  # memory that cannot be written to at all
        return array.copy()
    return view


def _from_objects(array: NDArray[Any], what: str) -> NDArray[Any]:
    """The array of numbers that an array of Python's numbers stands for."""
    for value in array.flat:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise DataError(f"{what} must be whole numbers, got {value!r}")
    found = np.array(array.tolist())
    if found.dtype.kind == "O":
        raise DataError(f"{what} must be whole numbers, got one beyond 64 bits")
    return found
