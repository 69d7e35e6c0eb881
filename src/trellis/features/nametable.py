"""Distinct names and their numbers 0, 1, 2, … in order: a bijection, held in one of two forms.

While names are learned they are Python strings in a dict. Read from a file they stay *packed*, all
in one array of bytes (UTF-8), name i at offsets[i] .. offsets[i + 1], beside a sorted array of
hashes: a third of the memory, and ready at once. A packed name is found by its hash and confirmed
byte by byte; names that share a hash are in a dict of their own. A dict of all is made of packed
names when some are to be added, or as many have been looked up as there are: by then it has paid.
Of few names it is made at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import bounds, ranges
from trellis.errors import DataError
from trellis.files.stored import pack_strings

__all__ = ["NameTable", "PackedNames"]

_CHUNK = 1 << 16
_FEW = 1 << 17
"""Of so many names a dict takes some megabytes, and as long to make as a few predictions."""
_WORD = 8  # bytes that are mixed into a hash at once
_HASHED = 128  # bytes of a name that its hash depends on, with its length
_FIRST_BYTES = np.array([(1 << 8 * k) - 1 for k in range(_WORD + 1)], np.uint64)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class NameTable:
    """Names and their numbers; names can be added.

    Parameters
    ----------
    names : iterable of str, or PackedNames
        Names that differ.

    Raises
    ------
    DataError
        If a name stands twice.

    Examples
    --------
    >>> table = NameTable(["b", "a"])
    >>> table.extend(["c"])
    >>> table.find(["c", "d", "b"]), table[[1]]
    (array([ 2, -1,  0], dtype=int32), ['a'])
    """

    def __init__(self, names: Iterable[str] | PackedNames = ()) -> None:
        self._packed: PackedNames | None = None
        self._listed: list[str] = []
        self._numbers: dict[str, int] = {}
        self._asked = 0
        if isinstance(names, PackedNames):
            self._packed = names
        else:
            self.extend(list(names))

    def __len__(self) -> int:
        return len(self._numbers) if self._packed is None else len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers) if self._packed is None else iter(self._packed)

    def __getitem__(self, numbers: Sequence[int] | NDArray[Any]) -> list[str]:
        """Names of some numbers."""
        if self._packed is not None:
            return self._packed[numbers]
        listed = self._listed
        return [listed[i] for i in numbers]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = type(self)()
        new._packed, new._asked = self._packed, self._asked  # what is packed never changes
        new._listed, new._numbers = self._listed.copy(), self._numbers.copy()
        return new

    def find(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of names; −1 for those that are not in the table."""
        if self._packed is not None:
            self._asked += len(names)
            if max(self._asked, _FEW) < len(self._packed):
                return self._packed.find(names)
            self._unpack()
        return np.fromiter(map(self._numbers.get, names, repeat(-1)), np.int32, len(names))

    def extend(self, names: Sequence[str]) -> None:
        """Add names, which are not in the table yet."""
        self._unpack()
        n = len(self._numbers)
        new = dict(zip(names, range(n, n + len(names)), strict=True))
        if len(new) < len(names):
            raise DataError("names must differ")
        # The list first, the dict in one step: if this is interrupted, spare names do no harm.
        self._listed[n:] = names
        self._numbers.update(new)

    def pack(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """The names as two arrays (:func:`~trellis.files.stored.pack_strings`)."""
        if self._packed is None:
            return pack_strings(list(self._numbers), prefix)
        return {f"{prefix}blob": self._packed.blob, f"{prefix}offsets": self._packed.offsets}

    def _unpack(self) -> None:
        if self._packed is not None:
            listed = list(self._packed)
            self._listed, self._numbers = listed, dict(zip(listed, range(len(listed)), strict=True))
            self._packed = None


class PackedNames:
    """Names that do not change, in arrays.

    Parameters
    ----------
    blob : uint8 array
        All names one after the other, in UTF-8.
    offsets : int64 array (n + 1,)
        Where each begins, and the last ends; known to be right.

    Raises
    ------
    DataError
        If a name stands twice.

    Examples
    --------
    >>> from trellis.files.stored import pack_strings
    >>> names = PackedNames(**pack_strings(["b", "", "é"]))
    >>> names.find(["é", "e", ""]), names[[2]]
    (array([ 2, -1,  1], dtype=int32), ['é'])
    """

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        # Memory of their own: they may be parts of a larger array, or of a file.
        self.blob, self.offsets = np.require(blob, None, "O"), np.require(offsets, None, "O")
        # Hash and number in one, which sorts many times as fast as numbers by hash.
        self._low = np.uint64((1 << len(self).bit_length()) - 1)
        self._keys = _hashes(self.blob, self.offsets) & ~self._low
        self._keys |= np.arange(len(self), dtype=np.uint64)
        self._keys.sort()
        self._twins: dict[str, int] = {}
        high = self._keys & ~self._low
        same = np.flatnonzero(high[1:] == high[:-1])
        if same.size:
            several = np.unique(self._keys[np.concatenate([same, same + 1])] & self._low).tolist()
            self._twins = dict(zip(self[several], several, strict=True))
            if len(self._twins) < len(several):
                raise DataError("names must differ")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[str]:
        data, ends = self.blob.tobytes(), self.offsets.tolist()
        return (data[a:b].decode() for a, b in pairwise(ends))

    def __getitem__(self, numbers: Sequence[int] | NDArray[Any]) -> list[str]:
        """Names of some numbers."""
        return [self.blob[slice(*self.offsets[i : i + 2])].tobytes().decode() for i in numbers]

    def find(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of names; −1 for those that are not among these."""
        found = np.full(len(names), -1, np.int32)
        if not len(self) or not len(names):
            return found
        blob, offsets = _encoded(names)
        hashes = _hashes(blob, offsets) & ~self._low
        near = self._keys[np.minimum(np.searchsorted(self._keys, hashes), len(self) - 1)]
        number = (near & self._low).astype(np.int64)
        first, length = self.offsets[number], self.offsets[number + 1] - self.offsets[number]
        alike = (near & ~self._low == hashes) & (length == np.diff(offsets))
        first, length, asked = first[alike], length[alike], offsets[:-1][alike]
        differs = self.blob[ranges(first, length)] != blob[ranges(asked, length)]
        equal = np.diff(bounds(differs)[bounds(length)]) == 0
        found[np.flatnonzero(alike)[equal]] = number[alike][equal]
        if self._twins:
            for i, name in enumerate(names):
                found[i] = self._twins.get(name, found[i])
        return found


def _encoded(names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as bytes: blob and offsets."""
    joined = "".join(names)
    if joined.isascii():
        return np.frombuffer(joined.encode(), np.uint8), bounds(list(map(len, names)))
    # A lone surrogate gives bytes that are no valid text, which no packed name has.
    encoded = [str.encode(name, errors="surrogatepass") for name in names]
    return np.frombuffer(b"".join(encoded), np.uint8), bounds(list(map(len, encoded)))


def _hashes(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash of each name, a few bytes of all names of a chunk at once."""
    padded = np.concatenate([blob, np.zeros(_WORD, np.uint8)])
    # The eight bytes from any byte on as a number, whose first byte is the lowest.
    words = np.ndarray(len(blob) + 1, "<u8", padded, strides=(1,))
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for a in range(0, len(hashes), _CHUNK):
        first = offsets[a : a + _CHUNK + 1]
        length = np.diff(first)
        h = length.astype(np.uint64)
        for k in range(0, min(int(length.max()), _HASHED), _WORD):
            here = np.flatnonzero(length > k)
            word = words[first[here] + k]
            word &= _FIRST_BYTES[np.minimum(length[here] - k, _WORD)]
            word ^= h[here]
            word *= _FACTOR
            word ^= word >> np.uint64(32)
            h[here] = word
        hashes[a : a + _CHUNK] = h
    return hashes
