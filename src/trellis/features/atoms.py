"""Atoms: the distinct (column, function) pairs that templates are built from, coded once.

An atom's vocabulary maps derived strings to codes. For a corpus it is applied to the column's
table of *distinct* symbols, then gathered by the column's codes. Places in entries of a dictionary,
or in training words, depend on the symbols around, too: their table only tells which symbols are in
entries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column, Corpus
from trellis.corpus.corpus import FLOAT32_LIMIT, bounds, code_joined
from trellis.errors import DataError
from trellis.features.dictionary import PLACES, Dictionary
from trellis.features.functions import string_function
from trellis.features.lexicon import LENGTHS, Lexicon
from trellis.features.templates import Call
from trellis.predictor import StringFunction, ngrams, normal_form

__all__ = ["Atom", "DictionaryAtom", "LexiconAtom", "TypeAtom", "ngram_table", "number_table"]

# A vocabulary of so many values, and at most so many times those looked up, is searched as bytes.
_MANY, _TIMES = 512, 4


class Atom:
    """One function of one column, with its vocabulary of values.

    ``clusters`` are those of the normal forms of symbols, for the function of this name.
    """

    _joined: tuple[int, bytes] = 0, b""
    """So many values as bytes, joined by NUL."""

    def __init__(
        self, column: str, call: Call | None, clusters: Mapping[str, str] | None = None
    ) -> None:
        self.column = column
        self.call = call
        self.clusters = clusters
        self.vocabulary: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.vocabulary)

    def values(self) -> list[str]:
        """Distinct values, by code."""
        return list(self.vocabulary)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_joined": (0, b"")}  # it is made of the vocabulary

    def forget(self, n: int) -> None:
        """Keep only the first n values."""
        self._joined = 0, b""
        while len(self.vocabulary) > n:
            self.vocabulary.popitem()

    def table(self, column: Column, *, grow: bool) -> NDArray[np.int32]:
        """Code for each distinct symbol of a column; −1 for nothing or an unknown value."""
        used = _used(column)
        symbols = map(column.values.__getitem__, used.tolist())
        function = self._function()
        values: list[Any] = list(symbols if function is None else map(function, symbols))
        vocabulary = self.vocabulary
        if grow:
            fresh = dict.fromkeys(itertools.filterfalse(vocabulary.__contains__, values))
            fresh.pop(None, None)  # nothing is no value
            vocabulary.update(zip(fresh, itertools.count(len(vocabulary)), strict=False))
        table = np.full(len(column.values), -1, np.int32)
        table[used] = self._find(values)
        return table

    def _find(self, values: list[Any]) -> NDArray[np.int32]:
        """Codes of values; −1 for what is not in the vocabulary."""
        n = len(self.vocabulary)
        if _MANY <= n <= _TIMES * len(values):
            # Each look into a large dict waits for memory several times; bytes are read in a row.
            if self._joined[0] != n:
                self._joined = n, _bytes(self.vocabulary)
            try:
                data = b"\0".join([self._joined[1], _bytes(values)])
            except TypeError:  # some have no value
                data = b""
            if (coded := code_joined(data, n + len(values))) is not None:
                codes = coded[0][n:]
                codes[codes >= n] = -1
                return codes
        found = map(self.vocabulary.get, values, itertools.repeat(-1))
        return np.fromiter(found, np.int32, len(values))

    def codes(
        self, chunk: Corpus, table: NDArray[np.int32], first: int | None = None
    ) -> NDArray[np.int32]:
        """Code of each position of a chunk, by the table of its corpus.

        ``first`` is the number of its first sample, if it is learned from.
        """
        return table[chunk.columns[self.column].codes]

    def _function(self) -> StringFunction | None:
        if self.call is None:
            return None
        if self.clusters is None:
            return string_function(self.call.name, self.call.arguments)
        path = self.clusters.get
        bits = self.call.arguments[0] if self.call.arguments else None
        assert bits is None or isinstance(bits, int)
        return lambda word: None if (found := path(normal_form(word))) is None else found[:bits]


class TypeAtom(Atom):
    """Types of edges, which have codes at edges, not at positions."""

    def _function(self) -> None:
        return None


class DictionaryAtom(Atom):
    """Places of positions in entries of a dictionary; the vocabulary is always the same."""

    def __init__(self, column: str, call: Call, dictionary: Dictionary) -> None:
        super().__init__(column, call)
        self.dictionary = dictionary
        self.vocabulary = {place: code for code, place in enumerate(PLACES)}

    def table(self, column: Column, *, grow: bool) -> NDArray[np.int32]:
        """Which symbol of the entries each distinct symbol of a column is, or −1."""
        return self.dictionary.symbols(column)

    def codes(
        self, chunk: Corpus, table: NDArray[np.int32], first: int | None = None
    ) -> NDArray[np.int32]:
        """Place of each position of a chunk in an entry."""
        return self.dictionary.marks(super().codes(chunk, table), chunk.offsets)


class LexiconAtom(Atom):
    """Lengths of the training words at positions; the vocabulary is always the same."""

    def __init__(self, column: str, call: Call, lexicon: Lexicon) -> None:
        super().__init__(column, call)
        self.lexicon, self.part = lexicon, str(call.arguments[0])
        self.vocabulary = {length: code for code, length in enumerate(LENGTHS)}

    def table(self, column: Column, *, grow: bool) -> NDArray[np.int32]:
        """Which symbol of the words each distinct symbol of a column is, or −1."""
        return self.lexicon.symbols(column)

    def codes(
        self, chunk: Corpus, table: NDArray[np.int32], first: int | None = None
    ) -> NDArray[np.int32]:
        """Length of the longest word at each position of a chunk."""
        symbols = super().codes(chunk, table)
        return self.lexicon.lengths(self.part, symbols, chunk.offsets, first)


def _bytes(strings: Iterable[str]) -> bytes:
    return "\0".join(strings).encode("utf-8", "surrogatepass")


def _used(column: Column) -> NDArray[np.int64]:
    """Codes of the symbols that occur: a part of a corpus shares the tables of the whole."""
    return np.flatnonzero(np.bincount(column.codes, minlength=len(column.values)))


def ngram_table(
    column: Column, low: int, high: int, vocabulary: dict[str, int], *, grow: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CSR (indptr, codes) over the distinct symbols: the codes of each symbol's n-grams."""
    counts = np.zeros(len(column.values), np.int64)
    codes: list[int] = []
    for symbol in _used(column):
        grams = ngrams(column.values[symbol], low, high)
        if grow:
            known = [vocabulary.setdefault(gram, len(vocabulary)) for gram in grams]
        else:
            known = [vocabulary[gram] for gram in grams if gram in vocabulary]
        counts[symbol] = len(known)
        codes += known
    return bounds(counts), np.array(codes, np.int64)


def number_table(corpus: Corpus, name: str) -> NDArray[np.float32]:
    """The number each distinct symbol stands for; what is none is an error naming the place."""
    column = corpus.columns[name]
    table = np.zeros(len(column.values), np.float32)
    for symbol in _used(column):
        try:
            number = float(column.values[symbol])
        except ValueError:
            number = math.nan
        if not abs(number) < FLOAT32_LIMIT:
            place = np.flatnonzero(column.codes == symbol)[0]
            sample = int(np.searchsorted(corpus.offsets, place, side="right")) - 1
            raise DataError(
                f"column {name!r}, sample {sample}, position {place - corpus.offsets[sample]}: "
                f"{column.values[symbol]!r} is not a finite number (float32)"
            )
        table[symbol] = number
    return table
