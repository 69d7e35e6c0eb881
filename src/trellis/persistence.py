r"""The container of model files: named arrays and a JSON header under one checksum.

A file is, byte for byte,

====== ======= ====================================================================
offset length  content
====== ======= ====================================================================
0      8       magic, ``b"TRELLIS\0"``
8      4       format number, unsigned little-endian
12     32      SHA-256 of all other bytes: magic, format number and payload
44     rest    payload
====== ======= ====================================================================

These first 44 bytes mean the same in every format. In format 1 the payload is a safetensors file
[1]_ with the arrays, and with the header as JSON text under ``__metadata__["trellis"]``. Equal
input gives equal bytes.

Reading checks the checksum before it looks at anything else, so that a changed file is never
believed; but a checksum stops accidents, not malice, so everything behind it is checked too.
Nothing in a file is ever executed. Whatever is wrong with the content,
:class:`~trellis.errors.CorruptModelError` is raised.

To load a model: :func:`read_container`, then, inside ``with loading(path)``, fetch each part with
:func:`header_value`, :func:`take`, :func:`check_range` and :func:`unpack_strings`.

References
----------
.. [1] https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trellis.errors import CorruptModelError, DataError, TrellisError
from trellis.files import atomic_write, display_name

__all__ = [
    "FORMAT",
    "check_range",
    "header_value",
    "loading",
    "pack_strings",
    "read_container",
    "take",
    "unpack_strings",
    "write_container",
]

T = TypeVar("T")

FORMAT = 1
_MAGIC = b"TRELLIS\0"
_PREFIX_SIZE = len(_MAGIC) + 4 + 32
_MAX_DEPTH = 64
# Well below the 100 MB that safetensors allows for its table, where quoting can double the text.
_MAX_HEADER_BYTES = 10_000_000
_MAX_REASON = 200

# safetensors' names of the types a container may hold; bytes are little-endian on any machine.
_DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"U{8 * n}": np.dtype(f"<u{n}") for n in (1, 2, 4, 8)},
    **{f"I{8 * n}": np.dtype(f"<i{n}") for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
}


# ---------------------------------------------------------------------------- writing


def write_container(
    path: str | os.PathLike[Any], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a header and named arrays to a file, all or nothing.

    Parameters
    ----------
    path
        The file; an old one is replaced only when the new one is complete.
    header
        Strict JSON: dicts with ``str`` keys, lists, ``str``, ``int``, finite ``float``, ``bool``,
        ``None``. It holds settings; large tables belong into arrays (see :func:`pack_strings`).
    arrays
        Arrays of bool, (u)int8 to (u)int64, or float16 to float64, of any shape and memory order.

    Raises
    ------
    DataError
        If the header or an array cannot be stored.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "m.trellis"
    >>> write_container(path, {"labels": ["B", "O"]}, {"w": np.array([0.5, -1.0])})
    >>> read_container(path)
    ({'labels': ['B', 'O']}, {'w': array([ 0.5, -1. ])})
    """
    from safetensors.numpy import save

    text = _header_text(header)
    stored = {name: _storable(name, array) for name, array in arrays.items()}
    payload = save(stored, metadata={"trellis": text})  # sorts the arrays by type and name
    start = _MAGIC + FORMAT.to_bytes(4, "little")
    with atomic_write(path) as file:
        file.write(start + _digest(start, payload))
        file.write(payload)


def _digest(start: bytes, payload: bytes) -> bytes:
    sha = hashlib.sha256(start)
    sha.update(payload)
    return sha.digest()


