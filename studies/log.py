"""The log of a reproduction: everything that was computed, one JSON object a line, only appended.

    {"trellis": "reproduction log", "format": 1}                          the first line
    {"key": …, "kind": "run" | "data" | "fit" | "companion", …}           one record each

Of two records with one key the later counts. What else a record holds is the business of the
computation that made it: :meth:`Log.reading` is there for whoever takes it out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Context: where records are not as they were written, that is what the error says.

        Raises
        ------
        DataError
            For whatever fails inside, but for files that cannot be written and missing packages.
        """
        try:
            yield
        except (DataError, ImportError, OSError):
            raise
        except Exception as error:
            assert self._path is not None
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise DataError(
                f"{display_name(self._path)} holds records that do not fit together ({reason}); "
                "remove the lines that were changed, and what they stood for will be computed again"
            ) from error

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns, it is on the disk."""
        self.records[record["key"]] = record
        self.append(record)
