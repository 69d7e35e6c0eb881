"""Logs of lines: what several threads and processes write at once is all there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trellis.errors import DataError
from trellis.files.log import AppendedLog

HEAD = {"log": "of the tests"}


class Numbers(AppendedLog):
    """A log of numbers."""

    def __init__(self, path):
        self.numbers = []
        super().__init__(path, HEAD)

    def _check_head(self, path, head):
        if head != HEAD:
            raise DataError("another log")

    def _take(self, record):
        self.numbers.append(record.get("number"))
        return "number" in record


_WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_log import Numbers
log = Numbers(sys.argv[2])
print("open", flush=True)
for number in range(*map(int, sys.argv[3:])):
    log.append({"number": number, "rest": "x" * 5000})
"""


def test_processes_share_a_log(tmp_path):
    """Each begins with an empty file, and they write lines longer than a page."""
    path, here = tmp_path / "log", str(Path(__file__).parent)
    command = [sys.executable, "-c", _WRITER, here, str(path)]
    writers = [
        subprocess.Popen([*command, str(first), str(first + 40)], stdout=subprocess.DEVNULL)
        for first in (0, 40, 80)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted(Numbers(path).numbers) == list(range(120))


def test_threads_share_a_log(tmp_path):
    log = Numbers(tmp_path / "log")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: log.append({"number": number}), range(100)))
    assert sorted(Numbers(tmp_path / "log").numbers) == list(range(100))


@pytest.mark.parametrize("left", [b'{"number": 1', b"x" * 10_000])
def test_what_a_killed_process_left_is_cut_off_by_those_that_go_on(tmp_path, left):
    path = tmp_path / "log"
    log, other = Numbers(path), Numbers(path)
    log.append({"number": 0})
    with path.open("ab") as file:
        file.write(left)
    log.append({"number": 2})
    other.append({"number": 3})
    assert Numbers(path).numbers == [0, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_process_forked_off_while_a_line_is_written_keeps_nothing_locked(tmp_path, monkeypatch):
    log = Numbers(tmp_path / "log")
    release_read, release_write = os.pipe()
    children = []
    fsync = os.fsync

    def fork_before(descriptor):
        monkeypatch.setattr(os, "fsync", fsync)
        children.append(os.fork())
        if children[0] == 0:
            os.read(release_read, 1)  # has the file open until the test ends
            os._exit(0)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fork_before)
    log.append({"number": 0})
    log.append({"number": 1})  # waits for ever if the child has the lock
    os.write(release_write, b"x")
    os.waitpid(children[0], 0)
    assert Numbers(tmp_path / "log").numbers == [0, 1]
    os.close(release_read)
    os.close(release_write)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_log_is_read(tmp_path):
    path = tmp_path / "log"
    Numbers(path).append({"number": 0})
    path.chmod(0o400)
    log = Numbers(path)
    assert log.numbers == [0]
    with pytest.raises(PermissionError):
        log.append({"number": 1})


def test_other_files_are_kept(tmp_path):
    path = tmp_path / "log"
    for content in (b"to be\nor not", b"to be", json.dumps(HEAD).encode() + b"\n[1]\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"another log|line 2: not a record of this log"):
            Numbers(path)
        assert path.read_bytes() == content
