"""Files with wrong contents and right checksums, as someone would make them who means harm."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trellis.files.container import read_container, write_container

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 2**64, 2**200, -(2**63), 10**400, 0.0, -0.5,
    1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), "", "x", "#", "#1", "#-1",
    "#x", "NaN", "PCG64", "MT19937", "\0", "\x1b[2J", [], [0], [None], [[]], {}, {"a": 1},
    {"state": {}}, "é" * 300,
]  # fmt: skip
NUMBERS = [0.0, -1.0, 1e300, -1e300, 1e-300, 2.5, np.nan, np.inf, -np.inf]
_TYPES = ["f2", "f4", "f8", "i1", "i4", "i8", "u8", "?"]
INTEGERS = [0, -1, 1, 2**31 - 1, -(2**31), 10**8]


def write_raw(path: Path, header: Any, arrays: dict[str, Any]) -> None:
    """Write a container whose header may hold anything, NaN included."""
    write_container(path, {}, arrays)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[44:52])
    table = json.loads(data[52 : 52 + length])
    table["__metadata__"]["trellis"] = json.dumps(header)
    raw = json.dumps(table).encode()
    raw += b" " * (-(52 + len(raw)) % 64)
    payload = struct.pack("<Q", len(raw)) + raw + data[52 + length :]
    sha = hashlib.sha256(data[:12] + payload).digest()
    path.write_bytes(data[:12] + sha + payload)


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the entries of a header are, those within entries included."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    inner = [p for key, item in items for p in _places(item, (*place, key))]
    return [place, *inner] if place else inner


def changed_header(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A header with one entry replaced, removed, doubled or added."""
    header = copy.deepcopy(header)
    places = [p for p in _places(header) if p[0] not in ("run", "estimator")]
    *way, key = places[rng.integers(len(places))]
    inside: Any = header
    for step in way:
        inside = inside[step]
    what = rng.integers(8)
    if what == 0:
        del inside[key]
    elif what == 1 and isinstance(inside, list):
        inside.append(copy.deepcopy(inside[key]))
    elif what == 1:
        inside[f"{key}?"] = inside[key]
    else:
        inside[key] = copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])
    return header


def changed_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Arrays with one of another type, shape or content, missing, or too many."""
    arrays = dict(arrays)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.array(arrays[name])
    what = rng.integers(8)
    if what == 0:
        del arrays[name]
    elif what == 1:
        arrays[f"{name}?"] = array
    elif what == 2:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(_TYPES[rng.integers(len(_TYPES))])
    elif what == 3:
        arrays[name] = array.reshape(-1)[: max(0, array.size - 1)]
    elif what == 4:
        arrays[name] = array[None]
    elif array.size:
        values = NUMBERS if array.dtype.kind == "f" else INTEGERS
        value = values[rng.integers(len(values))]
        place = rng.integers(array.size) if rng.integers(2) else slice(None)
        with np.errstate(all="ignore"):
            array.reshape(-1)[place] = np.array(value).astype(array.dtype)
        arrays[name] = array
    return arrays


def mutants(path: Path, n: int, seed: int) -> Iterator[int]:
    """Put n wrong files in the place of a good one, one after the other; gives their numbers."""
    header, arrays = read_container(path)
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        if number % 3 == 2:
            write_raw(path, header, changed_arrays(arrays, rng))
        else:
            write_raw(path, changed_header(header, rng), arrays)
        yield number
