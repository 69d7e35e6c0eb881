"""The log of a reproduction, and label sequences as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.log import Log
from studies.packing import pack, unpack
from trellis import DataError


def test_records_stay(tmp_path):
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.add({"key": "a", "x": 1})
    log.add({"key": "b", "x": 2})
    log.add({"key": "a", "x": 3})
    assert Log(path).records == {"a": {"key": "a", "x": 3}, "b": {"key": "b", "x": 2}}


@pytest.mark.parametrize("cut", [1, 10, 30])
def test_a_torn_line_is_cut_off(tmp_path, cut):
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.add({"key": "a", "text": "x" * 40})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = Log(path)
    assert again.records == {}
    again.add({"key": "b"})
    assert list(Log(path).records) == ["b"]


def test_a_torn_head_is_completed(tmp_path):
    path = tmp_path / "log.jsonl"
    Log(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:7])
    Log(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b'{"trellis": "tuning log"}\n'])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"log.jsonl is not a reproduction log of this version"):
        Log(path)
    assert path.read_bytes() == content


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    Log(path).add({"key": "a"})
    with path.open("ab") as file:
        file.write(b"{broken\n")
    with pytest.raises(DataError, match=r"log.jsonl, line 3: not a record of this log; remove"):
        Log(path)


@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "ü"]), max_size=5)))
def test_packing_is_undone(sequences):
    assert unpack(pack(sequences), [len(s) for s in sequences]) == sequences
