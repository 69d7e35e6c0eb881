"""The samples that an active learner may ask for, and how to know them again.

A pool is whatever the model makes a learning problem of: a corpus, a list of samples, or a tuple
(samples, labels) if something is known of them. Two pools
are the same if they are one object, or if their *fingerprints* agree: SHA-256 over all that their
samples hold (text, numbers, arrays), independent of the process and the machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from trellis._tuning_log import fingerprint_of_corpora
from trellis.corpus import Corpus, as_corpus
from trellis.corpus.corpus import Sample
from trellis.errors import DataError

__all__ = ["Pool", "fingerprint"]


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


def fingerprint(value: Any) -> str:
    """Hash of samples, as hexadecimal digits: equal for equal content, whatever the process.

    Examples
    --------
    >>> fingerprint([["a"], ["b"]]) == fingerprint((("a",), ("b",)))
    True
    >>> fingerprint([["a", "b"]]) == fingerprint([["a"], ["b"]])
    False
    """
    return _digest(value).hex()


def _digest(value: Any) -> bytes:
    # Each value is hashed by itself behind its kind, so that no two structures run together.
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return _hash(type(value).__name__, [repr(value).encode()])
    if isinstance(value, Sample):
        value = as_corpus([value])
    if isinstance(value, Corpus):
        types = None if value.edge_types is None else value.edge_types.strings()
        parts = [fingerprint_of_corpora(value).encode(), _digest(value.edges), _digest(types)]
        return _hash("corpus", parts)
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return _digest(value.tolist())
        kind = f"array {value.dtype.str} {value.shape}"
        return _hash(kind, [np.ascontiguousarray(value).tobytes()])
    if isinstance(value, Mapping):
        items = [_digest(name) + _digest(item) for name, item in value.items()]
        return _hash("mapping", sorted(items))
    if isinstance(value, AbstractSet):
        return _hash("set", sorted(map(_digest, value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [_digest(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return _hash(type(value).__name__, fields)
    if isinstance(value, Iterable):
        return _hash("list", map(_digest, value))
    raise DataError(
        f"a pool that holds {type(value).__name__} cannot be known again: use text, numbers, "
        "arrays, lists, mappings or dataclasses of these"
    )


def _hash(kind: str, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(kind.encode() + b"\0")
    for part in parts:
        digest.update(part)
    return digest.digest()
