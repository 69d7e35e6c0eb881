r"""The container of all files of Trellis: named arrays and a JSON header under one checksum.

A file is, byte for byte,

====== ======= ====================================================================
offset length  content
====== ======= ====================================================================
0      8       magic: ``b"TRELLIS\0"`` a model, ``b"TRELLISP"`` a prepared corpus
8      4       format number, unsigned little-endian
12     32      SHA-256 of all other bytes: magic, format number and payload
44     rest    payload
====== ======= ====================================================================

These first 44 bytes mean the same in every format. In format 1 the payload is a safetensors file
[1]_ with the arrays, and with the header as JSON text under ``__metadata__["trellis"]``. Its table
is padded so that the arrays begin at a multiple of 64 bytes of the file: together with their order,
larger types first, that aligns every array, and a file can be mapped into memory. Equal input gives
equal bytes.

Format 3 is format 1 with arrays of a model kept in fewer bytes where that loses nothing
(:mod:`trellis.files.packing`): ``__metadata__["packed"]`` is a JSON object that has for each such
array w the way, the type and the shape. Its parts are w itself or, if it is mostly zero, the arrays
``w#gaps`` and ``w#values``. A file without any has format 1. Format 2 had arrays that are mostly
zero as ``w#index`` and ``w#values``, and their shapes in ``__metadata__["sparse"]``.

Reading checks the checksum before it looks at anything else, so that a changed file is never
believed; but a checksum stops accidents, not malice, so everything behind it is checked too.
Nothing in a file is ever executed. Whatever is wrong with the content of a model,
:class:`~trellis.errors.CorruptModelError` is raised; of a prepared corpus,
:class:`~trellis.errors.DataError`.

To load a model: :func:`read_container`, then, inside ``with loading(path)``, fetch each part with
the functions of :mod:`trellis.files.stored`.

References
----------
.. [1] https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError, TrellisError
from trellis.files.atomic import atomic_write
from trellis.files.packing import packed, scattered, unpacked
from trellis.files.paths import display_name
from trellis.files.stored import check_text

__all__ = [
    "FORMAT",
    "MODEL",
    "PREPARED",
    "FileKind",
    "header_text",
    "loading",
    "map_container",
    "read_container",
    "stream_container",
    "write_container",
]


@dataclass(frozen=True)
class FileKind:
    """What a file holds: its first eight bytes, its name in messages, what a bad one raises."""

    magic: bytes
    name: str
    error: type[TrellisError]


FORMAT = 3
MODEL = FileKind(b"TRELLIS\0", "model file", CorruptModelError)
PREPARED = FileKind(b"TRELLISP", "prepared corpus", DataError)
_PREFIX_SIZE = len(MODEL.magic) + 4 + 32
_ALIGNMENT = 64
_BLOCK = 1 << 20  # bytes written or checked at once
_MAX_TABLE_BYTES = 100_000_000  # as safetensors has it
_MAX_DEPTH = 64
# Well below the 100 MB that safetensors allows for its table, where quoting can double the text.
_MAX_HEADER_BYTES = 10_000_000
_MAX_REASON = 200
_ENDINGS = {"narrow": ("",), "gaps": ("",), "sparse": ("#gaps", "#values")}  # of parts' names
# A small file must not ask for more memory than this, or than so many times its own size.
_MAX_ROOM, _MAX_EXPANSION = 1 << 26, 1024
_MAX_AXES = 32

# safetensors' names of the types a container may hold; bytes are little-endian on any machine.
_DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"U{8 * n}": np.dtype(f"<u{n}") for n in (1, 2, 4, 8)},
    **{f"I{8 * n}": np.dtype(f"<i{n}") for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


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
    with atomic_write(path) as file:
        stream_container(file, header, arrays)


def stream_container(
    file: IO[bytes],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    kind: FileKind = MODEL,
) -> None:
    """Write a container to an open file, a block at a time: arrays may be larger than memory.

    Parameters
    ----------
    file
        A new binary file, as :func:`trellis.files.atomic_write` gives it.
    header, arrays
        As for :func:`write_container`; an array may be a ``np.memmap``.
    kind
        What the file holds.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> stream_container(file, {}, {"w": np.arange(8)}, PREPARED)
    >>> file.getvalue()[:8], len(file.getvalue())
    (b'TRELLISP', 256)
    """
    text = header_text(header)
    stored = {name: _storable(name, array) for name, array in arrays.items()}
    metadata, number = {"trellis": text}, 1
    if kind == MODEL:  # other files are mapped, or larger than memory
        stored, ways = _packed_arrays(stored)
        if ways:
            metadata["packed"], number = json.dumps(ways, separators=(",", ":")), FORMAT
    order = sorted(stored, key=lambda name: (-stored[name].itemsize, name))
    table: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + stored[name].nbytes
        shape = list(stored[name].shape)
        dtype = _DTYPE_NAMES[stored[name].dtype]
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    raw += b" " * (-(_PREFIX_SIZE + 8 + len(raw)) % _ALIGNMENT)
    start = kind.magic + number.to_bytes(4, "little")
    sha = hashlib.sha256(start)
    file.write(start + bytes(32))
    for block in _blocks(len(raw).to_bytes(8, "little") + raw, [stored[name] for name in order]):
        sha.update(block)
        file.write(block)
    file.seek(len(start))
    file.write(sha.digest())


def _packed_arrays(
    arrays: dict[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[Any]], dict[str, list[Any]]]:
    """Arrays with those that can be smaller packed, and how these are kept."""
    stored: dict[str, NDArray[Any]] = {}
    ways: dict[str, list[Any]] = {}
    for name in sorted(arrays):
        array, taken = arrays[name], any(name + end in arrays for end in _ENDINGS["sparse"])
        form = None if taken else packed(array)
        if form is None:
            stored[name] = array
            continue
        ways[name] = [form.way, _DTYPE_NAMES[array.dtype], list(array.shape)]
        stored |= {
            name + end: part for end, part in zip(_ENDINGS[form.way], form.parts, strict=True)
        }
    length = sum(array.nbytes for array in stored.values())
    if sum(arrays[name].nbytes for name in ways) > max(_MAX_ROOM, _MAX_EXPANSION * length):
        return arrays, {}
    return stored, ways


def _blocks(first: bytes, arrays: list[NDArray[Any]]) -> Iterator[bytes]:
    """The bytes of a payload, a block at a time."""
    yield first
    for array in arrays:
        flat = array.reshape(-1).view(np.uint8)
        for a in range(0, len(flat), _BLOCK):
            yield flat[a : a + _BLOCK].tobytes()


def header_text(header: Mapping[str, Any]) -> str:
    """A header as a file holds it: strict JSON.

    Raises
    ------
    DataError
        If it cannot be stored.

    Examples
    --------
    >>> header_text({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
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
def loading(path: str | os.PathLike[Any], kind: FileKind = MODEL) -> Iterator[None]:
    """Turn any failure inside the block into the kind's error (for a model, `CorruptModelError`).

    The message names the file. Only ``OSError`` (a missing file, say) passes through; it has the
    file's name then.

    Examples
    --------
    >>> from trellis.files.stored import take
    >>> with loading("m.trellis"):
    ...     weights = take({}, "weights", "f4", (None,))
    Traceback (most recent call last):
    trellis.errors.CorruptModelError: m.trellis: array 'weights' is missing
    """
    name = display_name(path)
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:  # a failed read knows no name
            raise OSError(error.errno, error.strerror, name) from error
        raise
    except Exception as error:
        if isinstance(error, kind.error) and error.path == name:
            raise  # a nested block has named it
        reason = str(error)
        if not isinstance(error, (TrellisError, ValueError)):
            # The text alone ("'w'" of a KeyError, "" of a MemoryError) would not tell.
            reason = f"{type(error).__name__}: {reason}"
        failure = kind.error(f"{name}: {_one_line(reason)}")
        failure.path = name
        raise failure from error


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
    with loading(path), Path(os.fsdecode(path)).open("rb") as file:
        prefix = _checked_prefix(file, MODEL)
        payload = file.read()
        _check_digest(prefix, [payload])
        _check_format(prefix)
        return _parse(np.frombuffer(payload, np.uint8), copy=True)


def _checked_prefix(file: IO[bytes], kind: FileKind) -> bytes:
    """What stands before the payload."""
    prefix = file.read(_PREFIX_SIZE)
    if not prefix:
        raise CorruptModelError("the file is empty")
    start = prefix[: len(kind.magic)]
    for other in (MODEL, PREPARED):
        if other != kind and start == other.magic:
            raise CorruptModelError(f"a Trellis {other.name}, not a {kind.name}")
    if start != kind.magic[: len(prefix)]:
        raise CorruptModelError(f"not a Trellis {kind.name}")
    if len(prefix) < _PREFIX_SIZE:
        raise CorruptModelError(f"the file is truncated, it ends after {len(prefix)} bytes")
    return prefix


def _check_digest(prefix: bytes, payload: Iterable[bytes]) -> None:
    sha = hashlib.sha256(prefix[:-32])
    for block in payload:
        sha.update(block)
    if sha.digest() != prefix[-32:]:
        raise CorruptModelError("the checksum does not match: the file is damaged or truncated")


def _check_format(prefix: bytes) -> None:
    number = int.from_bytes(prefix[-36:-32], "little")
    if number > FORMAT:
        raise CorruptModelError(
            f"the file has format {number}, this Trellis reads up to {FORMAT}: upgrade Trellis"
        )
    if number < 1:
        raise CorruptModelError(f"the file has format {number}, which does not exist")


def _parse(
    payload: NDArray[np.uint8], *, copy: bool
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a payload apart, by the rules of safetensors; any exception means it is corrupt.

    Arrays are places of the payload, which must be aligned, or copies.
    """
    length = int.from_bytes(payload[:8].tobytes(), "little")
    if length > min(len(payload) - 8, _MAX_TABLE_BYTES):
        raise CorruptModelError("the file is truncated, its table is not complete")
    table = _load_json(payload[8 : 8 + length].tobytes().decode())
    header = _header_of(table)
    data = payload[8 + length :]
    arrays: dict[str, NDArray[Any]] = {}
    covered = 0
    entries = {name: entry for name, entry in table.items() if name != "__metadata__"}
    for name, (dtype, shape, first, last) in sorted(
        ((name, _entry(name, entry)) for name, entry in entries.items()),
        key=lambda item: item[1][2:],
    ):
        if first != covered or not first <= last <= len(data):
            raise CorruptModelError(f"array {name!r} does not lie where it should, or is cut off")
        covered = last
        array = _array(name, dtype, shape, data[first:last])
        arrays[name] = array.copy() if copy else array
        if not arrays[name].flags.aligned:
            raise CorruptModelError(f"array {name!r} is not aligned")
    if covered != len(data):
        raise CorruptModelError("the file is longer than its arrays")
    return header, _unpacked_arrays(table["__metadata__"], arrays, len(data))


def _entry(name: str, entry: Any) -> tuple[str, list[int], int, int]:
    """An entry of the table: type, shape, first and last byte."""
    if isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}:
        dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, *place] if isinstance(shape, list) and isinstance(place, list) else [-1]
        whole = all(type(n) is int and n >= 0 for n in numbers)
        if isinstance(dtype, str) and whole and len(place) == 2:
            return dtype, shape, place[0], place[1]
    raise CorruptModelError(f"the entry of array {name!r} cannot be read")


def _header_of(table: dict[str, Any]) -> dict[str, Any]:
    metadata = table.get("__metadata__")
    if not isinstance(metadata, dict) or set(metadata) - {"packed", "sparse"} != {"trellis"}:
        raise CorruptModelError("the payload holds no Trellis header")
    header = _load_json(metadata["trellis"])
    _check_json(header, "header", 0)
    return header


def _unpacked_arrays(
    metadata: dict[str, Any], arrays: dict[str, NDArray[Any]], length: int
) -> dict[str, NDArray[Any]]:
    """Arrays in full, by name: those that the file keeps packed are put together."""
    room = max(_MAX_ROOM, _MAX_EXPANSION * length)
    for name, shape in _load_json(metadata.get("sparse", "{}")).items():  # of format 2
        parts = {end: arrays.pop(f"{name}#{end}", None) for end in ("index", "values")}
        found = {end: part for end, part in parts.items() if part is not None}
        if len(found) < 2 or name in arrays:
            raise CorruptModelError(f"array {name!r} is not kept as indices and values")
        room -= _size(name, shape) * found["values"].itemsize
        _check_room(name, shape, room)
        arrays[name] = scattered(shape, found, name)
    for name, entry in _load_json(metadata.get("packed", "{}")).items():
        way, dtype, shape = _way(name, entry)
        kept = [arrays.pop(name + end, None) for end in _ENDINGS[way]]
        found_parts = [part for part in kept if part is not None]
        if len(found_parts) < len(kept) or name in arrays:
            raise CorruptModelError(f"the parts of array {name!r} are not there")
        room -= _size(name, shape) * dtype.itemsize
        _check_room(name, shape, room)
        arrays[name] = unpacked(way, dtype, shape, found_parts, name)
    return dict(sorted(arrays.items()))


def _way(name: str, entry: Any) -> tuple[str, np.dtype[Any], list[int]]:
    """How an array is kept, its type and its shape."""
    if isinstance(entry, list) and len(entry) == 3 and all(type(e) is str for e in entry[:2]):
        way, dtype, shape = entry
        if way in _ENDINGS and dtype in _DTYPES:
            return way, _DTYPES[dtype], shape
    raise CorruptModelError(f"how array {name!r} is kept cannot be read")


def _size(name: str, shape: Any) -> int:
    if not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        raise CorruptModelError(f"the shape of array {name!r} cannot be read")
    return math.prod(shape)


def _check_room(name: str, shape: list[int], room: int) -> None:
    """Refuse an array before memory is asked for."""
    if len(shape) > _MAX_AXES or room < 0:
        raise CorruptModelError(f"array {name!r} is too large for a file of this size")


def _array(name: str, dtype: str, shape: list[int], data: Any) -> NDArray[Any]:
    if dtype not in _DTYPES:
        raise CorruptModelError(f"array {name!r} has the unknown type {dtype}")
    array = np.frombuffer(data, dtype=_DTYPES[dtype])
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise CorruptModelError(f"array {name!r} has a truth value that is neither 0 nor 1")
    return array.reshape(shape)


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


# ---------------------------------------------------------------------------- mapping


def map_container(
    path: str | os.PathLike[Any], kind: FileKind = MODEL, *, verify: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a container without loading its arrays: they are pages of the file, read when touched.

    Parameters
    ----------
    path
        The file. It must not be changed in place while arrays are in use; replacing it by another,
        as :func:`write_container` does, is safe.
    kind
        What the file must hold.
    verify
        Whether to compare the checksum, for which the whole file is read once, a block at a time.

    Returns
    -------
    header : dict
        The header.
    arrays : dict of ndarray
        The arrays: C order, aligned. Writing to them changes memory, never the file.

    Raises
    ------
    TrellisError
        The kind's error, if the file is damaged, truncated, extended, of another kind, or from a
        newer Trellis.
    OSError
        If it cannot be opened, read or mapped.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "m.trellis"
    >>> write_container(path, {}, {"w": np.arange(3)})
    >>> map_container(path)
    ({}, {'w': array([0, 1, 2])})
    """
    with loading(path, kind), Path(os.fsdecode(path)).open("rb") as file:
        prefix = _checked_prefix(file, kind)
        if verify:
            _check_digest(prefix, iter(lambda: file.read(_BLOCK), b""))
        _check_format(prefix)
        try:
            data = np.frombuffer(_private_map(file), np.uint8)
        except OSError as error:  # knows no file name; e.g. strict accounting of memory
            raise OSError(error.errno, f"Cannot map the file: {error.strerror}", path) from error
        return _parse(data[_PREFIX_SIZE:], copy=False)


def _private_map(file: IO[bytes]) -> mmap.mmap:
    """Map a file so that memory may be written to but the file never is.

    Not read-only, because Numba would compile every kernel again for read-only arrays.
    """
    if sys.platform == "win32":
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    # Nothing is set aside for copies of pages: Linux would refuse a file larger than its memory.
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
    return mmap.mmap(
        file.fileno(),
        0,
        flags=mmap.MAP_PRIVATE | no_reserve,
        prot=mmap.PROT_READ | mmap.PROT_WRITE,
    )
