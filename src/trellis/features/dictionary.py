"""Dictionaries: lists of words, names or terms that a user gives, found in the text.

An entry is a sequence of symbols. In each sample the longest entries are found from left to right,
none overlapping another (:mod:`trellis.kernels.matches`), and a position

    begins, continues, ends an entry of several symbols, or is a whole one,

or belongs to none. In a column of single characters an entry is its characters, in any other its
words, which spaces divide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus import Column
from trellis.errors import DataError
from trellis.features.trie import Trie
from trellis.files.text import read_text

__all__ = ["PLACES", "Dictionary", "given_dictionaries"]

PLACES = ("begin", "inside", "end", "whole")
"""Where in an entry a position may be, by the code of its mark."""


class Dictionary:
    """Entries, as sequences of symbols.

    Examples
    --------
    >>> from trellis.corpus import Column
    >>> cities = Dictionary([["New", "York"], ["Oslo"]])
    >>> text = Column.from_strings(["Oslo", "or", "New", "York"])
    >>> cities.marks(cities.symbols(text)[text.codes], np.array([0, 4]))
    array([ 3, -1,  0,  2], dtype=int32)
    """

    def __init__(self, entries: Sequence[Sequence[str]]) -> None:
        self.entries = list(dict.fromkeys(map(tuple, entries)))
        self._trie, nodes = Trie.of(self.entries)
        self._ends = np.zeros(len(self._trie), bool)
        self._ends[nodes] = True
        self._longest = max(map(len, self.entries), default=0)

    @classmethod
    def for_column(cls, entries: Sequence[str], column: Column) -> Dictionary:
        """Entries divided as a column is: into characters, or at spaces."""
        characters = is_of_characters(column)
        split = (e.replace(" ", "").replace("\t", "") if characters else e.split() for e in entries)
        return cls([list(entry) for entry in split if entry])

    def symbols(self, column: Column) -> NDArray[np.int32]:
        """Number of each distinct symbol of a column in the entries, or −1."""
        return self._trie.codes(column)

    def marks(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Place of each position in an entry (number of :data:`PLACES`), or −1."""
        from trellis.kernels.matches import mark_matches

        longest = np.zeros(len(codes), np.int64)
        for length, node in enumerate(self._trie.walk(codes, offsets, self._longest), 1):
            longest[(node >= 0) & self._ends[node]] = length
        marks = np.empty(len(codes), np.int32)
        mark_matches(for_kernels(longest), marks)
        return marks


def is_of_characters(column: Column) -> bool:
    """Whether all symbols that occur in a column are single characters."""
    return all(len(symbol) == 1 for symbol in column.used())


def given_dictionaries(given: Any) -> dict[str, list[str]]:
    """What a user passed as ``dictionaries=``: entries by name, those in files read.

    Examples
    --------
    >>> given_dictionaries({"cities": ["Oslo", "New York"]})
    {'cities': ['Oslo', 'New York']}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DataError(
            f"dictionaries must be a dict of names and lists of entries, got {given!r:.60}"
        )
    found = {}
    for name, listed in given.items():
        entries = listed
        if not isinstance(name, str):
            raise DataError(f"the name of a dictionary is {name!r}; expected a string")
        if isinstance(entries, str | os.PathLike):
            entries = [line.strip() for line in read_text(entries)[1].splitlines()]
        elif isinstance(entries, Mapping | bytes) or not hasattr(entries, "__iter__"):
            raise DataError(
                f"dictionary {name!r} is {entries!r:.60}; expected a list of entries, or the path "
                "of a file with one entry a line"
            )
        ordered = (
            sorted(entries, key=str) if isinstance(entries, set | frozenset) else list(entries)
        )
        for i, entry in enumerate(ordered):
            if not isinstance(entry, str):
                raise DataError(
                    f"dictionary {name!r}, entry {i} is {entry!r:.60}; expected a string"
                )
        found[name] = [entry for entry in ordered if entry.strip()]
        if not found[name]:
            raise DataError(f"dictionary {name!r} has no entries; give it some, or leave it out")
    return found
