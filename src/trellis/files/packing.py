r"""Arrays in fewer bytes that come back bit by bit.

An array is kept in one of three ways, whichever takes the least room:

narrow
    in a smaller type that holds all its elements: labels' ids as uint8, float32 weights that were
    rounded to float16 as float16;
gaps
    integers :math:`0 \le a_0 \le a_1 \le \dots`, as pointers and sorted keys are, by the steps
    :math:`a_0, a_1 - a_0, \dots`, narrow again;
sparse
    an array that is mostly zero by its elements whose bytes are not all zero (so that -0.0 and NaN
    come back with their bits) and the numbers of zeros before each of them, both narrow. A run of
    zeros that is too long for the type of these numbers is cut by a zero that is kept.

What a file says is checked before anything is made of it: no index is ever read from a file, so
none can be out of order, and the sum of all steps is compared with the size first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError

__all__ = ["Packed", "packed", "scattered", "unpacked"]

_OVERHEAD = 256  # bytes that entries of a file's table take
_SAMPLE = 1024  # elements by which a narrow type of floats is ruled out at once


class Packed(NamedTuple):
    """How an array is kept, "narrow", "gaps" or "sparse", and the arrays that are."""

    way: str
    parts: tuple[NDArray[Any], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the parts."""
        return sum(part.nbytes for part in self.parts)


def packed(array: NDArray[Any]) -> Packed | None:
    """The array in its smallest form, or None if that is not clearly smaller.

    Examples
    --------
    >>> packed(np.arange(1000)).way, packed(np.arange(1000)).parts[0].dtype
    ('gaps', dtype('uint8'))
    >>> packed(np.full(1000, 0.5, np.float32)).parts[0].dtype
    dtype('float16')
    >>> packed(np.random.default_rng(0).normal(size=1000)) is None
    True
    """
    if array.nbytes < 2 * _OVERHEAD or array.dtype.kind not in "buif":
        return None
    narrow = _narrow(array)
    forms = [Packed("narrow", (narrow,))]
    if (gaps := _gaps(array)) is not None:
        forms.append(Packed("gaps", (gaps,)))
    best = min(forms, key=lambda form: form.nbytes)
    sparse = _sparse(array, narrow.itemsize, best.nbytes)
    if sparse is not None:
        best = sparse
    return best if 4 * (best.nbytes + _OVERHEAD) <= 3 * array.nbytes else None


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """The array in the smallest type of its kind that holds it exactly."""
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        kind = "u" if low >= 0 else "i"
        for size in (1, 2, 4):
            limits = np.iinfo(f"{kind}{size}")
            if size < array.itemsize and limits.min <= low and high <= limits.max:
                return array.astype(f"<{kind}{size}")
    if array.dtype.kind == "f":
        for size in (2, 4):
            some = array.reshape(-1)[:_SAMPLE]
            if size < array.itemsize and _is_exact(some, size) and _is_exact(array, size):
                return array.astype(f"<f{size}")
    return array


def _is_exact(array: NDArray[Any], size: int) -> bool:
    """Whether floats of ``size`` bytes hold the same bits."""
    with np.errstate(all="ignore"):
        again = array.astype(f"<f{size}").astype(array.dtype)
    bits = f"<u{array.itemsize}"
    return bool(np.array_equal(again.view(bits), array.view(bits)))


def _gaps(array: NDArray[Any]) -> NDArray[Any] | None:
    """The steps of integers that ascend from at least 0, in a narrow type."""
    if array.dtype.kind not in "iu" or array.ndim != 1 or not array.size:
        return None
    if array[0] < 0 or int(array[-1]) >= 2**62 or (array[1:] < array[:-1]).any():
        return None
    return _narrow(np.diff(array.astype(np.int64), prepend=np.int64(0)).astype("<u8"))


