"""The model-file container: round trips, refusals, and thousands of damaged files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from safetensors.numpy import load

from trellis.errors import CorruptModelError, DataError
from trellis.files import container
from trellis.files.container import loading, read_container, write_container
from trellis.files.stored import (
    check_range,
    header_value,
    pack_strings,
    packed_strings,
    take,
    unpack_strings,
)

DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
GOLDEN = Path(__file__).parents[1] / "golden" / "container_v1.trellis"

GOLDEN_HEADER: dict[str, Any] = {
    "estimator": "ChainCRF",
    "labels": ["B-NP", "I-NP", "O", 'é\n\0"\\'],
    "l2": 1.5,
    "tiny": 5e-324,
    "big": 2**70,
    "fitted": True,
    "nothing": None,
    "nested": {"a": [[], {}, ""]},
}
GOLDEN_ARRAYS: dict[str, NDArray[Any]] = {
    **{f"type {code}": np.array([[0, 1, 1], [1, 0, 1]], dtype=code) for code in DTYPES},
    "scalar": np.array(-0.0),
    "none": np.zeros((0, 3), dtype=np.float32),
    "extremes": np.array([np.inf, -np.inf, np.nan, 5e-324]),
    **pack_strings(["the", "", "日本"], "words."),
}


def same(one: dict[str, NDArray[Any]], two: dict[str, NDArray[Any]]) -> bool:
    """Whether both hold the same names, types, shapes and bits."""
    return one.keys() == two.keys() and all(
        one[name].dtype == two[name].dtype.newbyteorder("<")
        and one[name].shape == two[name].shape
        and one[name].tobytes() == two[name].astype(one[name].dtype).tobytes()
        for name in one
    )


def seal(payload: bytes, number: int = 1) -> bytes:
    """Put a payload under a right checksum (independently of the code under test)."""
    start = b"TRELLIS\0" + struct.pack("<I", number)
    return start + hashlib.sha256(start + payload).digest() + payload


def tensors(table: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    """Make a safetensors file by hand; `table` is its JSON (text, bytes, or to be dumped)."""
    text = table if isinstance(table, (str, bytes)) else json.dumps(table)
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def refusal(path: Path) -> str:
    """Return why a file is refused, in one line that names it."""
    with pytest.raises(CorruptModelError) as caught:
        read_container(path)
    assert type(caught.value) is CorruptModelError
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    reason = message.removeprefix(f"{path}: ")
    assert 5 < len(reason) <= 200
    return reason


# ---------------------------------------------------------------------------- round trips

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=10,
)
headers = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values)
array_values = st.sampled_from(DTYPES).flatmap(
    lambda code: hnp.arrays(
        st.sampled_from([np.dtype(code), np.dtype(code).newbyteorder(">")]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    )
)
array_tables = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])).filter(lambda s: s != "__metadata__"),
    array_values,
    max_size=4,
)


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("container") / "m.trellis"


@settings(deadline=None, max_examples=30)
@given(header=headers, arrays=array_tables, transposed=st.booleans())
def test_round_trip(
    scratch: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]], transposed: bool
) -> None:
    if transposed:
        arrays = {name: array.T for name, array in arrays.items()}
    write_container(scratch, header, arrays)
    header_back, arrays_back = read_container(scratch)
    assert json.dumps(header_back, sort_keys=True) == json.dumps(header, sort_keys=True)
    assert same(arrays_back, arrays)
    assert all(a.flags.aligned and a.flags.c_contiguous for a in arrays_back.values())
    # The order in which things were put in leaves no trace.
    content = scratch.read_bytes()
    write_container(scratch, dict(reversed(header.items())), dict(reversed(arrays.items())))
    assert scratch.read_bytes() == content
    write_container(scratch, header_back, arrays_back)
    assert scratch.read_bytes() == content


def test_layout(tmp_path: Path) -> None:
    path = tmp_path / "m.trellis"
    write_container(path, {"b": 1, "a": "é"}, {"w": np.array([1.5])})
    content = path.read_bytes()
    assert content[:12] == b"TRELLIS\0\x01\0\0\0"
    assert content[12:44] == hashlib.sha256(content[:12] + content[44:]).digest()
    length = int.from_bytes(content[44:52], "little")
    table = json.loads(content[52 : 52 + length])
    assert table["__metadata__"] == {"trellis": '{"a":"é","b":1}'}
    assert content[52 + length :] == struct.pack("<d", 1.5)


def test_others_read_the_payload(tmp_path: Path) -> None:
    write_container(tmp_path / "m", GOLDEN_HEADER, GOLDEN_ARRAYS)
    assert same(load((tmp_path / "m").read_bytes()[44:]), GOLDEN_ARRAYS)


def test_same_bytes_in_another_process(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    names = [f"array {i}" for i in range(20)]
    write_container(here, dict.fromkeys(names, 1), {n: np.arange(3) for n in names})
    code = f"""
