"""Damage: changes of bytes, and of what a container holds under a checksum that is right again."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

__all__ = ["Contents", "damaged", "sealed"]

_PREFIX = 44  # magic, format number, checksum
_NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, -(2**63)]
_FLOATS = [0.0, -1.0, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan]
_THINGS: list[Any] = [None, True, 0, -1, 1.5, 10**12, "", "position", "a", [], ["a"], [1], {}]
_THINGS += [{"a": 1}, {"tuple": [1]}, {"float": "nan"}, {"float": "inf"}, {"dict": []}]
_THINGS += [{"array": "no"}, 2**63, 10**400, 1e308, float("nan"), "\x1b[2J", "a" * 10_000]


def damaged(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Bytes changed somehow; pieces of the others may get in. They differ from all of them."""
    while True:
        changed = _damaged(data, others, rng)
        if changed != data and changed not in others:
            return changed


def _damaged(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    broken = bytearray(data)
    here = rng.randrange(len(data) + 1)
    length = rng.choice([1, 1, 2, 4, 8, 64, rng.randint(1, len(data) + 1)])
    what = rng.randrange(9)
    if what <= 1:
        for _ in range(rng.choice([1, 1, 2, 8])):
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif what == 2:
        del broken[here:]
    elif what == 3:
        broken += rng.randbytes(length)
    elif what == 4:
        del broken[here : here + length]
    elif what == 5:
        broken[here:here] = rng.randbytes(length)
    elif what == 6:
        broken[here : here + length] = rng.choice([b"\0", b"\xff", rng.randbytes(1)]) * length
    elif what == 7:  # two blocks change places
        there = rng.randrange(len(data) + 1)
        a, b = min(here, there), max(here, there)
        block = min(length, b - a)
        broken[a : a + block], broken[b : b + block] = data[b : b + block], data[a : a + block]
    else:
        other = rng.choice(others)
        there = rng.randrange(len(other) + 1)
        broken[here : here + length] = other[there : there + length]
    return bytes(broken)


def sealed(magic: bytes, number: int, payload: bytes) -> bytes:
    """A container whose checksum is right, whatever it holds."""
    start = magic + number.to_bytes(4, "little")
    return start + hashlib.sha256(start + payload).digest() + payload


class Contents:
    """What a container holds, to be changed.

    Parameters
    ----------
    data : bytes
        A good container.
    """

    def __init__(self, data: bytes) -> None:
        self.magic, self.number = data[:8], int.from_bytes(data[8:12], "little")
        self.payload = data[_PREFIX:]
        length = int.from_bytes(self.payload[:8], "little")
        self.table: dict[str, Any] = json.loads(self.payload[8 : 8 + length])
        self.data = self.payload[8 + length :]
        self.metadata: dict[str, str] = self.table["__metadata__"]
        self.header: dict[str, Any] = json.loads(self.metadata["trellis"])
        self.arrays: dict[str, NDArray[Any]] = load(self.payload)

    def changed(self, others: Sequence[bytes], rng: random.Random) -> bytes:
        """The container with one or two changes under a right checksum."""
        number = rng.choice([0, 1, 2, 3, 2**32 - 1]) if rng.random() < 0.02 else self.number
        what = rng.randrange(10)
        if what == 0:
            return sealed(self.magic, number, damaged(self.payload, others, rng))
        if what == 1:
            table = copy.deepcopy(self.table)
            _change_tree(table, rng)
            return sealed(self.magic, number, _with_table(table) + self.data)
        if what <= 5 or not self.arrays:
            header = json.loads(self.metadata["trellis"])
            for _ in range(rng.randint(1, 2)):
                _change_tree(header, rng)
            metadata = {**self.metadata, "trellis": json.dumps(header)}
            table = {**self.table, "__metadata__": metadata}
            return sealed(self.magic, number, _with_table(table) + self.data)
        arrays = dict(self.arrays)
        for _ in range(rng.randint(1, 2)):
            _change_array(arrays, rng)
        stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return sealed(self.magic, number, save(stored, metadata=self.metadata))


def _with_table(table: dict[str, Any]) -> bytes:
    raw = json.dumps(table).encode()
    raw += b" " * (-(_PREFIX + 8 + len(raw)) % 64)  # arrays stay aligned
    return len(raw).to_bytes(8, "little") + raw


def _nodes(part: Any) -> list[Any]:
    """All dicts and lists of a header."""
    if not isinstance(part, dict | list):
        return []
    inside = part.values() if isinstance(part, dict) else part
    return [part, *(node for item in inside for node in _nodes(item))]


def _change_tree(tree: dict[str, Any], rng: random.Random) -> None:
    """Change one entry somewhere."""
    nodes = _nodes(tree)
    filled = [node for node in nodes if node]
    if not filled:
        return
    part = rng.choice(filled)
    key = rng.choice(sorted(part)) if isinstance(part, dict) else rng.randrange(len(part))
    what = rng.randrange(8)
    if what == 0:
        del part[key]
    elif what == 1 and isinstance(part, list):
        part.append(copy.deepcopy(part[key]))
    elif what == 2:
        part[key] = copy.deepcopy(rng.choice(nodes))
    elif what == 3 and isinstance(part[key], int | float):
        with suppress(OverflowError):  # half of one more than an integer beyond all floats
            part[key] += rng.choice([1, -1, 0.5, -2 * part[key]])
    elif what == 3 and isinstance(part[key], str) and part[key]:
        text, at = part[key], rng.randrange(len(part[key]))
        part[key] = text[:at] + rng.choice(["", "a", "0", "é", "[", "\n"]) + text[at + 1 :]
    elif what == 4 and isinstance(part, dict):
        part[rng.choice([*sorted(part), "a", "0"])] = part.pop(key)
    else:
        part[key] = copy.deepcopy(rng.choice(_THINGS))


def _change_array(arrays: dict[str, NDArray[Any]], rng: random.Random) -> None:
    """Change numbers, type, length or place of one array."""
    if not arrays:
        return
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    what = rng.randrange(9)
    if what <= 3 and array.size:
        for _ in range(rng.choice([1, 1, 3])):
            _change_number(array, rng.randrange(array.size), rng)
        arrays[name] = array
    elif what == 4:
        kind = rng.choice(["i4", "i8", "f4", "f8", "u1"])
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(kind, casting="unsafe")
    elif what == 5 and array.ndim and array.shape[0]:
        parts = [array[:-1], array[1:], array[::-1], array[:0], np.concatenate([array, array[-1:]])]
        arrays[name] = rng.choice(parts).copy()
    elif what == 6:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        if rng.random() < 0.3:
            del arrays[name]
    elif what == 7 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            arrays[name] = array * array.dtype.type(rng.choice([0, -1, 1e5, 1e30, 1e-30]))
    else:
        arrays[name] = array.reshape(-1)


def _change_number(array: NDArray[Any], i: int, rng: random.Random) -> None:
    if array.dtype.kind == "f":
        array.flat[i] = rng.choice(_FLOATS)
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        value = rng.choice([*_NUMBERS, int(array.flat[i]) + 1, int(array.flat[i]) - 1])
        array.flat[i] = min(max(value, info.min), info.max)
    else:
        array.flat[i] = not array.flat[i]