def _sparse(array: NDArray[Any], itemsize: int, nbytes: int) -> Packed | None:
    """The array by its elements that are not zero, if that takes less than 3/4 of some bytes.

    ``itemsize`` is that of its narrow type, which zeros do not change.
    """
    flat = array.reshape(-1)
    bits = flat.view(f"<u{array.itemsize}")
    count = np.count_nonzero(bits)
    if 4 * count * (1 + itemsize) > 3 * nbytes:  # a gap takes at least a byte
        return None
    places = np.flatnonzero(bits)
    values = flat[places] if itemsize == array.itemsize else _narrow(flat[places])
    gaps = np.diff(places, prepend=-1) - 1
    sizes = {n: (count + int((gaps >> (8 * n)).sum())) * (n + values.itemsize) for n in (1, 2, 4)}
    size = min(sizes, key=lambda n: sizes[n])
    if 4 * (sizes[size] + _OVERHEAD) > 3 * nbytes:
        return None
    cuts = gaps >> (8 * size)  # zeros that are kept before each element
    if cuts.any():
        last = np.cumsum(cuts + 1) - 1  # where each element comes to stand
        filled, rest = np.zeros(last[-1] + 1, values.dtype), np.full(last[-1] + 1, 256**size - 1)
        filled[last], rest[last] = values, gaps - (cuts << (8 * size))
        values, gaps = filled, rest
    return Packed("sparse", (gaps.astype(f"<u{size}"), values))


# ---------------------------------------------------------------------------- and back


def unpacked(
    way: str, dtype: np.dtype[Any], shape: Sequence[int], parts: Sequence[NDArray[Any]], name: str
) -> NDArray[Any]:
    """Undo :func:`packed`, checking everything; ``name`` is for the message.

    Examples
    --------
    >>> gaps, values = np.array([1, 2], np.uint8), np.array([0.5, 2], np.float16)
    >>> unpacked("sparse", np.dtype("f4"), [5], [gaps, values], "w")
    array([0. , 0.5, 0. , 0. , 2. ], dtype=float32)
    """
    if way == "narrow":
        _check_shape(parts[0], shape, name)
        return _widened(parts[0], dtype, name)
    gaps = parts[0]
    if gaps.dtype.kind != "u" or gaps.ndim != 1:
        raise CorruptModelError(f"the gaps of array {name!r} are not a list of integers")
    # Exact: sums of integers below 2**53 are, and those above it are too large in any case.
    total = float(gaps.sum(dtype=np.float64))
    if way == "gaps":
        _check_shape(gaps, shape, name)
        if dtype.kind not in "iu" or total > min(np.iinfo(dtype).max, 2**62):
            raise CorruptModelError(f"the gaps of array {name!r} do not fit its type")
        return np.cumsum(gaps, dtype=np.int64).astype(dtype)
    values, size = parts[1], math.prod(shape)
    if values.shape != gaps.shape:
        raise CorruptModelError(f"array {name!r} has not one value for each gap")
    if total + len(gaps) > size:
        raise CorruptModelError(f"the gaps of array {name!r} reach beyond its {size} elements")
    flat = np.zeros(size, dtype)
    flat[np.cumsum(gaps, dtype=np.int64) + np.arange(len(gaps))] = _widened(values, dtype, name)
    return flat.reshape(shape)


def _check_shape(part: NDArray[Any], shape: Sequence[int], name: str) -> None:
    if list(part.shape) != list(shape):
        raise CorruptModelError(f"array {name!r} is kept in the shape {part.shape}, not {shape}")


def _widened(part: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Elements in the type that they had."""
    whole = part.dtype.kind in "iu" and dtype.kind in "iu" and part.itemsize < dtype.itemsize
    fits = whole and (part.dtype.kind == "u" or dtype.kind == "i")
    floats = part.dtype.kind == dtype.kind == "f" and part.itemsize < dtype.itemsize
    if not (fits or floats or part.dtype == dtype):
        raise CorruptModelError(f"array {name!r} of {dtype} cannot be kept as {part.dtype}")
    return part.astype(dtype)


def scattered(shape: Sequence[int], parts: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """An array of format 2, which kept the places of elements themselves.

    Examples
    --------
    >>> parts = {"index": np.array([1], np.uint32), "values": np.array([0.5])}
    >>> scattered([2, 2], parts, "w")
    array([[0. , 0.5],
           [0. , 0. ]])
    """
    index, values, size = parts["index"], parts["values"], math.prod(shape)
    if index.dtype not in (np.dtype("<u4"), np.dtype("<u8")) or index.ndim != 1:
        raise CorruptModelError(f"the indices of array {name!r} are not a list of integers")
    if values.shape != index.shape:
        raise CorruptModelError(f"array {name!r} has not one value for each index")
    if len(index) and (int(index[-1]) >= size or (index[1:] <= index[:-1]).any()):
        raise CorruptModelError(f"the indices of array {name!r} are not ascending and below {size}")
    flat = np.zeros(size, values.dtype)
    flat[index.astype(np.int64)] = values
    return flat.reshape(shape)
