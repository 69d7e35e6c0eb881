"""Feature columns: a template compiled against its vocabulary.

Each class turns one template into rows of feature ids over a chunk of positions (−1: no feature).
``prepare`` is called once for a corpus and works on distinct symbols; ``rows`` once for each chunk
and works on integer codes. New values get ids from ``new_ids`` while learning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import OwnMemory, for_kernels
from trellis.corpus import Column, Corpus
from trellis.corpus.corpus import bounds, ranges
from trellis.errors import TemplateError
from trellis.features.atoms import Atom, ngram_table, number_table
from trellis.features.coded import CodedChunk, Marks
from trellis.features.keytable import KeyTable
from trellis.features.neighbourhood import Neighbourhood
from trellis.features.templates import Template, Term
from trellis.features.variety import AccessorVariety
from trellis.features.wordlist import WordList

__all__ = [
    "BagColumn",
    "ConjunctionColumn",
    "FeatureColumn",
    "FlagColumn",
    "MeanColumn",
    "NgramColumn",
    "NumberColumn",
    "VarietyColumn",
    "WordListColumn",
    "compile_template",
    "conjunction_column",
]

NewIds = Callable[[int], NDArray[np.int32]]
NewAtom = Callable[[Term], Atom]
Ids = NDArray[np.int32]
KEY_LIMIT = 1 << 62
"""Keys of conjunctions lie below this, well inside int64."""


class FeatureColumn(OwnMemory):
    """Base: a template, and the feature id of each of its values, by code."""

    n_rows = 1
    """How many rows of ids there are."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.ids: Ids = np.zeros(0, np.int32)

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        """Work on the distinct symbols of a corpus."""

    def rows(self, coded: CodedChunk, new_ids: NewIds | None) -> Ids:
        """Feature ids (rows, n) of a chunk; with ``new_ids``, unknown values get ids from it."""
        raise NotImplementedError  # abstract

    def value_names(self, codes: NDArray[np.int64]) -> list[str]:
        """Readable form of some values, by their codes; a template with one value is its name."""
        return [str(self.template)] * len(codes)

    def select(self, which: slice | NDArray[np.bool_]) -> None:
        """Keep only some values, in their order."""
        self.ids = self.ids[which]

    def renumber(self, mapping: Ids) -> None:
        """Follow a renumbering of all features; those that become −1 are dropped."""
        self.ids = mapping[self.ids]
        if np.any(self.ids < 0):
            self.select(self.ids >= 0)

    def _to_ids(self, codes: NDArray[np.int32], n_codes: int, new_ids: NewIds | None) -> Ids:
        """Ids in place of codes."""
        from trellis.kernels.coding import take_ids

        if new_ids is not None and n_codes > len(self.ids):
            self.ids = np.concatenate([self.ids, new_ids(n_codes - len(self.ids))])
        take_ids(codes, for_kernels(self.ids))
        return codes


class KeyedColumn(FeatureColumn):
    """Base: values with integer keys."""

    table: KeyTable

    def select(self, which: slice | NDArray[np.bool_]) -> None:
        super().select(which)
        self.table = KeyTable(self.table.space, self.table.keys[which])

    def _coded(
        self, keys: NDArray[np.int64], new_ids: NewIds | None, out: Ids | None = None
    ) -> Ids:
        codes = self.table.code(keys, grow=new_ids is not None, out=out)
        return self._to_ids(codes, len(self.table), new_ids)


