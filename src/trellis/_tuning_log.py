"""The log of a search for parameters: finished fits, one JSON object a line, only ever appended.

    {"trellis": "tuning log", "format": 1, "data": fingerprint}          the first line
    {"key": …, "params": {…}, "fold": k, "score": s, "seconds": t}       one finished fit each

The *key* is a fingerprint of everything besides the data that decides the score of a fit;
``params`` and ``fold`` are there for people. A line counts once its line break is there: what a
killed process left without one is cut off before the next line is written.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.files import display_name

__all__ = ["TuningLog", "fingerprint", "fingerprint_of_corpora", "plain"]

_MARK, _FORMAT = "tuning log", 1


def plain(value: Any) -> Any:
    """Write a parameter in JSON's terms, the same for equal values: 1, 1.0 and NumPy's 1 are one.

    Examples
    --------
    >>> plain({"l2": np.float64(1), "features": ("word", "pos")})
    {'l2': 1, 'features': ['word', 'pos']}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    return repr(value)


def fingerprint(value: Any) -> str:
    """Hash of anything that :func:`plain` can write, as hexadecimal digits.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": 2.0}) == fingerprint({"b": 2, "a": 1.0})
    True
    """
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()


def fingerprint_of_corpora(*corpora: Corpus | None) -> str:
    """Hash of what corpora say, however they came about (file, lists, a part of a larger one)."""
    digest = hashlib.sha256()

    def add(codes: NDArray[Any], values: Sequence[Any]) -> None:
        # Numbered by first occurrence, codes no longer depend on the table they point into.
        used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        add_text([values[code] for code in used[order]])
        digest.update(rank[inverse].tobytes())

    def add_text(value: Any) -> None:
        text = json.dumps(value).encode()
        digest.update(len(text).to_bytes(8) + text)

    for corpus in corpora:
        if corpus is None:
            add_text(None)
            continue
        add_text(sorted(corpus.columns))
        digest.update(corpus.offsets.tobytes())
        for _, column in sorted(corpus.columns.items()):
            add(column.codes, column.values)
        if corpus.features is not None:
            add_text("features")
            digest.update(corpus.features.indptr.astype(np.int64).tobytes())
            add(corpus.features.indices, corpus.features.names)
            values = corpus.features.values
            if values is not None and (values != 1).any():
                digest.update(values.tobytes())
        if corpus.labels is not None:
            names = np.array(corpus.labels.classes, object)
            full = len(names)
            sets = [names[row].tolist() for row in corpus.labels.table]
            add(corpus.labels.ids, [None if i == full else set_ for i, set_ in enumerate(sets)])
    return digest.hexdigest()


class TuningLog:
    """Finished fits in a file; with no path, in memory only.

    Parameters
    ----------
    path : path or None
    data : str
        Fingerprint of the data; a log of other data is refused.

    Attributes
    ----------
    done : dict of str to (float, float)
        Score and seconds of each finished fit, by key.
    """

    def __init__(self, path: str | os.PathLike[Any] | None, data: str) -> None:
        self.done: dict[str, tuple[float, float]] = {}
        self._path = None if path is None else Path(os.fsdecode(path))
        if self._path is not None:
            self._open(self._path, data)

    def _open(self, path: Path, data: str) -> None:
        head = _line({"trellis": _MARK, "format": _FORMAT, "data": data})
        content = path.read_bytes() if path.exists() else b""
        lines = content.split(b"\n")
        torn = lines.pop()
        if not lines:
            if not head.startswith(torn):
                raise _not_a_log(path)
            self._append(head[len(torn) :])
            return
        self._check_head(path, lines[0], data)
        for number, line in enumerate(lines[1:], 2):
            record = _parsed(line)
            key: Any = record.get("key")
            score: Any = record.get("score")
            seconds: Any = record.get("seconds")
            if not (isinstance(key, str) and _is_finite(score) and _is_finite(seconds)):
                raise DataError(
                    f"{display_name(path)}, line {number}: not the record of a fit; remove the "
                    "line, and what it stood for will be computed again"
                )
            self.done[key] = (float(score), float(seconds))
        if torn:
            os.truncate(path, len(content) - len(torn))

    def _check_head(self, path: Path, line: bytes, data: str) -> None:
        head = _parsed(line)
        if head.get("trellis") != _MARK:
            raise _not_a_log(path)
        if head.get("format") != _FORMAT:
            raise DataError(
                f"{display_name(path)} is a tuning log of format {head.get('format')!r}; this "
                f"version of Trellis reads and writes {_FORMAT}; name a new file"
            )
        if head.get("data") != data:
            raise DataError(
                f"{display_name(path)} is the log of other data: its sequences or labels differ "
                "from those given now; name a new file"
            )

    def add(
        self, key: str, params: dict[str, Any], fold: int | None, score: float, seconds: float
    ) -> None:
        """Keep a finished fit; when this returns, it is on the disk."""
        self.done[key] = (score, seconds)
        record = {"key": key, "params": plain(params), "fold": fold}
        self._append(_line(record | {"score": score, "seconds": seconds}))

    def _append(self, data: bytes) -> None:
        if self._path is None:
            return
        with self._path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _parsed(line: bytes) -> dict[str, Any]:
    """A line's object; an empty one for what is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _not_a_log(path: Path) -> DataError:
    return DataError(f"{display_name(path)} is not a tuning log; name a new file")
