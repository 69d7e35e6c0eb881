"""The log of a search for parameters: finished fits, one JSON object a line, only ever appended.

    {"trellis": "tuning log", "format": 1, "data": fingerprint}          the first line
    {"key": …, "params": {…}, "fold": k, "score": s, "seconds": t}       one finished fit each

The *key* is a fingerprint of everything besides the data that decides the score of a fit;
``params`` and ``fold`` are there for people.
"""

from __future__ import annotations

import numbers
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trellis.errors import DataError
from trellis.files.log import AppendedLog
from trellis.files.paths import display_name

__all__ = ["TuningLog", "plain"]

_MARK, _FORMAT = "tuning log", 1
_GREATEST = sys.float_info.max


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


class TuningLog(AppendedLog):
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
        self._data = data
        super().__init__(path, {"trellis": _MARK, "format": _FORMAT, "data": data})

    def _check_head(self, path: Path, head: dict[str, Any]) -> None:
        if head.get("trellis") != _MARK:
            raise DataError(f"{display_name(path)} is not a tuning log; name a new file")
        if head.get("format") != _FORMAT:
            raise DataError(
                f"{display_name(path)} is a tuning log of format {head.get('format')!r}; this "
                f"version of Trellis reads and writes {_FORMAT}; name a new file"
            )
        if head.get("data") != self._data:
            raise DataError(
                f"{display_name(path)} is the log of other data: its sequences or labels differ "
                "from those given now; name a new file"
            )

    def _take(self, record: dict[str, Any]) -> bool:
        key, score, seconds = (record.get(name) for name in ("key", "score", "seconds"))
        if not (isinstance(key, str) and _is_finite(score) and _is_finite(seconds)):
            return False
        self.done[key] = (float(score), float(seconds))  # type: ignore[arg-type]  # finite numbers
        return True

    def add(
        self, key: str, params: dict[str, Any], fold: int | None, score: float, seconds: float
    ) -> None:
        """Keep a finished fit; when this returns, it is on the disk."""
        self.done[key] = (score, seconds)
        record = {"key": key, "params": plain(params), "fold": fold}
        self.append(record | {"score": score, "seconds": seconds})


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -_GREATEST <= value <= _GREATEST  # false for NaN, and an int may be of any size
