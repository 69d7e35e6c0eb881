"""Arrays as kernels take them: names of their types, and the one check that leads to them.

A kernel trusts its arguments: an index that is out of range ends the interpreter, and every further
kind of array (layout, byte order, read-only) has it compiled anew. So what comes from a user passes
:func:`as_array`, or :func:`held` if an object keeps it. What is held is read-only, that nobody can
make it wrong afterwards; :func:`for_kernels` gives kernels the same memory as they know it.
(``setflags(write=True)`` on what is held is not defended against.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trellis.errors import DataError

__all__ = [
    "Array",
    "Bools",
    "Float64s",
    "Int8s",
    "Int32s",
    "Int64s",
    "OwnMemory",
    "as_array",
    "as_list",
    "as_offsets",
    "check_in_place",
    "for_kernels",
    "held",
    "known",
    "memory_for",
]

Array = np.ndarray[Any, Any]
"""An array as kernels see it: of any type and shape."""
Bools = NDArray[np.bool_]
Float64s = NDArray[np.float64]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

T = TypeVar("T")

# What can be read as what: numbers as floats, integers alone as integers, truth values as such.
_READ_AS = {"f": ("fiub", "numbers"), "i": ("iu", "integers"), "b": ("b", "truth values")}


def as_array(
    values: Any,
    dtype: DTypeLike,
    what: str,
    shape: tuple[int | None, ...] | None = None,
    *,
    low: int | None = None,
    high: int | None = None,
    finite: bool = False,
) -> Array:
    """Read values as an array that kernels can take: of one type, in C order, writable.

    The memory is that of the values where they are such an array already. Numbers are converted
    only without loss (but floats may be rounded).

    Parameters
    ----------
    values
        An array, or anything that NumPy makes one of.
    dtype
        The type to have: of floats, of signed integers, or bool.
    what : str
        What the values are called in messages, a plural.
    shape : tuple, optional
        The shape to have; None for a length that may be any.
    low, high : int, optional
        The least integer there may be, and the first that is too large.
    finite : bool
        Whether NaN and infinite numbers are refused.

    Raises
    ------
    DataError
        If the values are not of this kind.

    Examples
    --------
    >>> as_array([[1, 0], [2, 2]], np.int32, "edges", (None, 2), low=0, high=3).dtype
    dtype('int32')
    >>> as_array([0.5], np.int64, "labels")
    Traceback (most recent call last):
    trellis.errors.DataError: labels have dtype float64; expected integers
    >>> as_array([3, 7], np.int64, "labels", low=0, high=5)
    Traceback (most recent call last):
    trellis.errors.DataError: labels hold 7 at index 1; expected 0 to 4
    """
    wanted = np.dtype(dtype)
    array = _plain(values, what)
    kinds, words = _READ_AS[wanted.kind]
    if array.dtype.kind not in kinds:
        if array.size:
            raise DataError(f"{what} have dtype {array.dtype}; expected {words}")
        array = np.zeros(array.shape, wanted)
    if shape is not None and (
        array.ndim != len(shape)
        or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True))
    ):
        if array.shape != (0,) or shape[0] not in (None, 0):
            raise DataError(f"{what} have shape {array.shape}; expected {_shape(shape)}")
        array = np.zeros([0, *(n or 0 for n in shape[1:])], wanted)  # [] for no rows
    if wanted.kind == "i":
        _check_range(array, wanted, what, low, high)
    array = for_kernels(np.require(array, wanted, ["C", "A", "E"]))
    if finite and array.size and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise DataError(f"{what} hold {array[place]} at {_place(place)}; expected finite numbers")
    return array


def as_list(values: Any, what: str) -> list[Any]:
    """Read values that have an order as a list: of all that gives one after the other, but text.

    Parameters
    ----------
    values
        A list, a tuple, an array, an iterator, …
    what : str
        What the values are called in messages, a plural.

    Examples
    --------
    >>> as_list(("B", "I"), "labels")
    ['B', 'I']
    >>> as_list("BI", "labels")
    Traceback (most recent call last):
    trellis.errors.DataError: labels are of type str; expected a list
    """
    if not isinstance(values, str | bytes | Mapping | Set):
        try:
            return list(values)
        except TypeError:  # nothing to go through: a number, an array without dimensions
            pass
    raise DataError(f"{what} are of type {type(values).__name__}; expected a list")


def as_offsets(values: Any, what: str = "offsets", *, end: int | None = None) -> Int64s:
    """Read bounds of consecutive parts: integers that start with 0 and never fall.

    Parameters
    ----------
    values
        As for :func:`as_array`.
    what : str
        What they are called in messages.
    end : int, optional
        The last of them.

    Examples
    --------
    >>> as_offsets([0, 2, 5])
    array([0, 2, 5])
    >>> as_offsets([0, 3, 2])
    Traceback (most recent call last):
    trellis.errors.DataError: offsets fall at sample 1, from 3 to 2
    """
    offsets: Int64s = as_array(values, np.int64, what)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0:
        raise DataError(f"{what} must be a one-dimensional array that starts with 0")
    falling = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falling) > 0:
        s = falling[0]
        raise DataError(f"{what} fall at sample {s}, from {offsets[s]} to {offsets[s + 1]}")
    if end is not None and offsets[-1] != end:
        raise DataError(f"{what} end at {offsets[-1]}; expected {end}")
    return offsets


def check_in_place(array: Any, shape: tuple[int, ...], dtype: DTypeLike, what: str) -> None:
    """Refuse an array that kernels cannot write into, because it would have to be converted.

    Examples
    --------
    >>> check_in_place(np.zeros(2, np.float32), (2,), np.float64, "state")
    Traceback (most recent call last):
    trellis.errors.DataError: state must be a writable array of float64 and shape (2,)
    """
    wanted = np.dtype(dtype)
    if not (
        type(array) is np.ndarray
        and array.shape == shape
        and array.dtype == wanted
        and array.dtype.isnative
        and array.flags.carray
    ):
        raise DataError(f"{what} must be a writable array of {wanted} and shape {shape}")


def held(array: Any, of: Any = None) -> Array:
    """A read-only view of an array that has passed the checks, for an object to keep.

    Parameters
    ----------
    array : array
        What :func:`as_array` returned.
    of
        What it was given. Memory that it shares with an array that can be written to is copied, so
        that later changes of that one change nothing here; an array that is read-only already is
        shared: that is how large ones, as of a mapped file, are handed on.

    Examples
    --------
    >>> numbers = np.array([1, 2])
    >>> kept = held(as_array(numbers, np.int64, "numbers"), numbers)
    >>> numbers[0] = 7
    >>> kept, kept.flags.writeable
    (array([1, 2]), False)
    """
    if isinstance(of, np.ndarray) and of.flags.writeable and np.may_share_memory(array, of):
        array = array.copy()
    view: Array = array.view()
    view.setflags(write=False)
    return view


def for_kernels(array: Any) -> Array:
    """The same memory as a writable array, which is what kernels are compiled for.

    Kernels do not write into what they are not asked to fill. Memory that cannot be written to is
    copied.

    Examples
    --------
    >>> kept = held(np.arange(2))
    >>> ready = for_kernels(kept)
    >>> ready.flags.writeable, np.shares_memory(ready, kept)
    (True, True)
    """
    if array.flags.writeable:
        return np.asarray(array)
    view: Array = array.view()
    try:
        view.setflags(write=True)
    except ValueError:
        return np.array(array)
    return view


class OwnMemory:
    """What is unpickled has memory of its own.

    joblib may give an unpickled object arrays that are parts of a file, which cannot be written to;
    kernels are compiled for arrays that can.

    Examples
    --------
    >>> import tempfile
    >>> class Table(OwnMemory):
    ...     def __init__(self, cells):
    ...         self.cells = cells
    >>> table = Table.__new__(Table)
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file.name, np.arange(2))
    ...     table.__setstate__({"cells": np.load(file.name, mmap_mode="r")})
    >>> table.cells.flags.writeable
    True
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Not other read-only arrays: a copy of an object shares what it holds.
        for name, value in state.items():
            vars(self)[name] = np.array(value) if isinstance(value, np.memmap) else value


