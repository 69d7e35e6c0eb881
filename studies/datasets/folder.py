"""Where real data are.

The files are not part of the repository. They are looked for in the folder ``$TRELLIS_DATA``
(default ``../shared/data``), one sub-folder for each data set.
"""

from __future__ import annotations

import os
from pathlib import Path

from trellis.errors import DataError

__all__ = ["data_folder", "is_there"]


def data_folder(name: str) -> Path:
    """Folder of a data set; raises if it is absent.

    Examples
    --------
    >>> data_folder("no such data")
    Traceback (most recent call last):
    trellis.errors.DataError: no data set 'no such data' in ...; set TRELLIS_DATA to the folder...
    """
    root = Path(os.environ.get("TRELLIS_DATA", "../shared/data"))
    folder = root / name
    if not folder.is_dir():
        raise DataError(f"no data set {name!r} in {root}; set TRELLIS_DATA to the folder of data")
    return folder


def is_there(name: str) -> bool:
    """Whether there is a folder of a data set.

    Examples
    --------
    >>> is_there("no such data")
    False
    """
    try:
        data_folder(name)
    except DataError:
        return False
    return True
