"""What annotators said, kept on the disk: an append-only table in SQLite.

    annotations   number | sample | key | annotation (JSON) | nodes (JSON or null) | replaces
    metadata      name | value: the pool's fingerprint, the strategy, the seed

Rows are numbered from 1 in the order in which they came and are never changed: a correction is a
new row, with ``replaces`` set if it takes the place of all that was said of its sample before. Each
row is a transaction of its own that is on the disk (``synchronous=EXTRA``) before
:meth:`AnnotationLog.add` returns; what a killed process left half written is undone by SQLite when
the file is opened again. One log has one writer: the process that opened it, with any number of
threads; the file is locked as long as it is open. A process that was forked off cannot use it: two
copies of SQLite's state, each sure of its lock, would overwrite each other's pages.

In JSON, what has no form of its own there is an object with one name:
``{"set": [...]}`` for a set of labels, ``{"pair": {...}}`` for a
:class:`~trellis.tracking.PairAnnotation` and ``{"dict": [[name, value], ...]}`` for a mapping with
strings or integers as names.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from trellis.domains import flag, nothing, number, sequence_of, takes, text, whole
from trellis.errors import DataError
from trellis.files import display_name
from trellis.tracking.objects import PairAnnotation

__all__ = ["AnnotationLog", "Entry", "from_json", "to_json"]

_APPLICATION = 0x54524C41  # "TRLA", marks the file as an annotation log
_FORMAT = 1
_SCHEMA = (
    "CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE annotations (number INTEGER PRIMARY KEY AUTOINCREMENT, sample INTEGER NOT NULL, "
    "key TEXT NOT NULL, annotation TEXT NOT NULL, nodes TEXT, replaces INTEGER NOT NULL)",
    "CREATE TRIGGER annotations_stay BEFORE UPDATE ON annotations "
    "BEGIN SELECT RAISE(ABORT, 'annotations are never changed'); END",
    "CREATE TRIGGER annotations_remain BEFORE DELETE ON annotations "
    "BEGIN SELECT RAISE(ABORT, 'annotations are never removed'); END",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
)

# Annotations may come from the threads of a window or a web server: one at a time. A fork waits for
# the one that is being written, or the new process would find SQLite locked for ever. A signal
# handler that adds one in the middle of another is refused, and does not wait.
_SQLITE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_SQLITE.acquire,
        after_in_parent=_SQLITE.release,
        after_in_child=_SQLITE.release,
    )


@dataclass(frozen=True)
class Entry:
    """One thing an annotator said.

    Parameters
    ----------
    number : int
        1 for the first.
    sample : int
        Index of the sample in the pool.
    annotation : object
        What was said, as :meth:`~trellis.problems.problem.Problem.annotate`
        takes it.
    nodes : tuple of int, or None
        The nodes that were asked for; None: the whole sample.
    replaces : bool
        Whether it takes the place of all that was said of the sample before.
    key : str
        Fingerprint of the sample.
    """

    number: int
    sample: int
    annotation: Any
    nodes: tuple[int, ...] | None = None
    replaces: bool = False
    key: str = ""


class AnnotationLog:
    """Annotations in a file, each on the disk before :meth:`add` returns.

    Parameters
    ----------
    path : path
        A new file, or a log that was begun earlier; nothing else is ever written to. Threads may
        share a log; a process that is forked off may not, and opens one of its own.
    timeout : float
        Seconds to wait for a log that another process has open.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "annotations.sqlite"
    >>> with AnnotationLog(path) as log:
    ...     log.begin(pool="1f3c", strategy="random", seed=0)
    ...     log.add(7, ["D", "N", None])
    1
    >>> with AnnotationLog(path) as log:
    ...     [(entry.number, entry.sample, entry.annotation) for entry in log.entries()]
    [(1, 7, ['D', 'N', None])]
    """

    @takes(timeout=number(at_least=0))
    def __init__(self, path: str | os.PathLike[Any], *, timeout: float = 2.0) -> None:
        self.path = Path(os.fsdecode(path))
        self._name = display_name(path)
        if not self.path.parent.is_dir():
            raise DataError(f"cannot open the annotation log {self._name}: create its folder first")
        self._process = os.getpid()
        with _SQLITE:
            self._connect(timeout)

    def _connect(self, timeout: float) -> None:
        try:
            self._file = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._failure(error) from error
        self._close = weakref.finalize(self, _close, self._file, self._process)
        try:
            self._open()
        except BaseException as error:
            self._close()
            if isinstance(error, sqlite3.Error):
                raise self._failure(error) from error
            if isinstance(error, UnicodeDecodeError):  # in SQLite's own message
                raise self._damaged(error) from error
            raise

    def _open(self) -> None:
        execute = self._file.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA synchronous = EXTRA")
        execute("BEGIN EXCLUSIVE")
        n_tables = execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        (application,) = execute("PRAGMA application_id").fetchone()
        (version,) = execute("PRAGMA user_version").fetchone()
        if n_tables == 0 and application == 0 and version == 0:
            for statement in _SCHEMA:
                execute(statement)
            execute("COMMIT")
            return
        if application != _APPLICATION:
            raise DataError(f"{self._name} is a database, but no annotation log; name a new file")
        if version != _FORMAT:
            raise DataError(
                f"{self._name} is an annotation log of format {version}; this version of Trellis "
                f"reads and writes {_FORMAT}: use the version that wrote it, or name a new file"
            )
        problems = execute("PRAGMA quick_check(1)").fetchone()[0]
        if problems != "ok":
            raise self._damaged(problems)
        execute(f"PRAGMA user_version = {_FORMAT}")  # a write shows now whether one is possible
        execute("COMMIT")

    def _damaged(self, reason: object) -> DataError:
        line = " ".join(str(reason).split())
        return DataError(
            f"the annotation log {self._name} is damaged ({line}); it was left as it is: keep a "
            "copy, and try `sqlite3 FILE .recover` on another"
        )

    def _failure(self, error: sqlite3.Error) -> DataError:
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DataError(
                f"the annotation log {self._name} is in use by another process or learner; close "
                "it there first"
            )
        if primary == sqlite3.SQLITE_NOTADB:
            return DataError(f"{self._name} is no annotation log; name a new file")
        if primary == sqlite3.SQLITE_CORRUPT:
            return self._damaged(error)
        if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return DataError(
                f"cannot write the annotation log {self._name} ({error}): the file and its folder "
                "must be writable"
            )
        return DataError(f"the annotation log {self._name} failed: {error}")

    # ---------------------------------------------------------------- reading and writing

    @property
    def metadata(self) -> dict[str, Any]:
        """What :meth:`begin` wrote; empty before."""
        rows = self._read("SELECT name, value FROM metadata ORDER BY name")
        return {name: self._parsed(value, f"metadata {name!r}") for name, value in rows}

    @takes(pool=text, strategy=text, seed=nothing | whole())
    def begin(self, *, pool: str, strategy: str, seed: int | None) -> None:
        """Write whose log this is, or check it if it was begun earlier.

        Parameters
        ----------
        pool : str
            Fingerprint of the pool; a log of another one is refused.
        strategy : str
            How samples are chosen.
        seed : int or None
            Seed of the choices.
        """
        known = self.metadata
        if known:
            if known.get("pool") != pool:
                raise DataError(
                    f"the annotation log {self._name} belongs to another pool: its samples differ "
                    "from those given now; give the same pool, or name a new file"
                )
            return
        rows = {"pool": pool, "strategy": strategy, "seed": None if seed is None else int(seed)}
        values = [(name, json.dumps(value)) for name, value in rows.items()]
        self._write("INSERT INTO metadata VALUES (?, ?)", values)

    @takes(
        sample=whole(), key=text, nodes=nothing | sequence_of(whole(), "a list of integers"),
        replaces=flag,
    )  # fmt: skip
    def add(
        self,
        sample: int,
        annotation: Any,
        *,
        key: str = "",
        nodes: tuple[int, ...] | None = None,
        replaces: bool = False,
    ) -> int:
        """Write an annotation and return its number; when this returns, it is on the disk.

        Parameters
        ----------
        sample : int
            Index of the sample in the pool.
        annotation : object
            Numbers, strings, lists, sets, mappings of these, or a PairAnnotation.
        key, nodes, replaces
            See :class:`Entry`.
        """
        parts = None if nodes is None else json.dumps([int(node) for node in nodes])
        statement = (
            "INSERT INTO annotations (sample, key, annotation, nodes, replaces) "
            "VALUES (?, ?, ?, ?, ?)"
        )
        try:
            row = (int(sample), key, to_json(annotation), parts, int(replaces))
            return self._write(statement, [row])
        except (OverflowError, RecursionError, UnicodeEncodeError) as error:
            raise DataError(
                f"this cannot be written to the annotation log {self._name}: {error}"
            ) from error

    def entries(self) -> list[Entry]:
        """Return all that was said, in order."""
        rows = self._read(
            "SELECT number, sample, key, annotation, nodes, replaces FROM annotations "
            "ORDER BY number"
        )
        entries = []
        for row, sample, key, content, parts, replaces in rows:
            place = f"row {row}"
            nodes = None if parts is None else tuple(self._parsed(parts, place))
            annotation = self._parsed(content, place)
            entries.append(Entry(row, sample, annotation, nodes, bool(replaces), key))
        return entries

    def _parsed(self, text: str, place: str) -> Any:
        try:
            return from_json(text)
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise self._damaged(f"{place}: {error}") from error

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """The file, for one thread of the process that opened it."""
        # Before the lock, which may have been held by a thread that a fork did not copy.
        if os.getpid() != self._process:
            raise DataError(
                f"the annotation log {self._name} was opened by process {self._process} and "
                f"cannot be used in process {os.getpid()}, which was forked off; open logs after "
                "the fork, each in one process"
            )
        with _SQLITE:
            try:
                yield self._file
            except sqlite3.Error as error:
                raise self._failure(error) from error

    def _read(self, query: str) -> list[Any]:
        with self._alone() as file:
            return file.execute(query).fetchall()

    def _write(self, statement: str, rows: list[Any]) -> int:
        with self._alone() as file:
            if (
                file.in_transaction
            ):  # a signal handler's: the answer it interrupts is not written yet
                raise DataError(f"the annotation log {self._name} is in the middle of an answer")
            try:
                file.execute("BEGIN IMMEDIATE")
                for row in rows:
                    number = file.execute(statement, row).lastrowid
                file.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back already
                    file.execute("ROLLBACK")
                raise
        return int(number or 0)

    def close(self) -> None:
        """Close the file, so that others may open it."""
        with self._alone():
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() == self._process:  # a process that was forked off has nothing to close
            self.close()


def _close(file: sqlite3.Connection, process: int) -> None:
    """Close the file of a log, or, in a process that was forked off, never do so.

    There, closing would remove the journal of the process that opened the log, and with it what a
    crash is undone from: so the connection must outlive the interpreter.
    """
    if os.getpid() == process:
        with _SQLITE:
            file.close()
    else:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(file))


# ---------------------------------------------------------------------- JSON


def to_json(annotation: Any) -> str:
    """Write an annotation as JSON (see the module); undone by :func:`from_json`.

    Examples
    --------
    >>> to_json(["D", {"V", "N"}, None])
    '["D", {"set": ["N", "V"]}, null]'
    >>> from_json(to_json(PairAnnotation(((0, 1, "move"),), (), ())))
    PairAnnotation(links=((0, 1, 'move'),), known_sources=(), known_targets=(), gaps=())
    """
    return json.dumps(_plain(annotation), ensure_ascii=False)


def from_json(text: str) -> Any:
    """Read an annotation; tuples and arrays come back as lists, sets as frozen sets."""
    return _revived(json.loads(text))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, PairAnnotation):
        return {"pair": value.as_dict()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, AbstractSet):
        return {"set": sorted(map(_plain, value), key=json.dumps)}
    if isinstance(value, Mapping) and all(isinstance(n, str | int | np.integer) for n in value):
        return {"dict": [[_plain(name), _plain(item)] for name, item in value.items()]}
    raise DataError(
        f"an annotation holds {value!r}, which cannot be written to a log; use numbers, strings, "
        "lists, sets, mappings with strings or integers as names, or PairAnnotation"
    )


def _revived(value: Any) -> Any:
    if isinstance(value, list):
        return [_revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "set":
        return frozenset(map(_revived, content))
    if kind == "pair":
        return PairAnnotation.from_dict(content)
    return {name: _revived(item) for name, item in content}