@contextmanager
def memory_for(n: int, what: str) -> Iterator[None]:
    """Context: where memory does not suffice for so many, that is what the error says.

    Examples
    --------
    >>> with memory_for(10**9, "nodes"):
    ...     raise MemoryError
    Traceback (most recent call last):
    trellis.errors.DataError: 1000000000 nodes do not fit into memory
    """
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{n} {what} do not fit into memory") from error


def known(kind: type[T], /, **attributes: Any) -> T:
    """An object of attributes that are known to be right, without the checks of its constructor.

    For what the library computes itself. Arrays are held as they are, read-only.

    Examples
    --------
    >>> from trellis.structures import AssignmentSpace
    >>> ends = np.array([0, 1])
    >>> len(known(AssignmentSpace, covers=np.array([[0, -1, -1]]), offsets=ends, row_offsets=ends))
    1
    """
    new = object.__new__(kind)
    vars(new).update(
        (name, held(value) if isinstance(value, np.ndarray) else value)
        for name, value in attributes.items()
    )
    return new


def _plain(values: Any, what: str) -> Array:
    """An array that is no subclass; raises if there is none."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise DataError(f"{what} have masked entries; expected a value for each")
        values = values.data
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise DataError(f"{what} cannot be read as an array: {error}") from error


def _check_range(
    array: Array, wanted: np.dtype[Any], what: str, low: int | None, high: int | None
) -> None:
    if not array.size:
        return
    limits = np.iinfo(wanted)
    least = limits.min if low is None else low
    most = int(limits.max) if high is None else high - 1
    if int(array.min()) >= least and int(array.max()) <= most:
        return
    place = tuple(int(i) for i in np.argwhere((array < least) | (array > most))[0])
    too_low = low is not None and high is None and array[place] < low
    expected = f"at least {least}" if too_low else f"{least} to {most}"
    raise DataError(f"{what} hold {array[place]} at {_place(place)}; expected {expected}")


def _place(place: tuple[int, ...]) -> str:
    return f"index {place[0] if len(place) == 1 else place}"


def _shape(shape: tuple[int | None, ...]) -> str:
    words = ", ".join("any" if n is None else str(n) for n in shape)
    return f"({words},)" if len(shape) == 1 else f"({words})"
