"""Arrays that are mostly zero: the same bits from a small file, and every complaint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from trellis.errors import CorruptModelError
from trellis.files import container
from trellis.files.container import map_container, read_container, write_container
from trellis.files.sparse import sparse_parts

DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def mostly_zero(dtype: str = "f4", shape: tuple[int, ...] = (40, 100)) -> np.ndarray:
    array = np.zeros(shape, dtype)
    array.reshape(-1)[[0, 7, array.size - 1]] = 1
    return array


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def number(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[8:12], "little")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_bits_from_a_small_file(tmp_path: Path, dtype: str) -> None:
    arrays = {"w": mostly_zero(dtype), "full": np.ones(7)}
    write_container(tmp_path / "m", {"a": 1}, arrays)
    for read in (read_container, map_container):
        header, found = read(tmp_path / "m")
        assert header == {"a": 1} and list(found) == ["full", "w"]
        assert all(same_bits(found[name], arrays[name]) for name in arrays)
        found["w"][0] = 0  # its memory is its own
    size = (tmp_path / "m").stat().st_size
    assert size < 700 and number(tmp_path / "m") == 2


def test_minus_zero_and_nan_keep_their_bits(tmp_path: Path) -> None:
    w = np.zeros(5000)
    w[[1, 2, 3, 4]] = [-0.0, np.nan, np.inf, 5e-324]
    w.view(np.uint64)[5] = 0x7FF8_0000_0000_0123  # a NaN with a message
    write_container(tmp_path / "m", {}, {"w": w})
    assert number(tmp_path / "m") == 2
    assert same_bits(read_container(tmp_path / "m")[1]["w"], w)


@given(st.lists(st.integers(0, 2999), unique=True), st.data())
def test_any_places(tmp_path_factory: Any, places: list[int], data: st.DataObject) -> None:
    w = np.zeros((30, 100), np.float32)
    for place in places:
        w.reshape(-1)[place] = data.draw(st.floats(width=32))
    path = tmp_path_factory.mktemp("sparse") / "m"
    write_container(path, {}, {"w": w})
    assert same_bits(read_container(path)[1]["w"], w)


def test_what_is_not_clearly_smaller_stays_as_it_is(tmp_path: Path) -> None:
    half = np.zeros(4000, np.float32)
    half[::4] = 1
    for arrays in ({"w": half}, {"w": np.zeros(100, np.uint8)}, {"w": np.zeros((0, 3))}, {}):
        write_container(tmp_path / "m", {}, arrays)
        assert number(tmp_path / "m") == 1
        assert all(same_bits(read_container(tmp_path / "m")[1][n], a) for n, a in arrays.items())


def test_names_that_are_taken(tmp_path: Path) -> None:
    arrays = {"w": mostly_zero(), "w#index": np.arange(3), "v": mostly_zero(), "v#x": np.ones(1)}
    write_container(tmp_path / "m", {}, arrays)
    found = read_container(tmp_path / "m")[1]
    assert all(same_bits(found[name], array) for name, array in arrays.items())


def test_what_reading_would_refuse_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_MAX_ZEROS", 1000)
    monkeypatch.setattr(container, "_MAX_EXPANSION", 4)
    write_container(tmp_path / "m", {}, {"w": mostly_zero(), "v": np.ones(3)})
    assert number(tmp_path / "m") == 1
    assert same_bits(read_container(tmp_path / "m")[1]["w"], mostly_zero())


def sealed(arrays: dict[str, np.ndarray], sparse: Any) -> bytes:
    text = sparse if isinstance(sparse, str) else json.dumps(sparse)
    payload = save(arrays, {"trellis": "{}", "sparse": text})
    start = b"TRELLIS\0" + (2).to_bytes(4, "little")
    return start + hashlib.sha256(start + payload).digest() + payload


INDEX, VALUES = np.array([1, 3], np.uint32), np.array([0.5, 2.0])


def parts(**changes: np.ndarray) -> dict[str, np.ndarray]:
    return {"w#index": changes.get("index", INDEX), "w#values": changes.get("values", VALUES)}


@pytest.mark.parametrize(
    ("arrays", "sparse", "message"),
    [
        ({}, {"w": [4]}, "array 'w' is not kept as indices and values"),
        ({"w#index": INDEX}, {"w": [4]}, "array 'w' is not kept as indices and values"),
        (parts() | {"w": VALUES}, {"w": [4]}, "array 'w' is not kept as indices and values"),
        (parts(), {"w": 4}, "the shape of array 'w' cannot be read"),
        (parts(), {"w": [True, 4]}, "the shape of array 'w' cannot be read"),
        (parts(), {"w": [-2, -2]}, "the shape of array 'w' cannot be read"),
        (parts(), {"w": [1] * 40 + [4]}, "array 'w' is too large for a file of this size"),
        (parts(), {"w": [10**9]}, "array 'w' is too large for a file of this size"),
        (parts(), {"w": [10**30]}, "array 'w' is too large for a file of this size"),
        (parts(), {"w": [3]}, "the indices of array 'w' are not ascending and below 3"),
        (parts(), {"w": [0]}, "the indices of array 'w' are not ascending and below 0"),
        (parts(index=INDEX[::-1].copy()), {"w": [4]}, "are not ascending and below 4"),
        (parts(index=np.array([1, 1], np.uint32)), {"w": [4]}, "are not ascending and below 4"),
        (parts(index=INDEX.astype(np.int64)), {"w": [4]}, "are not a list of integers"),
        (parts(index=INDEX[:, None]), {"w": [4]}, "are not a list of integers"),
        (parts(values=VALUES[:1]), {"w": [4]}, "array 'w' has not one value for each index"),
        (parts(values=VALUES[:, None]), {"w": [4]}, "array 'w' has not one value for each index"),
        (parts(), "[]", "the header is a JSON list, not an object"),
        (parts(), "", "Expecting value"),
    ],
)
def test_refusals(tmp_path: Path, arrays: Any, sparse: Any, message: str) -> None:
    (tmp_path / "m").write_bytes(sealed(arrays, sparse))
    with pytest.raises(CorruptModelError) as caught:
        read_container(tmp_path / "m")
    assert message in str(caught.value)


def test_the_refused_file_is_fine_but_for_one_thing(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(sealed(parts(), {"w": [2, 2]}))
    assert read_container(tmp_path / "m")[1]["w"].tolist() == [[0, 0.5], [0, 2]]
    large = np.array([1, 3], np.uint64)
    (tmp_path / "m").write_bytes(sealed(parts(index=large), {"w": [4]}))
    assert read_container(tmp_path / "m")[1]["w"].tolist() == [0, 0.5, 0, 2]


def test_text_has_no_zeros() -> None:
    assert sparse_parts(np.full(2000, "", "U3")) is None
