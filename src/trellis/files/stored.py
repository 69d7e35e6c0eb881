"""The parts of a model file, fetched with checks: header entries, arrays, tables of strings.

A checksum stops accidents, not malice: whatever a file says is checked here before a kernel sees
it. Each function raises :class:`~trellis.errors.CorruptModelError` for what does not fit; used
inside ``with trellis.files.container.loading(path)``, the message names the file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trellis.errors import CorruptModelError, DataError

__all__ = [
    "check_range",
    "check_text",
    "header_value",
    "input_layout",
    "pack_strings",
    "packed_strings",
    "take",
    "unpack_strings",
]

T = TypeVar("T")


def check_text(text: str, where: str) -> None:
    """Refuse text that cannot be written as UTF-8 (lone surrogates).

    Examples
    --------
    >>> check_text("fine", "the header")
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where} holds a lone surrogate ({text[:40]!r}), which is not valid text; "
            "decode the input as UTF-8 without errors='surrogateescape'"
        ) from None


# ---------------------------------------------------------------------------- tables of strings


def pack_strings(strings: Sequence[str], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Store strings as two arrays: string i is ``blob[offsets[i]:offsets[i + 1]]`` in UTF-8.

    Parameters
    ----------
    strings
        Any number of strings, each of any length; lone surrogates are refused (`DataError`).
    prefix
        What the names of the arrays begin with.

    Returns
    -------
    dict
        ``"blob"``, uint8, and ``"offsets"``, int64, one more than there are strings.

    Examples
    --------
    >>> pack_strings(["a", "", "é"])
    {'blob': array([ 97, 195, 169], dtype=uint8), 'offsets': array([0, 1, 1, 3])}
    """
    encoded: list[bytes] = []
    for i, text in enumerate(strings):
        if not isinstance(text, str):
            raise DataError(f"string {i} is a {type(text).__name__}, not a str")
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError:
            check_text(text, f"string {i}")
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    blob = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return {f"{prefix}blob": blob, f"{prefix}offsets": offsets}


def unpack_strings(arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> list[str]:
    """Undo :func:`pack_strings`, checking everything.

    Parameters
    ----------
    arrays
        Arrays by name, the two among them.
    prefix
        What their names begin with.

    Returns
    -------
    list of str
        The strings.

    Raises
    ------
    CorruptModelError
        If an array is missing, the offsets do not divide the blob, or a string is not valid UTF-8.

    Examples
    --------
    >>> unpack_strings(pack_strings(["a", "", "é"]))
    ['a', '', 'é']
    """
    blob, offsets = packed_strings(arrays, prefix)
    data = blob.tobytes()
    return [data[begin:end].decode() for begin, end in pairwise(offsets.tolist())]


def packed_strings(
    arrays: Mapping[str, NDArray[Any]], prefix: str = ""
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Fetch the two arrays of :func:`pack_strings`, checking everything.

    Parameters
    ----------
    arrays
        Arrays by name, the two among them.
    prefix
        What their names begin with.

    Returns
    -------
    blob, offsets : ndarray
        String i is ``blob[offsets[i]:offsets[i + 1]]``, valid UTF-8.

    Raises
    ------
    CorruptModelError
        If an array is missing, the offsets do not divide the blob, or a string is not valid UTF-8.

    Examples
    --------
    >>> packed_strings({"blob": np.array([97, 98], np.uint8), "offsets": np.array([0, 2, 1, 2])})
    Traceback (most recent call last):
    trellis.errors.CorruptModelError: the offsets of a string table are not in order
    """
    blob = take(arrays, f"{prefix}blob", np.uint8, (None,))
    offsets = take(arrays, f"{prefix}offsets", np.int64, (None,))
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(blob):
        raise CorruptModelError("the offsets of a string table do not begin and end with its blob")
    if np.any(offsets[1:] < offsets[:-1]):
        raise CorruptModelError("the offsets of a string table are not in order")
    # Text that is valid as a whole is so in parts that begin where a character does.
    data, first = blob.tobytes(), offsets[:-1][offsets[:-1] < len(blob)]
    try:
        data.decode()
        valid = not np.any(blob[first] & 0xC0 == 0x80)
    except UnicodeDecodeError:
        valid = False
    if not valid:
        for i, (begin, end) in enumerate(pairwise(offsets.tolist())):
            try:
                data[begin:end].decode()
            except UnicodeDecodeError as error:
                raise CorruptModelError(f"string {i} of a table is not valid UTF-8") from error
    return blob, offsets


# ---------------------------------------------------------------------------- checks after reading


def take(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    *,
    finite: bool = True,
) -> NDArray[Any]:
    """Fetch an array of a known type and shape.

    Parameters
    ----------
    arrays
        Arrays by name.
    name
        The one wanted.
    dtype
        The type it must have, exactly.
    shape
        The shape it must have; None stands for any length.
    finite
        Whether infinities and NaN are refused.

    Returns
    -------
    ndarray
        ``arrays[name]``.

    Raises
    ------
    CorruptModelError
        If it is missing or not as wanted.

    Examples
    --------
    >>> take({"w": np.zeros((2, 3))}, "w", np.float64, (None, 3)).shape
    (2, 3)
    """
    if name not in arrays:
        raise CorruptModelError(f"array {name!r} is missing")
    array = arrays[name]
    if array.dtype != np.dtype(dtype):
        raise CorruptModelError(
            f"array {name!r} has dtype {array.dtype}, {np.dtype(dtype)} expected"
        )
    fits = len(shape) == array.ndim and all(
        want is None or want == length for want, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise CorruptModelError(f"array {name!r} has shape {array.shape}, ({wanted}) expected")
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise CorruptModelError(f"array {name!r} holds a number that is not finite")
    return array


def check_range(array: NDArray[Any], low: float, high: float, what: str) -> None:
    """Check that ``low <= x < high`` for each element (as in ``range``); empty arrays pass.

    Parameters
    ----------
    array
        Numbers of any type.
    low, high
        The bounds; `high` itself is out.
    what
        What the numbers are, for the message.

    Raises
    ------
    CorruptModelError
        If an element lies outside or is NaN.

    Examples
    --------
    >>> check_range(np.array([0, 4]), 0, 4, "label ids")
    Traceback (most recent call last):
    trellis.errors.CorruptModelError: label ids lie in 0 .. 4, outside 0 <= x < 4
    """
    if array.size == 0:
        return
    # As Python numbers, because numpy would compare a uint64 and a negative bound as floats.
    smallest, largest = array.min().item(), array.max().item()
    if not (low <= smallest and largest < high):
        raise CorruptModelError(
            f"{what} lie in {smallest} .. {largest}, outside {low} <= x < {high}"
        )


def header_value(
    header: Mapping[str, Any],
    key: str,
    kind: type[T],
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[T] | None = None,
    items: type | None = None,
    finite: bool = True,
) -> T:
    """Fetch a header entry of a known type.

    Parameters
    ----------
    header
        The header, or a dict inside it.
    key
        The entry wanted.
    kind
        ``bool``, ``int``, ``float``, ``str``, ``list`` or ``dict``. A bool does not pass for an
        int; an int passes for a float and is turned into one.
    low, high
        Bounds of a number: ``low <= value < high``.
    choices
        The values allowed.
    items
        The type each element of a list, or value of a dict, must have.
    finite
        Whether a float that is infinite or NaN is refused.

    Returns
    -------
    value
        The entry.

    Raises
    ------
    CorruptModelError
        If it is missing or not as wanted.

    Examples
    --------
    >>> header_value({"order": 1}, "order", int, low=1, high=3)
    1
    >>> header_value({"order": "1"}, "order", int)
    Traceback (most recent call last):
    trellis.errors.CorruptModelError: header entry 'order' is a str, int expected
    """
    if key not in header:
        raise CorruptModelError(f"header entry {key!r} is missing")
    value: Any = header[key]
    if kind is float and type(value) is int:
        try:
            value = float(value)
        except OverflowError:
            raise CorruptModelError(f"header entry {key!r} is too large for a float") from None
    actual = type(value)
    if actual is not kind:
        raise CorruptModelError(
            f"header entry {key!r} is a {actual.__name__}, {kind.__name__} expected"
        )
    if finite and isinstance(value, float) and not math.isfinite(value):
        raise CorruptModelError(f"header entry {key!r} is {value}, not a finite number")
    if (low is not None and value < low) or (high is not None and value >= high):
        raise CorruptModelError(f"header entry {key!r} is {value}, outside {low} <= x < {high}")
    if choices is not None and value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise CorruptModelError(f"header entry {key!r} is {value!r}, one of {allowed} expected")
    if items is not None:
        for item in value.values() if isinstance(value, dict) else value:
            if type(item) is not items:
                raise CorruptModelError(
                    f"header entry {key!r} holds a {type(item).__name__}, {items.__name__} expected"
                )
    return cast(T, value)


def input_layout(header: Mapping[str, Any]) -> dict[str, Any] | None:
    """Fetch the entry ``input_format``: how the command line read a file, None if it did not.

    Raises
    ------
    CorruptModelError
        If it holds anything that the command line cannot have written.

    Examples
    --------
    >>> input_layout({"input_format": {"format": "crfsuite"}})
    {'format': 'crfsuite'}
    """
    layout = header_value(header, "input_format", dict)
    if not layout:
        return None
    of_columns = {"format": str, "columns": list, "label": str, "tabs": bool, "skip": str}
    kinds = of_columns | {"group": str}
    for key, value in layout.items():
        if key not in kinds or not isinstance(value, kinds[key]):
            raise CorruptModelError(f"input format has a wrong entry {key!r}")
    if not all(isinstance(c, str) for c in layout.get("columns", [])):
        raise CorruptModelError("input format has a wrong entry 'columns'")
    needed = set(of_columns) if layout.get("format") in ("conll", "graphs") else {"format"}
    needed |= {"columns", "label", "group"} if layout.get("format") == "csv" else set()
    if not needed <= set(layout):
        raise CorruptModelError("input format lacks an entry")
    return layout
