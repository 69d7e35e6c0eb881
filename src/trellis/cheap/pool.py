"""The samples that an active learner may ask for, and how to know them again.

A pool is whatever the model makes a learning problem of: a corpus, a list of samples, or a tuple
(samples, labels) if something is known of them. Two pools are the same if they are one object, or
if their fingerprints agree (:mod:`trellis.files.fingerprint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trellis.corpus.tables import is_table
from trellis.errors import DataError
from trellis.files import fingerprint

__all__ = ["Pool"]


class Pool:
    """Samples by number.

    Parameters
    ----------
    data : Corpus, sequence, or tuple (X, y) of sequences
        The samples.

    Examples
    --------
    >>> pool = Pool([["the", "cat"], ["a", "dog"]])
    >>> len(pool), pool[1], pool.is_same([["the", "cat"], ["a", "dog"]]), pool.is_same([["the"]])
    (2, ['a', 'dog'], True, False)
    """

    def __init__(self, data: Any) -> None:
        if isinstance(data, str | Mapping) or not hasattr(data, "__len__"):
            raise DataError(f"a pool is a corpus or a list of samples, got {type(data).__name__}")
        if is_table(data):
            raise DataError(
                "a pool is a corpus or a list of samples; trellis.corpus.as_corpus(table, "
                "group=...) makes one of a table"
            )
        self.data = data
        self._samples = data[0] if _is_labelled(data) else data
        self._length = len(self._samples)
        if self._length == 0:
            raise DataError("the pool is empty; give at least one sample to choose from")
        self._fingerprint: str | None = None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, i: int) -> Any:
        return self._samples[i]

    @property
    def fingerprint(self) -> str:
        """Hash of all samples."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.data)
        return self._fingerprint

    def is_same(self, data: Any) -> bool:
        """Whether other data are these samples."""
        if data is self.data:
            return len(self._samples) == self._length
        return hasattr(data, "__len__") and fingerprint(data) == self.fingerprint


def _is_labelled(data: Any) -> bool:
    """Whether data are (X, y), as models take them."""
    return (
        isinstance(data, tuple)
        and len(data) == 2
        and all(hasattr(part, "__len__") for part in data)
        and len(data[0]) == len(data[1])
    )