import numpy as np
from trellis.files.container import write_container
names = {names!r}
write_container({str(there)!r}, dict.fromkeys(names, 1), {{n: np.arange(3) for n in names}})
"""
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert here.read_bytes() == there.read_bytes()


def test_arrays_read_are_writable_and_separate(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_container(path, {}, {"a": np.zeros(3), "b": np.zeros(3)})
    _, arrays = read_container(path)
    arrays["a"][:] = 1
    assert arrays["b"].tolist() == [0, 0, 0]


def test_golden_file_still_reads() -> None:
    assert GOLDEN.stat().st_size < 2000
    header, arrays = read_container(GOLDEN)
    assert header == GOLDEN_HEADER
    assert type(header["big"]) is int and type(header["l2"]) is float
    assert same(arrays, GOLDEN_ARRAYS)
    assert unpack_strings(arrays, "words.") == ["the", "", "日本"]


# ---------------------------------------------------------------------------- writing refusals


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ([1], "the header must be a dict, not list"),
        ({"a": {1: 2}}, r"header\['a'\] has the key 1: keys must be str"),
        ({"a": [0, float("nan")]}, r"header\['a'\]\[1\] is nan: JSON has finite numbers only"),
        ({"a": float("-inf")}, r"header\['a'\] is -inf: JSON"),
        ({"a": np.float64("inf")}, r"header\['a'\] is inf: JSON"),
        ({"a": (1, 2)}, r"header\['a'\] is a tuple: use dict, list, str, int, float, bool or None"),
        ({"a": np.int64(1)}, r"header\['a'\] is a int64: use dict"),
        ({"a": b"x"}, r"header\['a'\] is a bytes: use dict"),
        ({"a": "x\ud800"}, r"header\['a'\] holds a lone surrogate \('x\\ud800'\)"),
        ({"\udcff": 1}, r"a key of header holds a lone surrogate"),
        ({"a": deep(64)}, r"nested deeper than 64 levels"),
        ({"a": deep(100_000)}, r"nested deeper than 64 levels"),
        ({"a": 10**5000}, "the header cannot be written as JSON: .*digits"),
    ],
)
def test_unusable_headers(tmp_path: Path, header: Any, reason: str) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(DataError, match=reason) as caught:
        write_container(path, header, {})
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"old"


def test_deepest_header(tmp_path: Path) -> None:
    write_container(tmp_path / "m", {"a": deep(63)}, {})
    assert read_container(tmp_path / "m") == ({"a": deep(63)}, {})


def test_header_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_MAX_HEADER_BYTES", 100)
    write_container(tmp_path / "m", {"a": "x" * 92}, {})
    with pytest.raises(DataError, match="takes 101 bytes, 100 are allowed: store large tables"):
        write_container(tmp_path / "m", {"a": "x" * 93}, {})


def test_largest_header_fits_into_safetensors(tmp_path: Path) -> None:
    # Quotes are the worst case: each doubles twice on its way into the file.
    text = '"' * ((container._MAX_HEADER_BYTES - 8) // 2)
    write_container(tmp_path / "m", {"a": text}, {})
    assert read_container(tmp_path / "m")[0]["a"] == text
    assert load((tmp_path / "m").read_bytes()[44:]) == {}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({1: np.zeros(1)}, "1 cannot name an array: use a str"),
        ({"__metadata__": np.zeros(1)}, "'__metadata__' cannot name an array"),
        ({"a\ud800": np.zeros(1)}, "the name of an array holds a lone surrogate"),
        ({"a": [1.0]}, "array 'a' is a list, not a numpy array"),
        ({"a": np.zeros(1, complex)}, "array 'a' has dtype complex128: only bool, integers and"),
        ({"a": np.array(["x"])}, "array 'a' has dtype <U1"),
        ({"a": np.array([object()])}, "array 'a' has dtype object"),
        ({"a": np.zeros(1, "M8[s]")}, "array 'a' has dtype datetime64"),
        ({"a": np.zeros(1, "i4,f8")}, "array 'a' has dtype "),
    ],
)
def test_unusable_arrays(tmp_path: Path, arrays: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        write_container(tmp_path / "m", {}, arrays)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    write_container(path, {"old": True}, {})

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=f"No space left .*'{re.escape(str(path))}'"):
        write_container(path, {"new": True}, {})
    assert read_container(path)[0] == {"old": True}
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------------------- reading refusals


def test_missing_and_unreadable(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_container(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04 a zip", "not a Trellis model file"),
        (b"TRELLIS\x01" + bytes(100), "not a Trellis model file"),
        (b"TRELL", "the file is truncated, it ends after 5 bytes"),
        (b"TRELLIS\0" + bytes(35), "the file is truncated, it ends after 43 bytes"),
        (b"TRELLIS\0" + bytes(36), "the checksum does not match"),
        (seal(b""), "its table is not complete"),
        (seal(b"", number=4), "has format 4, this Trellis reads up to 3: upgrade Trellis"),
        (seal(b"", number=2**32 - 1), "has format 4294967295, .*: upgrade Trellis"),
        (seal(b"", number=0), "has format 0, which does not exist"),
        (seal(tensors({}))[:-1], "the checksum does not match: the file is damaged or truncated"),
        (seal(tensors({})) + b"x", "the checksum does not match"),
    ],
)
def test_bad_start(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "m"
    path.write_bytes(content)
    assert re.search(reason, refusal(path))


def test_message_stays_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines"
    path.write_bytes(b"x")
    with pytest.raises(CorruptModelError) as caught:
        read_container(path)
    assert str(caught.value).isprintable()
    assert r"two\nlines': not a Trellis model file" in str(caught.value)


def inner(text: str, entries: dict[str, Any] | None = None, data: bytes = b"") -> bytes:
    """Make a payload with this header text."""
    return tensors({"__metadata__": {"trellis": text}, **(entries or {})}, data)


def entry(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE: dict[str, tuple[bytes, str]] = {
    "no metadata": (tensors({}), "holds no Trellis header"),
    "no trellis": (tensors({"__metadata__": {}}), "holds no Trellis header"),
    "more metadata": (
        tensors({"__metadata__": {"trellis": "{}", "x": ""}}),
        "holds no Trellis header",
    ),
    "metadata of a wrong type": (tensors({"__metadata__": {"trellis": {}}}), ""),
    "metadata a list": (tensors({"__metadata__": ["trellis"]}), ""),
    "table a list": (tensors("[]"), ""),
    "table cut short": (tensors('{"__metadata__":'), ""),
    "table not UTF-8": (tensors(b'{"\xff": 1}'), ""),
    "table deep": (tensors('{"a":' * 100_000), ""),
    "table with NaN": (tensors('{"a": NaN}'), ""),
    "table length 0": (tensors("", length=0), ""),
    "table length too large": (tensors("{}", length=3), ""),
    "table length 2^63": (tensors("{}", length=2**63), ""),
    "table length 2^64 - 1": (tensors("{}", length=2**64 - 1), ""),
    "header empty": (inner(""), "Expecting value"),
    "header a list": (inner("[]"), "the header is a JSON list, not an object"),
    "header null": (inner("null"), "the header is a JSON NoneType, not an object"),
    "header cut short": (inner('{"a":'), "Expecting value"),
    "header and more": (inner("{} {}"), "Extra data"),
    "header NaN": (inner('{"a":NaN}'), "is nan: JSON has finite numbers only"),
    "header -Infinity": (inner('{"a":-Infinity}'), "is -inf: JSON has finite numbers only"),
    "header 1e999": (inner('{"a":[1e999]}'), "is inf: JSON has finite numbers only"),
    "header surrogate": (inner(r'{"a":"\ud800"}'), "holds a lone surrogate"),
    "header surrogate key": (inner(r'{"\udfff":1}'), "holds a lone surrogate"),
    "header twice the same key": (inner('{"a":1,"a":1}'), "the header has the key 'a' twice"),
    "header twice, deep": (inner('{"b":[{"a":1,"a":2}]}'), "the header has the key 'a' twice"),
    "header long key twice": (inner('{"A":1,"A":1}'.replace("A", "a\\n" * 999)), ""),
    "header long key": (inner('{"A":NaN}'.replace("A", "a" * 99_999)), "a…a+'] is nan: "),
    "header deep": (inner('{"a":' + "[" * 65 + "]" * 65 + "}"), "deeper than 64 levels"),
    "header absurdly deep": (inner("[" * 500_000), "RecursionError: "),
    "header deep objects": (inner('{"a":' * 200_000), "RecursionError: "),
    "header huge int": (inner('{"a":' + "9" * 100_000 + "}"), "digits"),
    "array twice": (
        tensors(
            '{"__metadata__":{"trellis":"{}"},'
            '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
            '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"x",
        ),
        "",
    ),
    "array BF16": (inner("{}", {"a": entry("BF16", [1], 0, 2)}, b"xx"), "the unknown type BF16"),
    "array C64": (inner("{}", {"a": entry("C64", [1], 0, 8)}, b"x" * 8), "unknown type C64"),
    "array OBJ": (inner("{}", {"a": entry("OBJ", [1], 0, 2)}, b"xx"), ""),
    "array truth 2": (
        inner("{}", {"a": entry("BOOL", [2], 0, 2)}, b"\1\2"),
        "array 'a' has a truth value that is neither 0 nor 1",
    ),
    "array too short": (inner("{}", {"a": entry("U8", [2], 0, 1)}, b"x"), ""),
    "array too long": (inner("{}", {"a": entry("U8", [1], 0, 2)}, b"xx"), ""),
    "array outside": (inner("{}", {"a": entry("U8", [9], 0, 9)}, b"x"), ""),
    "array backwards": (inner("{}", {"a": entry("U8", [1], 1, 0)}, b"x"), ""),
    "array with a negative length": (inner("{}", {"a": entry("U8", [-1], 0, 1)}, b"x"), ""),
    "array with a float length": (inner("{}", {"a": entry("U8", [1.0], 0, 1)}, b"x"), ""),
    "array of 2^64 bytes": (inner("{}", {"a": entry("F64", [2**61], 0, 2**64)}, b"x"), ""),
    "array that wraps around": (
        inner("{}", {"a": entry("U8", [2**32, 2**32], 0, 0)}),
        "",
    ),
    "array 0 by huge": (inner("{}", {"a": entry("U8", [0, 2**63, 2**63], 0, 0)}), ""),
    "array of 100 dimensions": (inner("{}", {"a": entry("U8", [1] * 100, 0, 1)}, b"x"), ""),
    "arrays overlap": (
        inner("{}", {"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"xxx"),
        "",
    ),
    "arrays with a hole": (
        inner("{}", {"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, b"xxx"),
        "",
    ),
    "bytes after the last array": (inner("{}", {"a": entry("U8", [1], 0, 1)}, b"xx"), ""),
    "bytes before the first array": (inner("{}", {"a": entry("U8", [1], 1, 2)}, b"xx"), ""),
    "array name with colours": (
        inner("{}", {"\x1b[31m\n": entry("BOOL", [1], 0, 1)}, b"\7"),
        re.escape(r"array '\x1b[31m\n' has a truth value"),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payload_under_a_right_checksum(tmp_path: Path, name: str) -> None:
    payload, reason = HOSTILE[name]
    path = tmp_path / "m"
    path.write_bytes(seal(payload))
    assert re.search(reason, refusal(path))


def test_hand_made_payload_is_accepted(tmp_path: Path) -> None:
    # So that the hostile ones above are known to be refused for what they are.
    path = tmp_path / "m"
    table = {"a": entry("BOOL", [2], 0, 2), "b": entry("F64", [1], 2, 10)}
    path.write_bytes(seal(inner('{"x":[1]}', table, b"\0\1" + struct.pack("<d", 2.5))))
    header, arrays = read_container(path)
    assert header == {"x": [1]}
    assert same(arrays, {"a": np.array([False, True]), "b": np.array([2.5])})
    assert arrays["b"].flags.aligned  # although it begins at an odd place in the file


def test_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(container, "_parse", fail)
    path = tmp_path / "m"
    path.write_bytes(seal(b""))
    assert refusal(path) == "MemoryError: "


# ---------------------------------------------------------------------------- fuzzing


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "m"
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(size=(2, 3)),
        "f": rng.normal(size=4).astype(np.float32),
        "mask": np.array([[True, False]]),
        **pack_strings(["O", "é"]),
    }
    write_container(path, {"estimator": "ChainCRF", "l2": 0.5, "labels": ["O", "B"]}, arrays)
    return path.read_bytes()


def block(rng: np.random.Generator, size: int) -> tuple[int, int]:
    """Draw a non-empty stretch of a text, mostly a short one."""
    begin = int(rng.integers(size))
    return begin, min(size, begin + 1 + int(rng.integers(int(rng.choice([1, 4, 16, 64, size])))))


def put(path: Path, data: bytes) -> None:
    # In place, because some file systems flush a file that is emptied and rewritten.
    path.touch()
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage `data` in one of many ways."""
    b, e = block(rng, len(data))
    b2, e2 = block(rng, len(data))
    middle = data[b:e]
    match int(rng.integers(11)):
        case 0:  # flip one bit
            middle = bytes([middle[0] ^ (1 << int(rng.integers(8)))]) + middle[1:]
        case 1:  # another byte
            middle = rng.bytes(1) + middle[1:]
        case 2:  # noise
            middle = rng.bytes(len(middle))
        case 3:
            middle = bytes(len(middle))
        case 4:
            middle = b"\xff" * len(middle)
        case 5:
            middle = b""
        case 6:
            middle = middle + middle
        case 7:  # a splice from elsewhere
            middle = data[b2:e2]
        case 8:  # a character that matters to JSON, or a digit
            middle = bytes([rng.choice(list(b'{}[]",:0123456789-.eE\\u \n'))]) + middle[1:]
        case 9:  # change places with another block
            (b, e), (b2, e2) = sorted([(b, e), (b2, e2)])
            if e <= b2:
                return data[:b] + data[b2:e2] + data[e:b2] + data[b:e] + data[e2:]
        case 10:  # more at the end
            return data + rng.bytes(1 + int(rng.integers(40)))
    return data[:b] + middle + data[e:]


