"""What is acknowledged survives a power cut: the order of write, sync, rename and sync of folders.

First as the kernel sees it (see :mod:`recorded_writes`), for everything that Trellis writes; then,
where there is no strace, as Python calls it, for the one function that all files but logs go
through.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from recorded_writes import Event, recorded, why_not

from trellis.files import atomic_write
from trellis.files.atomic import sync_folder

PROGRAM = """
from pathlib import Path
import numpy as np
from studies.log import Log
from trellis import ChainCRF
from trellis.cheap.annotation_log import AnnotationLog
from trellis.corpus import as_corpus
from trellis.features import prepare
from trellis.files.checkpoint import CheckpointFile
from trellis.files.tuning_log import TuningLog

def mark(text):
    os.write(marks, text.encode())

here = Path.cwd()
crf = ChainCRF("word", random_state=0, max_passes=2).fit([["a", "b"]], [["X", "Y"]])
mark("nothing")
crf.save(here / "model")
mark("a new model")
crf.save(here / "model")
mark("a model in place of an older one")
os.symlink(here / "elsewhere" / "model", here / "link")
crf.save(here / "link")
mark("a model through a link")
CheckpointFile(here / "checkpoint").write({"pass": 3}, {"weights": np.zeros(2000)})
mark("a checkpoint")
prepare(as_corpus([["a", "b"]], [["X", "Y"]]), here / "prepared", "word")
mark("a prepared corpus")
log = TuningLog(here / "tuning.jsonl", "data")
mark("a new tuning log")
log.add("key", {"l2": 1.0}, 0, 0.5, 0.1)
mark("a fit in a tuning log")
study = Log(here / "study.jsonl")
mark("a new study log")
study.add({"key": "a", "score": 0.5})
mark("a record in a study log")
answers = AnnotationLog(here / "answers")
mark("a new annotation log")
answers.add(0, ["A"])
mark("an answer")
answers.add(1, ["B"])
mark("another answer")
"""
FILES = {
    "a new model": "model",
    "a model in place of an older one": "model",
    "a model through a link": "elsewhere/model",
    "a checkpoint": "checkpoint",
    "a prepared corpus": "prepared",
}
ADDED = {
    "a new tuning log": "tuning.jsonl",
    "a fit in a tuning log": "tuning.jsonl",
    "a new study log": "study.jsonl",
    "a record in a study log": "study.jsonl",
}
ANSWERS = ["a new annotation log", "an answer", "another answer"]


@pytest.fixture(scope="module")
def events(tmp_path_factory) -> tuple[Path, dict[str, list[Event]]]:
    """A folder, and what happened to files in it before each mark of the program."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("record").resolve()
    (folder / "elsewhere").mkdir()
    return folder, recorded(PROGRAM, folder)


def lost(events: list[Event]) -> set[str]:
    """What a power cut after these events may undo: files, and names in folders (as FOLDER/)."""
    open_ends: set[str] = set()
    for event in events:
        folder = f"{Path(event.target if event.what == 'rename' else event.path).parent}/"
        if event.what in ("write", "truncate"):
            open_ends.add(event.path)
        elif event.what in ("rename", "remove"):
            open_ends.add(folder)
            if event.path in open_ends:  # what is not on the disk goes by its new name
                open_ends.remove(event.path)
                open_ends |= {event.target} if event.what == "rename" else set()
        elif event.what == "sync":
            open_ends -= {event.path, f"{event.path}/"}
    return open_ends


def test_the_record_is_one(events) -> None:
    """The recorder sees what it should, so that the tests below can fail."""
    folder, parts = events
    assert list(parts) == ["nothing", *FILES, *ADDED, *ANSWERS]
    assert parts["nothing"] == []
    for mark, name in (FILES | ADDED).items():
        touched = [e for e in parts[mark] if str(folder / name) in (e.path, e.target)]
        assert touched, mark
    careless = [Event("open", "/f/a"), Event("write", "/f/a"), Event("rename", "/f/a", "/f/b")]
    assert lost(careless) == {"/f/", "/f/b"}
    assert lost([*careless, Event("sync", "/f/b"), Event("sync", "/f")]) == set()
    assert lost([Event("sync", "/f/a"), Event("write", "/f/a")]) == {"/f/a"}
    assert lost([Event("remove", "/f/a")]) == {"/f/"}


def test_what_is_acknowledged_is_on_the_disk(events) -> None:
    _, parts = events
    for mark, part in parts.items():
        assert lost(part) == set(), mark


@pytest.mark.parametrize("mark", FILES)
def test_a_file_takes_its_place_when_it_is_on_the_disk(events, mark: str) -> None:
    folder, parts = events
    target, part = str(folder / FILES[mark]), parts[mark]
    renamed = [e for e in part if e.what == "rename" and e.target == target]
    assert len(renamed) == 1
    place = part.index(renamed[0])
    assert renamed[0].path not in lost(part[:place])  # whole before it is seen
    assert [e for e in part[:place] if e.path == renamed[0].path and e.what == "write"]
    assert part[place + 1 :] == [Event("sync", str(Path(target).parent))]
    assert not [e for e in part if e.path == target]  # never changed in its place


@pytest.mark.parametrize("mark", ADDED)
def test_a_log_is_only_added_to(events, mark: str) -> None:
    folder, parts = events
    path = str(folder / ADDED[mark])
    kinds = [e.what for e in parts[mark] if e.path == path]
    assert kinds == ["open", "write", "sync"]
    if "new" in mark:  # its name is on the disk, too
        assert parts[mark][-1] == Event("sync", str(folder))


@pytest.mark.parametrize("mark", ANSWERS)
def test_answers_are_changed_only_under_a_journal_on_the_disk(events, mark: str) -> None:
    folder, parts = events
    database, journal = str(folder / "answers"), str(folder / "answers-journal")
    part = parts[mark]
    writes = [i for i, e in enumerate(part) if e == Event("write", database, e.target)]
    assert writes
    for i in writes:
        assert journal not in lost(part[:i]), "pages are overwritten before they are kept"
    written = [i for i, e in enumerate(part) if e.what == "write" and e.path == journal]
    assert written
    assert written[0] < writes[0]
    # The journal is ended, by whatever means, only when the pages are on the disk.
    ended = [i for i, e in enumerate(part) if e.path == journal and e.what != "sync"][-1]
    assert ended > writes[-1]
    assert database not in lost(part[:ended])
    opened = [i for i, e in enumerate(part) if e == Event("open", journal)]
    if opened:  # the name of a new journal is on the disk before it is needed
        assert Event("sync", str(folder)) in part[opened[0] : writes[0]]


# ------------------------------------------------------------------------------- without strace


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What Python was asked to do, in order."""
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        done.append(("sync", path))
        fsync(descriptor)

    def recorded_replace(self: Path, target: Path) -> Path:
        done.append(("rename", f"{self.read_bytes()!r} {target}"))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    return done


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors without names")
def test_order_of_calls(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    with atomic_write(tmp_path / "out") as file:
        file.write(b"new")
        temporary = file.name
    target = tmp_path / "out"
    assert calls == [
        ("sync", str(temporary)), ("rename", f"{b'new'!r} {target}"), ("sync", str(tmp_path)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_folders_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)  # some file systems cannot
    monkeypatch.setattr(os, "open", refuse)
    sync_folder(tmp_path)  # it may be written to, but not read
