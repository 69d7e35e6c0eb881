"""The log of a reproduction: everything that was computed, one JSON object a line, only appended.

    {"trellis": "reproduction log", "format": 1}                          the first line
    {"key": …, "kind": "run" | "data" | "fit" | "companion", …}           one record each

Of two records with one key the later counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import display_name
from trellis.files.log import AppendedLog

__all__ = ["Log"]

_HEAD = {"trellis": "reproduction log", "format": 1}


class Log(AppendedLog):
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
        super().__init__(path, _HEAD)

    def _check_head(self, path: Path, head: dict[str, Any]) -> None:
        if head != _HEAD:
            raise DataError(
                f"{display_name(path)} is not a reproduction log of this version; name another "
                "folder"
            )

    def _take(self, record: dict[str, Any]) -> bool:
        if not isinstance(record.get("key"), str):
            return False
        self.records[record["key"]] = record
        return True

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns, it is on the disk."""
        self.records[record["key"]] = record
        self.append(record)