def damaged_files(whole: bytes) -> Iterator[bytes]:
    for length in range(len(whole)):
        yield whole[:length]
    for i in range(len(whole)):
        for bit in range(8):
            yield whole[:i] + bytes([whole[i] ^ (1 << bit)]) + whole[i + 1 :]
    for extra in (b"\0", b"\0" * 8, b" ", b"}", whole, whole[44:]):
        yield whole + extra
        yield extra + whole
    rng = np.random.default_rng(1)
    for _ in range(2000):
        data = mutate(whole, rng)
        while rng.random() < 0.3:
            data = mutate(data, rng) if data else rng.bytes(9)
        yield data


def test_no_change_goes_unnoticed(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(small)
    read_container(path)
    tried = 0
    for data in damaged_files(small):
        if data == small:  # zeros over zeros
            continue
        put(path, data)
        refusal(path)
        tried += 1
    assert tried >= 3000


def test_checks_behind_the_checksum(small: bytes, tmp_path: Path) -> None:
    """A mutated payload with a right checksum is refused, or gives something of sound structure."""
    path, again = tmp_path / "m", tmp_path / "again"
    payload = small[44:]
    table_end = 8 + int.from_bytes(payload[:8], "little")
    rng = np.random.default_rng(2)
    accepted = refused = 0
    for i in range(3000):
        # Every other time keep to the table (its length kept right), where the structure is.
        if i % 2:
            data = mutate(payload, rng)
        else:
            data = tensors(mutate(payload[8:table_end], rng), payload[table_end:])
        put(path, seal(data))
        try:
            header, arrays = read_container(path)
        except CorruptModelError as error:
            assert type(error) is CorruptModelError
            assert str(error).startswith(f"{path}: ") and str(error).isprintable()
            refused += 1
            continue
        accepted += 1
        assert all(a.flags.aligned and a.flags.c_contiguous for a in arrays.values())
        assert all(a.view(np.uint8).max(initial=0) <= 1 for a in arrays.values() if a.dtype == "?")
        # Sound is what could have been written, and comes back the same.
        write_container(again, header, arrays)
        header_again, arrays_again = read_container(again)
        assert header_again == header
        assert same(arrays_again, arrays)
    assert accepted > 100 and refused > 1000


@settings(deadline=None, max_examples=60)
@given(
    table=st.dictionaries(
        st.sampled_from(["a", "b", "__metadata__"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["U8", "BOOL", "F32", "I64", "BF16", "F4", "", None]),
                "shape": st.lists(st.integers(-1, 3) | st.sampled_from([2**31, 2**63]), max_size=3),
                "data_offsets": st.lists(st.integers(-1, 12), min_size=1, max_size=3),
            }
        )
        | json_values,
    ),
    data=st.binary(max_size=12),
    with_header=st.booleans(),
)
def test_any_table(scratch: Path, table: dict[str, Any], data: bytes, with_header: bool) -> None:
    if with_header:
        table["__metadata__"] = {"trellis": "{}"}
    put(scratch, seal(tensors(table, data)))
    try:
        header, arrays = read_container(scratch)
    except CorruptModelError:
        return
    assert header == {} and sum(a.nbytes for a in arrays.values()) == len(data)


