"""Arrays that are mostly zero, as indices and values.

An array is kept as the places, in C order, of all elements whose bytes are not all zero, and as
these elements; so -0.0 and NaN come back with their bits. It is worth it where both together take
at most half the bytes, as the weights of a model with an L1 penalty do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError

__all__ = ["dense_array", "sparse_parts"]

_OVERHEAD = 256  # bytes that two more entries take in a file's table


def sparse_parts(array: NDArray[Any]) -> tuple[NDArray[Any], ...] | None:
    """Indices and values of an array, or None if that is not clearly smaller.

    Examples
    --------
    >>> array = np.zeros(1000)
    >>> array[3] = -0.5
    >>> sparse_parts(array)
    (array([3], dtype=uint32), array([-0.5]))
    >>> sparse_parts(np.ones(1000)) is None
    True
    """
    if array.nbytes < 2 * _OVERHEAD or array.dtype.kind not in "buif":
        return None
    flat = array.reshape(-1)
    bits = flat.view(f"u{array.itemsize}")
    kind = np.dtype("<u4" if array.size <= 2**32 else "<u8")
    if 2 * (np.count_nonzero(bits) * (kind.itemsize + array.itemsize) + _OVERHEAD) > array.nbytes:
        return None
    places = np.flatnonzero(bits)
    return places.astype(kind), flat[places]


def dense_array(
    shape: Sequence[int], index: NDArray[Any], values: NDArray[Any], name: str
) -> NDArray[Any]:
    """Undo :func:`sparse_parts`, checking everything; ``name`` is for the message.

    Examples
    --------
    >>> dense_array([2, 2], np.array([1], np.uint32), np.array([0.5]), "w")
    array([[0. , 0.5],
           [0. , 0. ]])
    """
    size = math.prod(shape)
    if index.dtype not in (np.dtype("<u4"), np.dtype("<u8")) or index.ndim != 1:
        raise CorruptModelError(f"the indices of array {name!r} are not a list of integers")
    if values.shape != index.shape:
        raise CorruptModelError(f"array {name!r} has not one value for each index")
    if len(index) and (int(index[-1]) >= size or (index[1:] <= index[:-1]).any()):
        raise CorruptModelError(f"the indices of array {name!r} are not ascending and below {size}")
    flat = np.zeros(size, values.dtype)
    flat[index.astype(np.int64)] = values
    return flat.reshape(shape)
