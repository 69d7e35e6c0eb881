"""The log of annotations: nothing that was acknowledged is lost, nothing else is overwritten."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.cheap.annotation_log import AnnotationLog, from_json, to_json
from trellis.errors import DataError
from trellis.tracking.objects import PairAnnotation

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
labels = st.text(max_size=3)
annotations = st.recursive(
    plain | labels | st.frozensets(labels, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(labels | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture
def disk(request):
    """A folder on the disk of the checkout: temporary files may lie in memory, which is fast."""
    with tempfile.TemporaryDirectory(dir=request.config.rootpath, prefix=".disk-") as folder:
        yield Path(folder)


@given(annotations)
@settings(max_examples=40)
def test_json_gives_back_what_was_written(annotation):
    assert from_json(to_json(annotation)) == annotation


def test_json_of_numpy_tuples_and_pairs():
    pair = PairAnnotation(((0, 1, "move"),), known_sources=(2,), known_targets=None)
    given_ = {"a": (np.int64(1), np.bool_(True)), "b": np.array([0.5]), "c": pair}
    assert from_json(to_json(given_)) == {"a": [1, True], "b": [0.5], "c": pair}
    assert to_json({"B", "A", "C"}) == to_json({"C", "B", "A"})


@pytest.mark.parametrize("value", [object(), float("nan"), {0.5: "a"}, [np.inf], b"bytes"])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(DataError, match="cannot be written to a log; use numbers, strings"):
        to_json(value)


def deep(n):
    value = ["a"]
    for _ in range(n):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, ["\ud800"]), "surrogates not allowed"),
        ((2**70, ["a"]), "too large"),
        ((0, deep(10**4)), "recursion"),
    ],
    ids=["surrogate", "number", "depth"],
)
def test_what_a_file_cannot_hold_is_refused(tmp_path, arguments, message):
    with AnnotationLog(tmp_path / "log") as log:
        with pytest.raises(DataError, match=f"cannot be written to the annotation log.*{message}"):
            log.add(*arguments)
        assert log.add(0, ["a"]) == 1  # and it goes on


def test_a_row_nested_too_deeply_is_damage(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        log.add(0, ["a"])
    with sqlite3.connect(path) as file:
        row = (1, "", "[" * 10**5 + "]" * 10**5, None, 0)
        columns = "sample, key, annotation, nodes, replaces"
        file.execute(f"INSERT INTO annotations ({columns}) VALUES (?, ?, ?, ?, ?)", row)
    file.close()
    with AnnotationLog(path) as log, pytest.raises(DataError, match=r"is damaged \(row 2"):
        log.entries()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"CREATE TABLE metad\xa0ta", "malformed database schema"),
        (b"CR\xa0ATE TABLE metadata", "codec can't decode byte 0xa0"),  # SQLite repeats it
    ],
)
def test_a_damaged_schema_that_is_no_text(tmp_path, damage, message):
    path = tmp_path / "log"
    AnnotationLog(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE metadata", damage))
    with pytest.raises(DataError, match=rf"the annotation log .* is damaged \(.*{message}"):
        AnnotationLog(path)


def test_entries_come_back_in_order(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        log.begin(pool="p", strategy="random", seed=3)
        assert log.add(5, ["A", None], key="five") == 1
        assert log.add(2, {"A", "B"}, nodes=(0, 3)) == 2
        assert log.add(5, ["B", "B"], replaces=True) == 3
    with AnnotationLog(path) as log:
        log.begin(pool="p", strategy="random", seed=3)
        first, second, third = log.entries()
        assert log.metadata == {"pool": "p", "strategy": "random", "seed": 3}
        assert log.add(0, None) == 4
    assert (first.sample, first.annotation, first.key) == (5, ["A", None], "five")
    assert (second.annotation, second.nodes) == (frozenset("AB"), (0, 3))
    assert (third.annotation, third.replaces, first.replaces) == (["B", "B"], True, False)
    assert [entry.number for entry in (first, second, third)] == [1, 2, 3]


def test_an_annotation_that_cannot_be_written_changes_nothing(tmp_path):
    with AnnotationLog(tmp_path / "log") as log:
        log.add(0, "A")
        with pytest.raises(DataError, match="cannot be written"):
            log.add(1, object())
        assert log.add(1, "B") == 2


def test_rows_cannot_be_changed_or_removed(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        log.add(0, "A")
    with sqlite3.connect(path) as file:
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            file.execute("UPDATE annotations SET annotation = '1'")
        with pytest.raises(sqlite3.IntegrityError, match="never removed"):
            file.execute("DELETE FROM annotations")


def test_log_of_another_pool_is_refused(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        log.begin(pool="mine", strategy="random", seed=0)
    with (
        AnnotationLog(path) as log,
        pytest.raises(DataError, match="log belongs to another pool: its samples differ"),
    ):
        log.begin(pool="other", strategy="random", seed=0)


def test_an_empty_file_becomes_a_log(tmp_path):
    path = tmp_path / "log"
    path.touch()
    with AnnotationLog(path) as log:
        assert log.metadata == {} and log.entries() == []


def refused(path, message):
    before = path.read_bytes()
    with pytest.raises(DataError, match=message):
        AnnotationLog(path)
    assert path.read_bytes() == before


def test_other_files_are_refused_and_kept(tmp_path):
    text = tmp_path / "text"
    text.write_text("to be or not to be\n" * 100)
    refused(text, "text is no annotation log; name a new file")
    other = tmp_path / "other"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE t (x)")
    file.close()
    refused(other, "other is a database, but no annotation log; name a new file")


def test_newer_format_is_refused(tmp_path):
    path = tmp_path / "log"
    AnnotationLog(path).close()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 2")
    file.close()
    refused(path, "annotation log of format 2; this version of Trellis reads and writes 1")


def test_damaged_log_is_refused_and_kept(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        for i in range(20):
            log.add(i, ["A"] * 400)
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 5] = b"\xff" * 8192
    path.write_bytes(content)
    refused(path, "is damaged .*left as it is")
    path.write_bytes(content[:4096])  # cut off
    refused(path, "is damaged .*left as it is")


@pytest.mark.parametrize("text", ["{", '{"set": 1}', '{"a": 1, "b": 2}', '{"pair": 1}'])
def test_damaged_row_is_named(tmp_path, text):
    path = tmp_path / "log"
    AnnotationLog(path).close()
    with sqlite3.connect(path) as file:
        file.execute("INSERT INTO annotations VALUES (1, 0, '', ?, NULL, 0)", (text,))
    file.close()
    with AnnotationLog(path) as log, pytest.raises(DataError, match=r"is damaged \(row 1: "):
        log.entries()


def test_missing_folder_and_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(DataError, match=r"missing.log: create its folder first"):
        AnnotationLog(tmp_path / "missing" / "log")
    with pytest.raises(DataError, match="cannot write the annotation log"):
        AnnotationLog(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_read_only_folder_and_file(tmp_path):
    path = tmp_path / "log"
    AnnotationLog(path).close()
    path.chmod(0o400)
    refused(path, "cannot write the annotation log .*must be writable")
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        refused(path, "cannot write the annotation log .*must be writable")
        with pytest.raises(DataError, match=r"cannot write the annotation log .*must be writable"):
            AnnotationLog(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


def test_read_only_database_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "log"
    AnnotationLog(path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda p, **rest: connect(f"file:{p}?mode=ro", uri=True, **rest)
    )
    refused(path, "cannot write the annotation log .*must be writable")


def test_closed_log_says_so(tmp_path):
    log = AnnotationLog(tmp_path / "log")
    log.close()
    with pytest.raises(DataError, match=r"log failed: .*closed"):
        log.add(0, "A")
    with pytest.raises(DataError, match=r"log failed: .*closed"):
        log.entries()


def test_one_log_has_one_writer(tmp_path):
    path = tmp_path / "log"
    with AnnotationLog(path) as log:
        log.add(0, "A")
        with pytest.raises(DataError, match="is in use by another process or learner"):
            AnnotationLog(path, timeout=0.05)
        code = (
            "import sys; from trellis.cheap.annotation_log import AnnotationLog\n"
            "AnnotationLog(sys.argv[1], timeout=0.05)"
        )
        command = [sys.executable, "-c", code, str(path)]
        child = subprocess.run(command, capture_output=True, text=True)
        assert child.returncode and "is in use by another process" in child.stderr
        log.add(1, "B")
    with AnnotationLog(path) as log:
        assert [entry.annotation for entry in log.entries()] == ["A", "B"]


_WRITER = """
import sys
from trellis.cheap.annotation_log import AnnotationLog
with AnnotationLog(sys.argv[1]) as log:
    for i in range(10**9):
        number = log.add(i, ["A", {"B", "C"}, None] * 50)
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path):
    path = tmp_path / "log"
    acknowledged = 0
    for _ in range(2):  # the second goes on where the first was killed
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as child:
            for _ in range(12):
                line = child.stdout.readline()
            child.send_signal(signal.SIGKILL)
            rest = [text for text in child.stdout.read().split("\n") if text]
        acknowledged = int((rest or [line])[-1])
        with AnnotationLog(path) as log:
            entries = log.entries()
        assert len(entries) >= acknowledged
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        expected = ["A", frozenset("BC"), None] * 50
        assert all(entry.annotation == expected for entry in entries)
    assert acknowledged >= 24


