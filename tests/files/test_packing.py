"""Arrays in fewer bytes: the same bits from a small file, and every complaint."""

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
from trellis.files.packing import packed

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
    assert size < 700 and number(tmp_path / "m") == 3


def test_minus_zero_and_nan_keep_their_bits(tmp_path: Path) -> None:
    w = np.zeros(5000)
    w[[1, 2, 3, 4]] = [-0.0, np.nan, np.inf, 5e-324]
    w.view(np.uint64)[5] = 0x7FF8_0000_0000_0123  # a NaN with a message
    write_container(tmp_path / "m", {}, {"w": w})
    assert number(tmp_path / "m") == 3
    assert same_bits(read_container(tmp_path / "m")[1]["w"], w)


@given(st.lists(st.integers(0, 2999), unique=True), st.data())
def test_any_places(tmp_path_factory: Any, places: list[int], data: st.DataObject) -> None:
    w = np.zeros((30, 100), np.float32)
    for place in places:
        w.reshape(-1)[place] = data.draw(st.floats(width=32))
    path = tmp_path_factory.mktemp("sparse") / "m"
    write_container(path, {}, {"w": w})
    assert same_bits(read_container(path)[1]["w"], w)


@st.composite
def any_array(draw: Any) -> np.ndarray:
    """An array of any type, with runs of zeros, few or many different values, sorted or not."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    n = draw(st.integers(0, 3000))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    array = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "b":
        array = rng.random(n) < 0.5
    if draw(st.booleans()):  # values that a smaller type holds
        high = draw(st.sampled_from([2, 100, 1000]))
        array = rng.integers(-high, high, n).astype(dtype)
    if draw(st.booleans()):
        array[rng.random(n) < draw(st.sampled_from([0.3, 0.9, 0.999]))] = 0
    if draw(st.booleans()):
        array.sort()
    return array.reshape(2, -1) if n % 2 == 0 and draw(st.booleans()) else array


@given(any_array())
def test_any_array(tmp_path_factory: Any, array: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("packed") / "m"
    write_container(path, {}, {"w": array})
    assert same_bits(read_container(path)[1]["w"], array)
    form = packed(array)
    assert form is None or form.nbytes < array.nbytes


@pytest.mark.parametrize(
    ("array", "way", "types"),
    [
        (np.arange(1000) % 7, "narrow", "u1"),
        (np.arange(1000) % 7 - 3, "narrow", "i1"),
        (np.arange(1000)[::-1] * 1000, "narrow", "u4"),
        (np.linspace(-4, 4, 1025, dtype=np.float32), "narrow", "f2"),
        (np.linspace(-4, 4, 1025, dtype=np.float32) + np.float32(2**-20), None, ""),
        (np.linspace(-4, 4, 1000).astype(np.float32).astype(np.float64), "narrow", "f4"),
        (np.append(np.full(2000, 0.5, np.float32), np.float32(0.1)), None, ""),
        (np.arange(1000) * 200, "gaps", "u1"),
        (np.arange(1000) * 300, "gaps", "u2"),
        (np.arange(1000) + 2**62, None, ""),
        (np.where(np.arange(9000) % 9, 0, 0.1), "sparse", "u1 f8"),
        (np.where(np.arange(9000) % 9, 0, 0.5), "sparse", "u1 f2"),
        (np.where(np.arange(99_000) % 990, 0, 0.1), "sparse", "u2 f8"),
        (np.where(np.arange(99_000) == 98_999, -0.5, 0), "sparse", "u4 f2"),
        (np.zeros(9000), "sparse", "u1 f2"),
    ],
)  # fmt: skip
def test_ways(array: np.ndarray, way: str | None, types: str) -> None:
    form = packed(array)
    assert (form and form.way) == way
    if form is not None:
        assert " ".join(part.dtype.str[1:] for part in form.parts) == types


def test_a_long_run_of_zeros_is_cut(tmp_path: Path) -> None:
    w = np.zeros(100_000, np.float32)
    w[:8000:2], w[[50_000, 50_001, 99_000]] = 0.1, 0.2
    form = packed(w)
    assert form is not None and form.parts[0].dtype == np.uint8
    assert len(form.parts[1]) == 4003 + (42_001 >> 8) + (48_998 >> 8)
    write_container(tmp_path / "m", {}, {"w": w})
    assert same_bits(read_container(tmp_path / "m")[1]["w"], w)


def test_what_is_not_clearly_smaller_stays_as_it_is(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=4000).astype(np.float32)
    for arrays in ({"w": noise}, {"w": np.zeros(100, np.uint8)}, {"w": np.zeros((0, 3))}, {}):
        write_container(tmp_path / "m", {}, arrays)
        assert number(tmp_path / "m") == 1
        assert all(same_bits(read_container(tmp_path / "m")[1][n], a) for n, a in arrays.items())


def test_names_that_are_taken(tmp_path: Path) -> None:
    arrays = {"w": mostly_zero(), "w#gaps": np.arange(3), "v": mostly_zero(), "v#x": np.ones(1)}
    write_container(tmp_path / "m", {}, arrays)
    found = read_container(tmp_path / "m")[1]
    assert all(same_bits(found[name], array) for name, array in arrays.items())


def test_what_reading_would_refuse_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_MAX_ROOM", 1000)
    monkeypatch.setattr(container, "_MAX_EXPANSION", 4)
    write_container(tmp_path / "m", {}, {"w": mostly_zero(), "v": np.ones(3)})
    assert number(tmp_path / "m") == 1
    assert same_bits(read_container(tmp_path / "m")[1]["w"], mostly_zero())


def sealed(arrays: dict[str, np.ndarray], **metadata: Any) -> bytes:
    """A file with some metadata, whatever they say."""
    texts = {key: e if isinstance(e, str) else json.dumps(e) for key, e in metadata.items()}
    payload = save(arrays, {"trellis": "{}", **texts})
    start = container.MODEL.magic + (3).to_bytes(4, "little")
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
def test_refusals_of_format_2(tmp_path: Path, arrays: Any, sparse: Any, message: str) -> None:
    (tmp_path / "m").write_bytes(sealed(arrays, sparse=sparse))
    with pytest.raises(CorruptModelError) as caught:
        read_container(tmp_path / "m")
    assert message in str(caught.value)


def test_the_refused_file_is_fine_but_for_one_thing(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(sealed(parts(), sparse={"w": [2, 2]}))
    assert read_container(tmp_path / "m")[1]["w"].tolist() == [[0, 0.5], [0, 2]]
    large = np.array([1, 3], np.uint64)
    (tmp_path / "m").write_bytes(sealed(parts(index=large), sparse={"w": [4]}))
    assert read_container(tmp_path / "m")[1]["w"].tolist() == [0, 0.5, 0, 2]


def test_text_is_not_packed() -> None:
    assert packed(np.full(2000, "", "U3")) is None


GAPS, HALVES = np.array([1, 1], np.uint8), np.array([0.5, 2.0], np.float16)
SPARSE = {"w#gaps": GAPS, "w#values": HALVES}


@pytest.mark.parametrize(
    ("arrays", "way", "message"),
    [
        ({}, ["narrow", "F32", [2]], "the parts of array 'w' are not there"),
        ({"w": HALVES}, ["sparse", "F32", [4]], "the parts of array 'w' are not there"),
        (SPARSE | {"w": HALVES}, ["sparse", "F32", [4]], "the parts of array 'w' are not there"),
        ({"w#gaps": GAPS}, ["sparse", "F32", [4]], "the parts of array 'w' are not there"),
        ({"w": HALVES}, ["wide", "F32", [2]], "how array 'w' is kept cannot be read"),
        ({"w": HALVES}, ["narrow", "F128", [2]], "how array 'w' is kept cannot be read"),
        ({"w": HALVES}, ["narrow", ["F32"], [2]], "how array 'w' is kept cannot be read"),
        ({"w": HALVES}, ["narrow", "F32"], "how array 'w' is kept cannot be read"),
        ({"w": HALVES}, "narrow", "how array 'w' is kept cannot be read"),
        ({"w": HALVES}, ["narrow", "F32", 2], "the shape of array 'w' cannot be read"),
        ({"w": HALVES}, ["narrow", "F32", [-2]], "the shape of array 'w' cannot be read"),
        ({"w": HALVES}, ["narrow", "F32", [2.0]], "the shape of array 'w' cannot be read"),
        ({"w": HALVES}, ["narrow", "F32", [3]], "array 'w' is kept in the shape (2,), not [3]"),
        ({"w": HALVES}, ["narrow", "F32", [1, 2]], "array 'w' is kept in the shape (2,)"),
        ({"w": HALVES}, ["narrow", "I32", [2]], "array 'w' of int32 cannot be kept as float16"),
        ({"w": GAPS}, ["narrow", "F32", [2]], "array 'w' of float32 cannot be kept as uint8"),
        ({"w": GAPS}, ["narrow", "I8", [2]], "array 'w' of int8 cannot be kept as uint8"),
        ({"w": GAPS.astype("i1")}, ["narrow", "U16", [2]], "of uint16 cannot be kept as int8"),
        ({"w": GAPS.astype("i8")}, ["narrow", "I32", [2]], "of int32 cannot be kept as int64"),
        ({"w": GAPS.astype("i1")}, ["gaps", "I64", [2]], "the gaps of array 'w' are not a list"),
        ({"w": GAPS[:, None].copy()}, ["gaps", "I64", [2, 1]], "are not a list of integers"),
        ({"w": GAPS}, ["gaps", "I64", [3]], "array 'w' is kept in the shape (2,), not [3]"),
        ({"w": GAPS}, ["gaps", "F32", [2]], "the gaps of array 'w' do not fit its type"),
        ({"w": 100 * GAPS}, ["gaps", "I8", [2]], "the gaps of array 'w' do not fit its type"),
        ({"w": np.full(2, 2**63, "u8")}, ["gaps", "I64", [2]], "do not fit its type"),
        (SPARSE, ["sparse", "F32", [3]], "the gaps of array 'w' reach beyond its 3 elements"),
        (SPARSE, ["sparse", "F32", []], "the gaps of array 'w' reach beyond its 1 elements"),
        (SPARSE | {"w#gaps": np.full(2, 2**63, "u8")}, ["sparse", "F32", [4]], "reach beyond"),
        (SPARSE | {"w#gaps": HALVES}, ["sparse", "F32", [4]], "are not a list of integers"),
        (SPARSE | {"w#values": HALVES[:1]}, ["sparse", "F32", [4]], "one value for each gap"),
        (SPARSE, ["sparse", "F32", [10**9]], "array 'w' is too large for a file of this size"),
        (SPARSE, ["sparse", "F32", [1] * 40], "array 'w' is too large for a file of this size"),
        (SPARSE, ["sparse", "BOOL", [4]], "array 'w' of bool cannot be kept as float16"),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, arrays: Any, way: Any, message: str) -> None:
    (tmp_path / "m").write_bytes(sealed(arrays, packed={"w": way}))
    with pytest.raises(CorruptModelError) as caught:
        read_container(tmp_path / "m")
    assert message in str(caught.value)


def test_what_was_refused_is_fine_but_for_one_thing(tmp_path: Path) -> None:
    for arrays, way, expected in (
        ({"w": HALVES}, ["narrow", "F32", [2]], [0.5, 2]),
        ({"w": GAPS}, ["gaps", "I64", [2]], [1, 2]),
        (SPARSE, ["sparse", "F32", [2, 2]], [[0, 0.5], [0, 2]]),
    ):
        (tmp_path / "m").write_bytes(sealed(arrays, packed={"w": way}))
        found = read_container(tmp_path / "m")[1]["w"]
        assert found.tolist() == expected and found.dtype != arrays.get("w", HALVES).dtype