def _header_text(header: Mapping[str, Any]) -> str:
    if not isinstance(header, dict):
        raise DataError(f"the header must be a dict, not {type(header).__name__}")
    _check_json(header, "header", 0)
    try:
        text = json.dumps(
            header, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except ValueError as error:  # an int of thousands of digits
        raise DataError(f"the header cannot be written as JSON: {error}") from error
    size = len(text.encode())
    if size > _MAX_HEADER_BYTES:
        raise DataError(
            f"the header takes {size} bytes, {_MAX_HEADER_BYTES} are allowed: "
            "store large tables as arrays (pack_strings)"
        )
    return text


def _check_json(value: object, where: str, depth: int) -> None:
    """Refuse what JSON would lose or change: keys not ``str``, tuples, NaN, lone surrogates."""
    if depth > _MAX_DEPTH:
        raise DataError(f"the header is nested deeper than {_MAX_DEPTH} levels: {where}")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise DataError(f"{where} has the key {key!r}: keys must be str")
            _check_text(key, f"a key of {where}")
            _check_json(item, f"{where}[{key!r}]", depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_json(item, f"{where}[{i}]", depth + 1)
    elif isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise DataError(f"{where} is {value}: JSON has finite numbers only")
    elif value is not None and not isinstance(value, int):
        kind = type(value).__name__
        raise DataError(f"{where} is a {kind}: use dict, list, str, int, float, bool or None")


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where} holds a lone surrogate ({text[:40]!r}), which is not valid text; "
            "decode the input as UTF-8 without errors='surrogateescape'"
        ) from None


def _storable(name: object, array: object) -> NDArray[Any]:
    """Return the array as safetensors wants it: little-endian, C order."""
    if not isinstance(name, str) or name == "__metadata__":
        raise DataError(f"{name!r} cannot name an array: use a str other than '__metadata__'")
    _check_text(name, "the name of an array")
    if not isinstance(array, np.ndarray):
        raise DataError(f"array {name!r} is a {type(array).__name__}, not a numpy array")
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _DTYPES.values():
        raise DataError(
            f"array {name!r} has dtype {array.dtype}: only bool, integers and float16/32/64 "
            "can be stored"
        )
    return np.asarray(array, dtype=dtype, order="C")


# ---------------------------------------------------------------------------- reading


@contextmanager
def loading(path: str | os.PathLike[Any]) -> Iterator[None]:
    """Turn any failure inside the block into a `CorruptModelError` that names the file.

    Only ``OSError`` (a missing file, say) passes through as it is.

    Examples
    --------
    >>> with loading("m.trellis"):
    ...     weights = take({}, "weights", "f4", (None,))
    Traceback (most recent call last):
    trellis.errors.CorruptModelError: m.trellis: array 'weights' is missing
    """
    name = display_name(path)
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        reason = str(error)
        if isinstance(error, CorruptModelError) and reason.startswith(f"{name}: "):
            raise  # a nested block has named it
        if not isinstance(error, (TrellisError, ValueError)):
            # The text alone ("'w'" of a KeyError, "" of a MemoryError) would not tell.
            reason = f"{type(error).__name__}: {reason}"
        raise CorruptModelError(f"{name}: {_one_line(reason)}") from error


def _one_line(text: str) -> str:
    """Make a text that may quote a hostile file safe to show; a long one loses its middle."""
    if len(text) > _MAX_REASON:
        text = f"{text[: _MAX_REASON // 2]}…{text[1 - _MAX_REASON // 2 :]}"
    return "".join(c if c.isprintable() else " " for c in text)