# ---------------------------------------------------------------------- threads


def test_threads_share_a_log(disk):
    path = disk / "log"
    log = AnnotationLog(path)
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda i: log.add(i, ["A", {"B", "C"}]), range(200)))
        numbers += [len(entries) for entries in threads.map(lambda _: log.entries(), range(8))]
    log.close()
    assert sorted(numbers[:200]) == list(range(1, 201))
    assert numbers[200:] == [200] * 8
    with AnnotationLog(path) as log:
        assert [entry.sample for entry in log.entries()] == [
            i for _, i in sorted(zip(numbers[:200], range(200), strict=True))
        ]


def test_closing_while_threads_add_loses_nothing_acknowledged(disk):
    path = disk / "log"
    writer = AnnotationLog(path)
    acknowledged = []

    def add(i):
        with suppress(DataError):  # closed
            acknowledged.append(writer.add(i, "A"))
            if i == 20:
                writer.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(60)))
    with AnnotationLog(path) as log:
        numbers = [entry.number for entry in log.entries()]
    assert 0 < len(numbers) < 60
    assert sorted(acknowledged) == numbers


def test_an_answer_in_the_middle_of_another_is_refused(tmp_path):
    """As a signal handler would give it: it neither waits for ever nor harms the other."""
    messages = []

    def handler(statement):
        if statement.startswith("INSERT"):
            try:
                log.add(7, "handler")
            except DataError as error:
                messages.append(str(error))

    with AnnotationLog(tmp_path / "log") as log:
        log._file.set_trace_callback(handler)
        log.add(1, "A")
        log._file.set_trace_callback(None)
        assert log.add(2, "B") == 2
        assert [entry.annotation for entry in log.entries()] == ["A", "B"]
    assert len(messages) == 1 and "is in the middle of an answer" in messages[0]