# ---------------------------------------------------------------------------- strings


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _is_text(data: bytes) -> bool:
    try:
        return bool(data.decode()) or not data
    except UnicodeDecodeError:
        return False


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_round_trip(strings: list[str]) -> None:
    packed = pack_strings(strings)
    assert packed["blob"].dtype == np.uint8 and packed["offsets"].dtype == np.int64
    assert unpack_strings(packed) == strings


def test_strings_that_cannot_be_packed() -> None:
    with pytest.raises(DataError, match=r"string 1 holds a lone surrogate \('b\\udc80'\)"):
        pack_strings(["a", "b\udc80"])
    with pytest.raises(DataError, match="string 0 is a bytes, not a str"):
        pack_strings([b"a"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("blob", "offsets", "reason"),
    [
        (np.zeros(2, np.uint8), np.array([0, 1]), "do not begin and end with its blob"),
        (np.zeros(2, np.uint8), np.array([1, 2]), "do not begin and end with its blob"),
        (np.zeros(2, np.uint8), np.array([0, 3]), "do not begin and end with its blob"),
        (np.zeros(0, np.uint8), np.array([], np.int64), "do not begin and end with its blob"),
        (np.zeros(2, np.uint8), np.array([0, 2, 1, 2]), "are not in order"),
        (np.zeros(2, np.uint8), np.array([0, -1, 2]), "are not in order"),
        (np.zeros(2, np.uint8), np.array([0, 2**63 - 1, -(2**63), 2]), "are not in order"),
        (np.array([97, 255], np.uint8), np.array([0, 1, 2]), "string 1 of a table is not valid"),
        (np.frombuffer("é".encode(), np.uint8), np.array([0, 1, 2]), "string 0 of a table is not"),
        (
            np.frombuffer(b"\xed\xa0\x80", np.uint8),
            np.array([0, 3]),
            "string 0 of a table is not valid UTF-8",  # a surrogate, encoded all the same
        ),
        (np.zeros(2, np.int8), np.array([0, 2]), "array 'blob' has dtype int8, uint8 expected"),
        (np.zeros(2, np.uint8), np.array([0.0, 2.0]), "array 'offsets' has dtype float64"),
        (np.zeros((1, 2), np.uint8), np.array([0, 2]), r"array 'blob' has shape \(1, 2\), \(any\)"),
    ],
)
def test_bad_string_tables(blob: NDArray[Any], offsets: NDArray[Any], reason: str) -> None:
    with pytest.raises(CorruptModelError, match=reason):
        unpack_strings({"blob": blob, "offsets": offsets})


@given(st.lists(st.binary(max_size=4) | st.text(max_size=2).map(_bytes)), st.data())
def test_packed_strings_are_valid_each_by_itself(parts: list[bytes], data: Any) -> None:
    blob = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(blob)), max_size=5)))
    arrays = {"blob": np.frombuffer(blob, np.uint8), "offsets": np.array([0, *cuts, len(blob)])}
    pieces = [blob[a:b] for a, b in pairwise(arrays["offsets"].tolist())]
    bad = [i for i, piece in enumerate(pieces) if not _is_text(piece)]
    if bad:
        with pytest.raises(CorruptModelError, match=f"string {bad[0]} of a table is not valid"):
            packed_strings(arrays)
    else:
        assert unpack_strings(arrays) == [piece.decode() for piece in pieces]
        assert all(a is b for a, b in zip(packed_strings(arrays), arrays.values(), strict=True))