class ConjunctionColumn(KeyedColumn):
    """Values of one or more terms at once; keys are mixed-radix numbers of the terms' codes."""

    def __init__(self, template: Template, atoms: Sequence[Atom], marks: Marks) -> None:
        super().__init__(template)
        self.atoms = list(atoms)
        self.marks = marks
        self._along = template.is_along
        self.radices = [1] * len(self.atoms)
        self.table = KeyTable(1)

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        needed = [len(atom) + self.marks.n for atom in self.atoms]
        if grow and any(n > r for n, r in zip(needed, self.radices, strict=True)):
            radices = [max(1, n) for n in needed]
            if math.prod(radices) >= KEY_LIMIT:
                raise TemplateError(
                    f"template {str(self.template)!r} joins too many large vocabularies "
                    f"({' x '.join(map(str, radices))} values); use fewer terms"
                )
            # The first time exactly; later with room, so that a stream does not re-key each batch.
            roomy = [2 * n for n in radices]
            if len(self.table) and math.prod(roomy) < KEY_LIMIT:
                radices = roomy
            self._use_radices(radices)

    def _use_radices(self, radices: list[int]) -> None:
        digits = self.digits(self.table.keys)
        keys = np.zeros(len(self.table), np.int64)
        for radix, digit in zip(radices, digits, strict=True):
            keys = keys * radix + digit
        self.radices = radices
        self.table = KeyTable(math.prod(radices), keys)

    def digits(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of the terms (terms, keys) that keys are made of."""
        rest = keys.copy()
        digits = np.empty((len(self.radices), len(keys)), np.int64)
        for i in range(len(self.radices) - 1, -1, -1):
            rest, digits[i] = np.divmod(rest, self.radices[i])
        return digits

    def keys(self, coded: CodedChunk) -> NDArray[np.int64]:
        """Keys of a chunk."""
        fold = coded.keys_along if self._along else coded.keys
        return fold(self.template.terms, self.atoms, self.radices, self.marks)

    def fill_row(self, row: Ids, coded: CodedChunk, new_ids: NewIds | None) -> None:
        """Write the feature ids of a chunk."""
        self._coded(self.keys(coded), new_ids, row)

    def value_names(self, codes: NDArray[np.int64]) -> list[str]:
        parts = []
        for atom, digit in zip(self.atoms, self.digits(self.table.keys[codes]), strict=True):
            values = [self.marks.name(mark) for mark in range(self.marks.n)] + atom.values()
            parts.append([f"={values[d]}" for d in digit])
        return [self.template.written(row) for row in zip(*parts, strict=True)]


class BagColumn(ConjunctionColumn):
    """A conjunction with the nodes around: each of its values at a node once."""

    def bag(self, coded: CodedChunk, new_ids: NewIds | None) -> tuple[NDArray[np.int64], Ids]:
        """Bags of a chunk: (indptr (n+1,), ids), −1 for what is not there."""
        from trellis.kernels.bags import drop_repeated

        bags = coded.bags(self.template.terms)
        assert bags is not None
        ids = self._coded(self.keys(coded), new_ids)
        drop_repeated(bags.ptr, ids)
        return bags.ptr, ids


def conjunction_column(
    template: Template, atoms: Sequence[Atom], marks: Marks
) -> ConjunctionColumn:
    """Column of a conjunction, with nothing learned."""
    return (BagColumn if template.is_bag else ConjunctionColumn)(template, atoms, marks)


class FlagColumn(FeatureColumn):
    """One indicator: bias, bos, eos, or two equal symbols."""

    def __init__(self, template: Template, new_atom: NewAtom) -> None:
        super().__init__(template)
        self.new_atom = new_atom

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        if self.template.kind == "equal":
            term = self.template.terms[0]
            # A vocabulary of its own: codes are equal where values are, whatever the model knows.
            self._atom = self.new_atom(term)
            self._table = self._atom.table(corpus.columns[term.column], grow=True)

    def rows(self, coded: CodedChunk, new_ids: NewIds | None) -> Ids:
        chunk = coded.chunk
        codes = np.full(chunk.n_positions, -1, np.int32)
        kind = self.template.kind
        filled = chunk.offsets[:-1] < chunk.offsets[1:]
        if kind == "bias":
            codes[:] = 0
        elif kind == "bos":
            codes[chunk.offsets[:-1][filled]] = 0
        elif kind == "eos":
            codes[chunk.offsets[1:][filled] - 1] = 0
        else:
            terms = self.template.terms
            symbols = self._atom.codes(chunk, self._table)
            left, right = (coded.shifted(symbols, term) for term in terms)
            codes[(left >= 0) & (left == right)] = 0
        return self._to_ids(codes, 1, new_ids)[None]


class NumberColumn(FeatureColumn):
    """A column's number as the value of one feature, divided by its root mean square."""

    scale: float | None = None

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        name = self.template.terms[0].column
        self._table = number_table(corpus, name)
        if grow and self.scale is None:
            values = self._seen(corpus)
            square = float(np.mean(values[values != 0] ** 2)) if np.any(values) else 1.0
            self.scale = math.sqrt(square)

    def _seen(self, corpus: Corpus) -> NDArray[np.float64]:
        """The numbers of a corpus that the scale is learned from."""
        values = self._table[corpus.columns[self.template.terms[0].column].codes]
        return values.astype(np.float64)

    def rows(self, coded: CodedChunk, new_ids: NewIds | None) -> Ids:
        return self._to_ids(np.zeros(coded.chunk.n_positions, np.int32), 1, new_ids)[None]

    def numbers(self, coded: CodedChunk) -> NDArray[np.float32]:
        """Values of the feature; 0 where there is none."""
        return (self._values(coded) / np.float32(self.scale or 1.0)).astype(np.float32)

    def _values(self, coded: CodedChunk) -> NDArray[np.float32]:
        """Numbers where the term looks; 0 beyond the sample or a root."""
        term = self.template.terms[0]
        codes = coded.shifted(coded.chunk.columns[term.column].codes, term)
        return np.where(codes >= 0, self._table[codes], np.float32(0))

    def select(self, which: slice | NDArray[np.bool_]) -> None:
        super().select(which)
        if not len(self.ids):
            self.scale = None


class MeanColumn(NumberColumn):
    """The mean of the numbers around a node, divided by the root mean square of all means."""

    def _seen(self, corpus: Corpus) -> NDArray[np.float64]:
        assert corpus.edges is not None
        around = Neighbourhood(corpus.n_positions, corpus.edges)
        return self._means(corpus, around).astype(np.float64)

    def _values(self, coded: CodedChunk) -> NDArray[np.float32]:
        assert coded.around is not None
        return self._means(coded.chunk, coded.around)

    def _means(self, corpus: Corpus, around: Neighbourhood) -> NDArray[np.float32]:
        term = self.template.terms[0]
        means = around.means(term.along, self._table[corpus.columns[term.column].codes])
        return means.astype(np.float32)


class NgramColumn(FeatureColumn):
    """Character n-grams: a bag of features at each position."""

    def __init__(self, template: Template) -> None:
        super().__init__(template)
        self.vocabulary: dict[str, int] = {}

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        column = corpus.columns[self.template.terms[0].column]
        low, high = self.template.low, self.template.high
        self._ptr, self._codes = ngram_table(column, low, high, self.vocabulary, grow=grow)

    def bag(self, coded: CodedChunk, new_ids: NewIds | None) -> tuple[NDArray[np.int64], Ids]:
        """Bags of a chunk: (indptr (n+1,), ids)."""
        column: Column = coded.chunk.columns[self.template.terms[0].column]
        counts = np.diff(self._ptr)[column.codes]
        codes = self._codes[ranges(self._ptr[column.codes], counts)].astype(np.int32)
        return bounds(counts), self._to_ids(codes, len(self.vocabulary), new_ids)

    def select(self, which: slice | NDArray[np.bool_]) -> None:
        super().select(which)
        kept = np.array(list(self.vocabulary), object)[which]
        self.vocabulary = {gram: code for code, gram in enumerate(kept)}

    def value_names(self, codes: NDArray[np.int64]) -> list[str]:
        grams = list(self.vocabulary)
        return [f"{self.template}={grams[code]}" for code in codes]


class WordListColumn(KeyedColumn):
    """Words of the training data around a position (see :mod:`trellis.features.wordlist`)."""

    def __init__(self, template: Template, words: WordList) -> None:
        super().__init__(template)
        self.words = words
        self.n_rows = words.n_columns
        self.table = KeyTable(words.key_space)

    def rows(self, coded: CodedChunk, new_ids: NewIds | None) -> Ids:
        keys = self.words.keys(coded.chunk)
        return self._coded(keys.ravel(), new_ids).reshape(keys.shape)

    def value_names(self, codes: NDArray[np.int64]) -> list[str]:
        return [f"wordlist {self.words.name(key)}" for key in self.table.keys[codes].tolist()]


class VarietyColumn(KeyedColumn):
    """Contexts of the n-grams around a position (see :mod:`trellis.features.variety`)."""

    def __init__(self, template: Template, variety: AccessorVariety) -> None:
        super().__init__(template)
        self.variety = variety
        self.n_rows = variety.n_columns
        self.table = KeyTable(variety.key_space)

    def prepare(self, corpus: Corpus, *, grow: bool) -> None:
        self._symbols = self.variety.trie.codes(corpus.columns[self.template.terms[0].column])

    def rows(self, coded: CodedChunk, new_ids: NewIds | None) -> Ids:
        chunk = coded.chunk
        symbols = self._symbols[chunk.columns[self.template.terms[0].column].codes]
        keys = self.variety.keys(symbols, chunk.offsets)
        return self._coded(keys.ravel(), new_ids).reshape(keys.shape)

    def value_names(self, codes: NDArray[np.int64]) -> list[str]:
        return [f"variety {self.variety.name(key)}" for key in self.table.keys[codes].tolist()]


def compile_template(
    template: Template,
    text: Sequence[Corpus],
    atoms: Callable[[Template], list[Atom]],
    new_atom: NewAtom,
    marks: Marks,
) -> FeatureColumn:
    """Make the column of a template.

    Word lists are collected from the first corpus, which is the training data, contexts from the
    text of all.
    """
    if template.kind == "conjunction":
        return conjunction_column(template, atoms(template), marks)
    if template.kind == "number":
        return NumberColumn(template)
    if template.kind == "mean":
        return MeanColumn(template)
    if template.kind == "ngrams":
        return NgramColumn(template)
    if template.kind == "wordlist":
        column = template.terms[0].column
        words = WordList.from_corpus(text[0], column, template.low, template.high)
        return WordListColumn(template, words)
    if template.kind == "variety":
        column = template.terms[0].column
        variety = AccessorVariety.from_text(text, column, template.low, template.high)
        return VarietyColumn(template, variety)
    return FlagColumn(template, new_atom)
