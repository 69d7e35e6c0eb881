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
the functions of :mod:`trellis.stored`.

References
----------
.. [1] https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError, TrellisError
from trellis.files import atomic_write, display_name
from trellis.stored import check_text

__all__ = [
    "FORMAT",
    "loading",
    "read_container",
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
            check_text(key, f"a key of {where}")
            _check_json(item, f"{where}[{key!r}]", depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_json(item, f"{where}[{i}]", depth + 1)
    elif isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise DataError(f"{where} is {value}: JSON has finite numbers only")
    elif value is not None and not isinstance(value, int):
        kind = type(value).__name__
        raise DataError(f"{where} is a {kind}: use dict, list, str, int, float, bool or None")


def _storable(name: object, array: object) -> NDArray[Any]:
    """Return the array as safetensors wants it: little-endian, C order."""
    if not isinstance(name, str) or name == "__metadata__":
        raise DataError(f"{name!r} cannot name an array: use a str other than '__metadata__'")
    check_text(name, "the name of an array")
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
    >>> from trellis.stored import take
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