def read_container(path: str | os.PathLike[Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write_container` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    header : dict
        The header, keys sorted.
    arrays : dict of ndarray
        The arrays by sorted name: C order, aligned, with memory of their own.

    Raises
    ------
    CorruptModelError
        If the file is damaged, truncated, extended, not a model file, or from a newer Trellis.
    OSError
        If it cannot be opened or read; ``FileNotFoundError`` if it is missing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "m.trellis"
    >>> write_container(path, {}, {"w": np.arange(3)})
    >>> read_container(path)
    ({}, {'w': array([0, 1, 2])})
    """
    with loading(path):
        with Path(os.fsdecode(path)).open("rb") as file:
            prefix = file.read(_PREFIX_SIZE)
            _check_start(prefix)
            payload = file.read()
        start, digest = prefix[:-32], prefix[-32:]
        if _digest(start, payload) != digest:
            raise CorruptModelError("the checksum does not match: the file is damaged or truncated")
        number = int.from_bytes(start[len(_MAGIC) :], "little")
        if number > FORMAT:
            raise CorruptModelError(
                f"the file has format {number}, this Trellis reads up to {FORMAT}: upgrade Trellis"
            )
        if number < 1:
            raise CorruptModelError(f"the file has format {number}, which does not exist")
        return _parse(payload)


def _check_start(prefix: bytes) -> None:
    if not prefix:
        raise CorruptModelError("the file is empty")
    if prefix[: len(_MAGIC)] != _MAGIC[: len(prefix)]:
        raise CorruptModelError("not a Trellis model file")
    if len(prefix) < _PREFIX_SIZE:
        raise CorruptModelError(f"the file is truncated, it ends after {len(prefix)} bytes")


def _parse(payload: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a format-1 payload apart; any exception means that it is corrupt."""
    from safetensors import deserialize

    # `deserialize` checks the table and the data, but does not give the metadata.
    tensors = deserialize(payload)  # type: ignore[no-untyped-call]  # safetensors
    table = _load_json(payload[8 : 8 + int.from_bytes(payload[:8], "little")].decode())
    metadata = table.get("__metadata__")
    if not isinstance(metadata, dict) or set(metadata) != {"trellis"}:
        raise CorruptModelError("the payload holds no Trellis header")
    header = _load_json(metadata["trellis"])
    _check_json(header, "header", 0)
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in sorted(tensors, key=lambda item: item[0]):
        if tensor["dtype"] not in _DTYPES:
            raise CorruptModelError(f"array {name!r} has the unknown type {tensor['dtype']}")
        array = np.frombuffer(tensor["data"], dtype=_DTYPES[tensor["dtype"]])
        if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise CorruptModelError(f"array {name!r} has a truth value that is neither 0 nor 1")
        arrays[name] = array.reshape(tensor["shape"])
    return header, arrays


def _load_json(text: str) -> dict[str, Any]:
    value: object = json.loads(text, object_pairs_hook=_unique_keys)
    if not isinstance(value, dict):
        raise CorruptModelError(f"the header is a JSON {type(value).__name__}, not an object")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise CorruptModelError(f"the header has the key {key!r} twice")
        result[key] = value
    return result


# ---------------------------------------------------------------------------- tables of strings


def pack_strings(strings: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Store strings as two arrays: string i is ``blob[offsets[i]:offsets[i + 1]]`` in UTF-8.

    Parameters
    ----------
    strings
        Any number of strings, each of any length; lone surrogates are refused (`DataError`).

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
            _check_text(text, f"string {i}")
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return {"blob": np.frombuffer(b"".join(encoded), dtype=np.uint8), "offsets": offsets}


def unpack_strings(blob: NDArray[Any], offsets: NDArray[Any]) -> list[str]:
    """Undo :func:`pack_strings`, checking everything.

    Parameters
    ----------
    blob, offsets
        The two arrays.

    Returns
    -------
    list of str
        The strings.

    Raises
    ------
    CorruptModelError
        If the offsets do not divide the blob, or a string is not valid UTF-8.

    Examples
    --------
    >>> unpack_strings(**pack_strings(["a", "", "é"]))
    ['a', '', 'é']
    """
    table = {"blob": blob, "offsets": offsets}
    data = take(table, "blob", np.uint8, (None,)).tobytes()
    bounds = take(table, "offsets", np.int64, (None,))
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != len(data):
        raise CorruptModelError("the offsets of a string table do not begin and end with its blob")
    if np.any(bounds[1:] < bounds[:-1]):
        raise CorruptModelError("the offsets of a string table are not in order")
    strings: list[str] = []
    try:
        strings.extend(data[begin:end].decode() for begin, end in pairwise(bounds.tolist()))
    except UnicodeDecodeError as error:
        raise CorruptModelError(f"string {len(strings)} of a table is not valid UTF-8") from error
    return strings


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
    found = type(value)
    if found is not kind:
        raise CorruptModelError(
            f"header entry {key!r} is a {found.__name__}, {kind.__name__} expected"
        )
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