# ---------------------------------------------------------------------------- checks after reading


def test_take() -> None:
    arrays = {
        "w": np.zeros((2, 3)),
        "nan": np.array([0, np.nan]),
        "inf": np.array([np.inf], np.float32),
        "ids": np.arange(3),
        "one": np.array(1),
    }
    assert take(arrays, "w", np.float64, (None, 3)) is arrays["w"]
    assert take(arrays, "w", "f8", (2, None)) is arrays["w"]
    assert take(arrays, "inf", "f4", (1,), finite=False) is arrays["inf"]
    assert take(arrays, "one", np.int64, ()) is arrays["one"]
    for name, dtype, shape, reason in [
        ("none", "f8", (1,), "array 'none' is missing"),
        ("w", "f4", (2, 3), "array 'w' has dtype float64, float32 expected"),
        ("w", "f8", (None, 4), r"array 'w' has shape \(2, 3\), \(any, 4\) expected"),
        ("w", "f8", (None,), r"array 'w' has shape \(2, 3\), \(any\) expected"),
        ("w", "f8", (2, 3, 1), r"array 'w' has shape \(2, 3\), \(2, 3, 1\) expected"),
        ("nan", "f8", (None,), "array 'nan' holds a number that is not finite"),
        ("inf", "f4", (None,), "array 'inf' holds a number that is not finite"),
    ]:
        with pytest.raises(CorruptModelError, match=reason):
            take(arrays, name, dtype, shape)  # type: ignore[arg-type]


