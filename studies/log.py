"""The log of a reproduction: everything that was computed, one JSON object a line, only appended.

    {"trellis": "reproduction log", "format": 1}                          the first line
    {"key": …, "kind": "run" | "data" | "fit" | "companion", …}           one record each

Of two records with one key the later counts. A line counts once its line break is there: what a
killed process left without one is cut off before the next line is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import display_name
from trellis.files.log import line_of as _line
from trellis.files.log import record_of as _parsed

__all__ = ["Log"]

_HEAD = {"trellis": "reproduction log", "format": 1}


class Log:
    """Records by key, kept in a file.

    Parameters
    ----------
    path : Path
        Made if it does not exist.

    Attributes
    ----------
    records : dict of str to dict
        What is known, by key.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> Log(path).add({"key": "a", "score": 0.5})
    >>> Log(path).records["a"]["score"]
    0.5
    """

    def __init__(self, path: Path) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        lines = content.split(b"\n")
        torn = lines.pop()
        head = _line(_HEAD)
        if not lines:
            if not head.startswith(torn):
                raise self._not_a_log()
            self._append(head[len(torn) :])
            return
        if _parsed(lines[0]) != _HEAD:
            raise self._not_a_log()
        for number, line in enumerate(lines[1:], 2):
            record = _parsed(line)
            if not isinstance(record.get("key"), str):
                raise DataError(
                    f"{display_name(path)}, line {number}: not a record; remove the line, and what "
                    "it stood for will be computed again"
                )
            self.records[record["key"]] = record
        if torn:
            os.truncate(path, len(content) - len(torn))

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns, it is on the disk."""
        self.records[record["key"]] = record
        self._append(_line(record))

    def _append(self, data: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _not_a_log(self) -> DataError:
        return DataError(
            f"{display_name(self._path)} is not a reproduction log of this version; name another "
            "folder"
        )
