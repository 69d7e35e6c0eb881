"""Checkpoints: where a run is, in a file, so that it can be taken up after any end.

A checkpoint is a container (:mod:`trellis.files.container`) with the seed of the run, its
*fingerprint*, which says to which data and parameters it belongs, and whatever header and arrays
the run needs to go on; whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.files.container import loading, read_container, write_container
from trellis.files.stored import header_value

__all__ = ["CheckpointFile", "Stored"]

_MARK = "checkpoint"


@dataclass(frozen=True)
class Stored:
    """What a checkpoint file holds."""

    seed: int
    run: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class CheckpointFile:
    """The checkpoint file of one run.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    run : str
        Fingerprint of the run.
    seed : int
        Its seed, of any size.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = CheckpointFile(Path(tempfile.mkdtemp()) / "run")
    >>> file.run, file.seed = "abc", 7
    >>> file.write({"pass": 3}, {"weights": np.zeros(2)})
    >>> file.read().header["pass"]
    3
    """

    def __init__(self, path: str | os.PathLike[Any]) -> None:
        self.path = Path(path)
        self.run = ""
        self.seed = 0

    def read(self) -> Stored | None:
        """What the file holds; None if there is no file."""
        if not self.path.exists():
            return None
        header, arrays = read_container(self.path)
        with loading(self.path):
            if header_value(header, "estimator", str) != _MARK:
                raise DataError("this is a model, not a checkpoint")
            seed = int(header_value(header, "seed", str))
            if seed < 0:
                raise DataError("the seed is negative")
            return Stored(seed, header_value(header, "run", str), header, arrays)

    def write(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the file."""
        mark = {"estimator": _MARK, "seed": str(self.seed), "run": self.run}
        write_container(self.path, {**header, **mark}, arrays)

    def remove(self) -> None:
        """Remove the file: the run is over."""
        self.path.unlink(missing_ok=True)