def test_check_range() -> None:
    check_range(np.array([0, 3]), 0, 4, "ids")
    check_range(np.array([], np.int64), 5, 5, "ids")
    check_range(np.array([2**64 - 1], np.uint64), 0, 2**64, "ids")
    for array, low, high in [
        (np.array([-1, 2]), 0, 4),
        (np.array([0, 4]), 0, 4),
        (np.array([0.0, np.nan]), 0, 4),
        (np.array([2**64 - 1], np.uint64), -1, 2**64 - 1),
        (np.array([True]), 0, 1),
    ]:
        with pytest.raises(CorruptModelError, match=r"label ids lie in .* \.\. .*, outside"):
            check_range(array, low, high, "label ids")


def test_header_value() -> None:
    header = {"i": 3, "f": 0.5, "s": "crf", "b": True, "l": ["a"], "d": {"x": 1}, "n": None}
    assert header_value(header, "i", int, low=3, high=4) == 3
    assert header_value(header, "f", float, low=0) == 0.5
    as_float = header_value(header, "i", float)
    assert as_float == 3.0 and type(as_float) is float
    assert header_value(header, "s", str, choices=["crf", "perceptron"]) == "crf"
    assert header_value(header, "b", bool) is True
    assert header_value(header, "l", list, items=str) == ["a"]
    assert header_value(header, "d", dict, items=int) == {"x": 1}
    for key, kind, options, reason in [
        ("none", int, {}, "header entry 'none' is missing"),
        ("i", str, {}, "header entry 'i' is a int, str expected"),
        ("b", int, {}, "header entry 'b' is a bool, int expected"),
        ("b", float, {}, "header entry 'b' is a bool, float expected"),
        ("f", int, {}, "header entry 'f' is a float, int expected"),
        ("n", str, {}, "header entry 'n' is a NoneType, str expected"),
        ("i", int, {"low": 4}, "header entry 'i' is 3, outside 4 <= x < None"),
        ("i", int, {"high": 3}, "header entry 'i' is 3, outside None <= x < 3"),
        ("s", str, {"choices": ["a", "b"]}, "entry 's' is 'crf', one of 'a', 'b' expected"),
        ("l", list, {"items": int}, "header entry 'l' holds a str, int expected"),
        ("d", dict, {"items": str}, "header entry 'd' holds a int, str expected"),
    ]:
        with pytest.raises(CorruptModelError, match=reason):
            header_value(header, key, kind, **options)  # type: ignore[arg-type]
    with pytest.raises(CorruptModelError, match="header entry 'x' is too large for a float"):
        header_value({"x": 10**400}, "x", float)


def test_loading_names_the_file_once() -> None:
    with pytest.raises(CorruptModelError) as caught, loading("m"), loading("m"):
        raise CorruptModelError("reason")
    assert str(caught.value) == "m: reason"
    with pytest.raises(CorruptModelError, match=r"^m: KeyError: 'w'$"), loading("m"):
        {}["w"]
    with pytest.raises(FileNotFoundError), loading("m"):
        raise FileNotFoundError
    with pytest.raises(KeyboardInterrupt), loading("m"):
        raise KeyboardInterrupt
