"""Containers mapped into memory: the same content as read, never changed, refused when damaged."""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import random
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trellis.errors import CorruptModelError, DataError
from trellis.files import container
from trellis.files.container import (
    MODEL,
    PREPARED,
    map_container,
    read_container,
    stream_container,
    write_container,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "container_v1.trellis"
DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
ARRAYS = {
    **{f"type {code}": np.array([[0, 1, 1], [1, 0, 1]], dtype=code) for code in DTYPES},
    "scalar": np.array(-0.5),
    "none": np.zeros((0, 3), np.float32),
    "long": np.arange(5000)[::-1],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_container(tmp_path / "m", {"a": ["é"]}, ARRAYS)
    return tmp_path / "m"


def test_mapped_is_as_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_BLOCK", 100)
    header, arrays = map_container(file)
    read_header, read = read_container(file)
    assert header == read_header == {"a": ["é"]}
    assert arrays.keys() == read.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert type(array) is np.ndarray
        assert array.dtype == read[name].dtype and array.shape == read[name].shape
        assert array.tobytes() == read[name].tobytes() == ARRAYS[name].tobytes()
        assert array.flags.aligned and array.flags.c_contiguous and array.flags.writeable


def test_blocks_make_no_difference(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = file.read_bytes()
    monkeypatch.setattr(container, "_BLOCK", 7)
    write_container(file, {"a": ["é"]}, ARRAYS)
    assert file.read_bytes() == content


def test_arrays_are_aligned_in_the_file(file: Path) -> None:
    content = file.read_bytes()
    length = int.from_bytes(content[44:52], "little")
    assert (52 + length) % 64 == 0
    table = json.loads(content[52 : 52 + length])
    for name, array in ARRAYS.items():
        assert table[name]["data_offsets"][0] % array.itemsize == 0


def test_the_file_is_never_written(file: Path) -> None:
    content = file.read_bytes()
    arrays = map_container(file)[1]
    arrays["long"][:] = 7
    del arrays
    assert file.read_bytes() == content
    assert map_container(file)[1]["long"][0] == 4999


def test_a_replaced_file_stays_mapped(file: Path) -> None:
    arrays = map_container(file, verify=False)[1]
    write_container(file, {}, {})
    assert arrays["long"].tolist() == list(range(4999, -1, -1))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_may_be_larger_than_memory() -> None:
    text = Path("/proc/meminfo").read_text()
    fields = dict(line.split(":") for line in text.splitlines())
    size = sum(int(fields[key].split()[0]) << 10 for key in ("MemTotal", "SwapTotal"))
    with tempfile.TemporaryFile() as sparse:
        try:
            sparse.truncate(2 * size)
        except OSError:
            pytest.skip("no sparse file of this size here")
        with container._private_map(sparse) as mapped:
            assert len(mapped) == 2 * size


def test_memory_that_cannot_be_mapped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OSError, match="Cannot map the file: Cannot allocate") as caught:
        map_container(file)
    assert caught.value.filename == file


def test_other_systems_map_a_copy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    arrays = map_container(file)[1]
    arrays["long"][:] = 7
    assert read_container(file)[1]["long"][0] == 4999


def test_golden_files_are_old_and_not_aligned() -> None:
    """They were written before arrays were aligned: read, but not mapped."""
    with pytest.raises(CorruptModelError, match=r"array .* is not aligned"):
        map_container(GOLDEN)


# ---------------------------------------------------------------------------- refusals


def sealed(payload: bytes, magic: bytes = b"TRELLIS\0", number: int = 1) -> bytes:
    start = magic + struct.pack("<I", number)
    return start + hashlib.sha256(start + payload).digest() + payload


def tensors(entries: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    table = {"__metadata__": {"trellis": "{}"}, **entries}
    raw = json.dumps(table).encode()
    raw += b" " * (-(52 + len(raw)) % 64)
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(dtype: Any = "U8", shape: Any = (1,), place: Any = (0, 1)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": place}


LONE = "the entry of array 'a' cannot be read"
PLACE = "array 'a' does not lie where it should, or is cut off"


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04 a zip, long enough to be something at all", "not a Trellis model file"),
        (b"TRELL", "the file is truncated, it ends after 5 bytes"),
        (sealed(b"", b"TRELLISP"), "a Trellis prepared corpus, not a model file"),
        (sealed(b"", number=4), "has format 4, this Trellis reads up to 3: upgrade"),
        (sealed(b"", number=0), "has format 0, which does not exist"),
        (sealed(b""), "its table is not complete"),
        (sealed(tensors({}, length=2**63)), "its table is not complete"),
        (sealed(tensors({}, length=10**4)), "its table is not complete"),
        (sealed(tensors({"__metadata__": {}})), "holds no Trellis header"),
        (sealed(tensors({"a": 1})), LONE),
        (sealed(tensors({"a": entry() | {"more": 1}}, b"x")), LONE),
        (sealed(tensors({"a": entry(dtype=["U8"])}, b"x")), LONE),
        (sealed(tensors({"a": entry(shape=1)}, b"x")), LONE),
        (sealed(tensors({"a": entry(shape=[True])}, b"x")), LONE),
        (sealed(tensors({"a": entry(shape=[-1])}, b"x")), LONE),
        (sealed(tensors({"a": entry(place=[0])}, b"x")), LONE),
        (sealed(tensors({"a": entry(place=[0.0, 1])}, b"x")), LONE),
        (sealed(tensors({"a": entry(place=[1, 0])}, b"x")), PLACE),
        (sealed(tensors({"a": entry(place=[0, 2])}, b"x")), PLACE),
        (sealed(tensors({"a": entry(place=[1, 2])}, b"xx")), PLACE),
        (sealed(tensors({"b": entry(), "a": entry()}, b"x")), "does not lie where it should"),
        (sealed(tensors({"a": entry(dtype="BF16")}, b"x")), "has the unknown type BF16"),
        (sealed(tensors({"a": entry(dtype="BOOL")}, b"x")), "neither 0 nor 1"),
        (sealed(tensors({"a": entry(shape=[3])}, b"x")), "cannot reshape"),
        (sealed(tensors({"a": entry(shape=[10**30])}, b"x")), ""),
        (sealed(tensors({"a": entry()}, b"xy")), "the file is longer than its arrays"),
        (
            sealed(tensors({"b": entry(), "a": entry("I64", [1], [1, 9])}, bytes(9))),
            "array 'a' is not aligned",
        ),
    ],
)
def test_refusals(tmp_path: Path, content: bytes, reason: str, verify: bool) -> None:
    path = tmp_path / "m"
    path.write_bytes(content)
    with pytest.raises(CorruptModelError) as caught:
        map_container(path, verify=verify)
    assert str(caught.value).startswith(f"{path}: ") and reason in str(caught.value)


def test_only_verification_sees_changed_numbers(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-2] ^= 1  # in the arrays of bytes, the last of all
    file.write_bytes(content)
    map_container(file, verify=False)
    with pytest.raises(CorruptModelError, match="the checksum does not match"):
        map_container(file)


def test_damaged_at_random_places(file: Path) -> None:
    rng = random.Random(0)
    content = file.read_bytes()
    for k in range(400):
        changed = bytearray(content)
        if k % 4 == 0:
            del changed[rng.randrange(len(content)) :]
        else:
            changed[rng.randrange(rng.choice([60, 2000, len(content)]))] ^= 1 << rng.randrange(8)
        file.write_bytes(changed)
        with pytest.raises(CorruptModelError):
            map_container(file)
        try:
            map_container(file, verify=False)
        except CorruptModelError:
            pass
        else:
            assert len(changed) == len(content)  # what is cut off is always seen


def test_a_prepared_corpus_has_its_own_error(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with path.open("wb") as file:
        stream_container(file, {}, {"a": np.arange(3)}, PREPARED)
    assert map_container(path, PREPARED)[1]["a"].tolist() == [0, 1, 2]
    with pytest.raises(CorruptModelError, match="a Trellis prepared corpus, not a model file"):
        map_container(path, MODEL)
    with pytest.raises(CorruptModelError, match="a Trellis prepared corpus, not a model file"):
        read_container(path)
    write_container(path, {}, {})
    with pytest.raises(DataError, match="a Trellis model file, not a prepared corpus"):
        map_container(path, PREPARED)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        map_container(tmp_path / "none")
