"""Temporary files of killed writers: the next writer of the same file removes them, and no others.

Processes are really killed, with SIGKILL, while they write.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trellis.files import atomic, atomic_write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")

WRITER = """
import sys, time
from trellis.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half" * 1000)
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    """A process in the midst of writing a file."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


def kill(process: subprocess.Popen[bytes], *, reap: bool = True) -> None:
    process.send_signal(signal.SIGKILL)
    if reap:
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def hidden(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def write(path: Path, content: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(content)


def test_the_next_writer_removes_what_killed_ones_left(tmp_path: Path) -> None:
    path = tmp_path / "model.trellis"
    write(path, b"old")
    for _ in range(3):
        kill(writer(path))
    # Each writer has swept up after the one before.
    (left,) = hidden(tmp_path)
    assert left.startswith(".trellis-")
    assert left.endswith("-model.trellis.tmp")
    assert path.read_bytes() == b"old"
    write(path)
    assert hidden(tmp_path) == []
    assert path.read_bytes() == b"new"


def test_those_of_living_processes_and_of_other_files_stay(tmp_path: Path) -> None:
    path, other = tmp_path / "model", tmp_path / "other"
    living = writer(path)
    try:
        kill(writer(other))
        before = hidden(tmp_path)
        assert len(before) == 2
        write(path)
        assert hidden(tmp_path) == before
    finally:
        kill(living)
    write(path)
    (left,) = hidden(tmp_path)
    assert left.endswith("-other.tmp")


def test_a_killed_process_that_nobody_has_asked_for(tmp_path: Path) -> None:
    """A zombie has a number, but writes no more."""
    path = tmp_path / "model"
    process = writer(path)
    kill(process, reap=False)
    while b") Z" not in Path(f"/proc/{process.pid}/stat").read_bytes():
        time.sleep(0.01)
    write(path)
    assert hidden(tmp_path) == []
    kill(process)


def test_other_threads_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model"
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with atomic_write(path) as file:
            file.write(b"slow")
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=slow)
    thread.start()
    assert inside.wait(60)
    write(path, b"fast")
    assert path.read_bytes() == b"fast"
    assert len(hidden(tmp_path)) == 1
    go_on.set()
    thread.join()
    assert path.read_bytes() == b"slow"
    assert hidden(tmp_path) == []


def leave(path: Path, **changes: object) -> Path:
    """What a writer of this name would have left, some parts of its name changed."""
    mark, process, started = atomic._mark_of(path.name), "999999999", "1"
    parts = {"mark": mark, "process": process, "started": started} | changes
    name = "{mark}{process}-{started}-abcd0123-x.tmp".format(**parts)
    left = path.parent / name
    left.write_bytes(b"half")
    return left


def test_a_number_used_again_is_another_process(tmp_path: Path) -> None:
    path, me = tmp_path / "m", os.getpid()
    dead = leave(path, process=me, started="1")
    living = leave(path, process=me, started=atomic._started(me))
    write(path)
    assert not dead.exists() or atomic._started(me) == ""  # where nobody tells when it was started
    assert living.exists()


def test_other_machines_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    theirs = leave(path)
    monkeypatch.undo()
    ours = leave(path)
    write(path)
    assert theirs.exists()
    assert not ours.exists()


@pytest.mark.parametrize("process", ["x", "", "-1", "9" * 30, "0"])
def test_names_that_nobody_gave(tmp_path: Path, process: str) -> None:
    path = tmp_path / "m"
    strange = leave(path, process=process)
    (tmp_path / f"{atomic._mark_of('m')}short").write_bytes(b"")
    write(path)
    assert strange.exists()


def test_what_cannot_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "m"
    folder = leave(path)
    folder.unlink()
    folder.mkdir()
    write(path)
    assert path.read_bytes() == b"new"
    link = leave(path, started="2")
    link.unlink()
    link.symlink_to(path)
    write(path)
    assert not link.is_symlink()  # the link, never what it points to
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "語" * 85, "a-b-c", "trailing.tmp"])
def test_names_of_any_length(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_write(path) as file:
        (temporary,) = hidden(tmp_path)
        assert len(os.fsencode(temporary)) <= 143  # what some systems allow
        file.write(b"x")
    dead = leave(path)
    write(path)
    assert not dead.exists()
    assert path.read_bytes() == b"new"


def test_two_long_names_that_begin_alike(tmp_path: Path) -> None:
    one, other = tmp_path / ("n" * 200 + "1"), tmp_path / ("n" * 200 + "2")
    left = leave(other)
    write(one)
    assert left.exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir(mode=0o300)
    write(tmp_path / "drop" / "m")
    (tmp_path / "drop").chmod(0o700)
    assert (tmp_path / "drop" / "m").read_bytes() == b"new"


SAVERS = """
import sys
from trellis.files import atomic_write
path, letter = sys.argv[1], sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(200):
    with atomic_write(path) as file:
        for _ in range(20):
            file.write(letter * 1000)
"""


def test_processes_that_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SAVERS, str(path), letter],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for letter in "abc"
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    seen = set()
    while any(process.poll() is None for process in processes):
        if path.exists():
            content = path.read_bytes()
            assert len(content) == 20_000
            assert len(set(content)) == 1  # of one writer
            seen.add(content[:1])
    for process in processes:
        _, error = process.communicate()
        assert (process.returncode, error) == (0, b"")
    assert seen <= {b"a", b"b", b"c"}
    assert hidden(tmp_path) == []
