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


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda record: record["score"], "KeyError: 'score'"),
        (lambda record: record["text"] + 1, 'TypeError: can only concatenate str (not "int") to'),
        (lambda record: record["text"].mean(), "AttributeError: 'str' object has no attribute"),
        (lambda record: 1 / record["zero"], "ZeroDivisionError: "),
        (lambda record: unpack(record, [1]), "error: Error -3 while decompressing data"),
        (lambda record: int("x\n" * 300), "ValueError: invalid literal for int"),
    ],
)
def test_records_that_are_not_as_they_should_be(tmp_path, read, reason):
    log = Log(tmp_path / "log.jsonl")
    log.add({"key": "a", "text": "x", "zero": 0, "codes": "AAAA", "labels": []})
    with pytest.raises(DataError) as caught, log.reading():
        read(log.records["a"])
    message = str(caught.value)
    start = f"{tmp_path / 'log.jsonl'} holds records that do not fit together ({reason}"
    assert message.startswith(start)
    assert message.endswith(
        "); remove the lines that were changed, and what they stood for will be computed again"
    )
    assert "\n" not in message and len(message) < len(str(tmp_path)) + 400


@pytest.mark.parametrize("error", [DataError("not finished"), OSError("disk full"), ImportError()])
def test_other_errors_are_no_matter_of_the_log(tmp_path, error):
    log = Log(tmp_path / "log.jsonl")
    with pytest.raises(type(error)) as caught, log.reading():
        raise error
    assert caught.value is error


@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "ü"]), max_size=5)))
def test_packing_is_undone(sequences):
    assert unpack(pack(sequences), [len(s) for s in sequences]) == sequences