def test_an_interrupted_answer_does_not_block_the_next(tmp_path):
    with AnnotationLog(tmp_path / "log") as log:
        log._file.set_progress_handler(lambda: 1, 1)  # as Ctrl-C in SQLite
        with pytest.raises(DataError, match="log failed: interrupted"):
            log.add(1, "A")
        log._file.set_progress_handler(None, 1)
        assert log.add(1, "A") == 1


# ---------------------------------------------------------------------- processes

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

_FORKED = """
import gc, os, sys, threading
from trellis.cheap.annotation_log import AnnotationLog
from trellis.errors import DataError

path, leaves = sys.argv[1:]
log = AnnotationLog(path)
acknowledged = [log.add(0, ["A"] * 500)]
done = threading.Event()

def write():
    while not done.is_set():
        acknowledged.append(log.add(len(acknowledged), ["A"] * 500))

def refused(use):
    try:
        use()
    except DataError as error:
        here = f"cannot be used in process {os.getpid()}"
        return f"was opened by process {os.getppid()} and {here}" in str(error)

def in_child():
    uses = [
        lambda: log.add(1, "B"), log.entries, lambda: log.metadata, log.close,
        lambda: log.begin(pool="p", strategy="random", seed=0),
    ]
    try:
        AnnotationLog(path, timeout=0)
    except DataError as error:
        in_use = "is in use by another process" in str(error)
    return all(map(refused, uses)) and in_use

writer = threading.Thread(target=write, daemon=True)
writer.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        good = in_child()
        if leaves == "gc":
            del log
            gc.collect()
        if leaves == "with":
            with log:
                pass
        if leaves == "_exit":
            os._exit(not good)
        sys.exit(not good)
    assert os.waitpid(child, 0)[1] == 0, "a use in the child was not refused"
    assert os.path.exists(path + "-journal")  # what a crash is undone from
done.set()
writer.join()
assert [entry.number for entry in log.entries()] == acknowledged
print(acknowledged[-1])
os.kill(os.getpid(), 9)
"""


@forks
@pytest.mark.parametrize("leaves", ["exit", "gc", "with", "_exit"])
def test_a_forked_process_is_refused_and_harms_nothing(disk, leaves):
    path = disk / "log"
    command = [sys.executable, "-W", "ignore", "-c", _FORKED, str(path), leaves]
    parent = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    with AnnotationLog(path) as log:
        numbers = [entry.number for entry in log.entries()]
    assert numbers == list(range(1, int(parent.stdout) + 1))


@forks
def test_a_process_forked_off_opens_another_log(disk):
    log = AnnotationLog(disk / "parent")
    log.add(0, "A")
    child = os.fork()
    if child == 0:
        try:
            with AnnotationLog(disk / "child") as its:
                its.add(0, "B")
                os._exit(len(its.entries()) != 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert log.add(1, "C") == 2
    log.close()
    with AnnotationLog(disk / "parent") as log, AnnotationLog(disk / "child") as its:
        assert [entry.annotation for entry in log.entries()] == ["A", "C"]
        assert [entry.annotation for entry in its.entries()] == ["B"]


def test_a_log_that_is_forgotten_is_closed(tmp_path):
    log = AnnotationLog(tmp_path / "log")
    log.add(0, "A")
    del log
    with AnnotationLog(tmp_path / "log", timeout=0) as log:
        assert len(log.entries()) == 1
