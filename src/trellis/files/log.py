"""Logs: records that are only ever appended, one JSON object a line.

The first line says what the log is. A line counts once its line break is there: what a killed
process left without one is cut off before the next line is written. Threads and processes may write
to one log: each has the file to itself while it does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from trellis.errors import DataError
from trellis.files.atomic import sync_folder
from trellis.files.paths import display_name

try:
    import fcntl
except ImportError:  # Windows: one process a log
    fcntl = None  # type: ignore[assignment]  # a module, or none

__all__ = ["AppendedLog", "line_of", "record_of"]


def line_of(record: dict[str, Any]) -> bytes:
    r"""A record as a line.

    Examples
    --------
    >>> line_of({"key": "a"})
    b'{"key": "a"}\n'
    """
    return json.dumps(record).encode() + b"\n"


def record_of(line: bytes) -> dict[str, Any]:
    """A line's record; an empty one for what is none.

    Examples
    --------
    >>> record_of(b'{"key": "a"}'), record_of(b"[1]"), record_of(b'{"key')
    ({'key': 'a'}, {}, {})
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


class AppendedLog:
    """A log in a file, or, with no path, nowhere. A subclass knows its records.

    Parameters
    ----------
    path : path or None
        Made if it does not exist.
    head : dict
        The first line of a new log.
    """

    def __init__(self, path: str | os.PathLike[Any] | None, head: dict[str, Any]) -> None:
        self._path = None if path is None else Path(os.fsdecode(path))
        if self._path is not None:
            self._open(self._path, line_of(head))

    # ------------------------------------------------------------------ for subclasses

    def _check_head(self, path: Path, head: dict[str, Any]) -> None:
        """Refuse the log of something else; ``head`` is empty if the first line is no record."""
        raise NotImplementedError  # abstract

    def _take(self, record: dict[str, Any]) -> bool:
        """Take in a record that the file holds; False if it is none."""
        raise NotImplementedError  # abstract

    # ------------------------------------------------------------------ the file

    def _open(self, path: Path, head: bytes) -> None:
        read_only = path.exists() and not os.access(path, os.W_OK)
        with _alone(path, "rb" if read_only else "a+b") as file:
            lines = file.read().split(b"\n")
            torn = lines.pop()
            if not lines:
                if not head.startswith(torn):
                    self._check_head(path, {})
                _put(file, head[len(torn) :])
                sync_folder(Path(os.path.realpath(path)).parent)
                return
            self._check_head(path, record_of(lines[0]))
            for number, line in enumerate(lines[1:], 2):
                if not self._take(record_of(line)):
                    raise DataError(
                        f"{display_name(path)}, line {number}: not a record of this log; remove "
                        "the line, and what it stood for will be computed again"
                    )

    def append(self, record: dict[str, Any]) -> None:
        """Write a record; when this returns, it is on the disk."""
        if self._path is None:
            return
        with _alone(self._path) as file:
            _cut_torn_line(file)
            _put(file, line_of(record))


@contextmanager
def _alone(path: Path, mode: str = "a+b") -> Iterator[IO[bytes]]:
    """A file, at its start, that no other thread or process has at the same time."""
    with path.open(mode, buffering=0) as file:
        _lock(file, wanted=True)
        try:
            file.seek(0)
            yield file
        finally:  # closing is not enough: a process forked off in between has the file open, too
            _lock(file, wanted=False)


def _lock(file: IO[bytes], *, wanted: bool) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: one process a log
            fcntl.flock(file, fcntl.LOCK_EX if wanted else fcntl.LOCK_UN)


def _cut_torn_line(file: IO[bytes]) -> None:
    """Remove what a killed process left behind the last line break."""
    size = end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 4096)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    if end < size:
        file.truncate(end)


def _put(file: IO[bytes], data: bytes) -> None:
    """Append to the file; when this returns, it is on the disk."""
    end = file.seek(0, os.SEEK_END)
    try:
        left = memoryview(data)
        while left:  # a nearly full disk takes a part
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(end)  # a later record must not follow half a one
        raise
