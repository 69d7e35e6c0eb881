"""Damaged and hostile files of every kind of model: refused, or a model that still predicts."""

from __future__ import annotations

import copy
import hashlib
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_model import EVERY, Made
from safetensors.numpy import save

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.files.container import header_text, read_container

NAMES = pytest.mark.parametrize("name", EVERY)
NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, -(2**63)]
FLOATS = [0.0, -1.0, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan]
THINGS = [None, True, 0, -1, 1.5, 10**12, "", "position", "a", [], ["a"], [1], {}, {"a": 1}]
THINGS += [{"tuple": [1]}, {"float": "nan"}, {"float": "inf"}, {"dict": []}, {"array": "no"}]


@cache
def made(name: str) -> Made:
    return EVERY[name]()


def sealed(payload: bytes, number: int) -> bytes:
    """A file whose checksum is right, whatever it holds."""
    start = b"TRELLIS\0" + number.to_bytes(4, "little")
    return start + hashlib.sha256(start + payload).digest() + payload


def asked(path: Path, predict: Any) -> str:
    """Load and predict: «refused», «predicted» or «other input», and nothing else."""
    try:
        model = load_model(path)
    except CorruptModelError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
        return "refused"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict(model)
    except DataError:  # a model in good order, but for other input
        return "other input"
    return "predicted"


def nodes(part: Any) -> list[Any]:
    """All dicts and lists of a header."""
    if not isinstance(part, dict | list):
        return []
    inside = part.values() if isinstance(part, dict) else part
    return [part, *(node for item in inside for node in nodes(item))]


def change_header(header: dict[str, Any], rng: random.Random) -> None:
    part = rng.choice([node for node in nodes(header) if node])
    key = rng.choice(sorted(part)) if isinstance(part, dict) else rng.randrange(len(part))
    what = rng.randrange(6)
    if what == 0:
        del part[key]
    elif what == 1 and isinstance(part, list):
        part.append(copy.deepcopy(part[key]))
    elif what == 2:
        part[key] = copy.deepcopy(rng.choice(nodes(header)))
    else:
        part[key] = copy.deepcopy(rng.choice(THINGS))


def change_array(arrays: dict[str, Any], rng: random.Random) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    what = rng.randrange(7)
    if what <= 2 and array.size:
        i = rng.randrange(array.size)
        if array.dtype.kind == "f":
            array.flat[i] = rng.choice(FLOATS)
        elif array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            value = rng.choice([*NUMBERS, int(array.flat[i]) + 1, int(array.flat[i]) - 1])
            array.flat[i] = min(max(value, info.min), info.max)
        arrays[name] = array
    elif what == 3:
        kind = rng.choice(["i4", "i8", "f4", "f8", "u1"])
        with np.errstate(invalid="ignore"):
            arrays[name] = array.astype(kind, casting="unsafe")
    elif what == 4 and array.ndim and array.shape[0]:
        arrays[name] = rng.choice([array[:-1], array[1:], array[::-1], array[:0]]).copy()
    elif what == 5:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        if rng.random() < 0.3:
            del arrays[name]
    else:
        arrays[name] = array.reshape(-1)


@NAMES
def test_changed_contents_under_a_right_checksum(name: str, tmp_path: Path) -> None:
    model, predict = made(name)
    file = tmp_path / "m"
    model.save(file)
    original = read_container(file)
    rng = random.Random(name)
    seen = {"refused": 0, "predicted": 0, "other input": 0}
    for k in range(60):
        header, arrays = copy.deepcopy(original[0]), dict(original[1])
        for _ in range(rng.randint(1, 2)):
            if k % 2 and arrays:
                change_array(arrays, rng)
            else:
                change_header(header, rng)
        try:
            text = header_text(header)
        except DataError:  # deeper than files are
            continue
        stored = {n: np.ascontiguousarray(a) for n, a in arrays.items()}
        file.write_bytes(sealed(save(stored, metadata={"trellis": text}), 1))
        seen[asked(file, predict)] += 1
    assert seen["refused"] > 10


@NAMES
def test_changed_bytes_are_refused(name: str, tmp_path: Path) -> None:
    model, predict = made(name)
    file = tmp_path / "m"
    model.save(file)
    data = file.read_bytes()
    rng = random.Random(name)
    for k in range(20):
        broken = bytearray(data)
        if k % 4:
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del broken[rng.randrange(len(data)) :]
        file.write_bytes(broken)
        assert asked(file, predict) == "refused"
        if k % 4:  # and with a checksum that is right, nothing worse happens
            number = int.from_bytes(data[8:12], "little")
            file.write_bytes(sealed(bytes(broken[44:]), number))
            asked(file, predict)
