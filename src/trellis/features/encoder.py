"""Templates over columns, with the vocabulary learned from a corpus.

Work is divided by what it depends on: string functions run once for each distinct symbol of a
corpus, integer codes are shifted, combined and looked up for all positions of a chunk at once. A
feature's id is exact: it stands for one value of one template, and can be named.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column, Corpus
from trellis.errors import DataError, TemplateError
from trellis.features.atoms import Atom
from trellis.features.columns import (
    ConjunctionColumn,
    FeatureColumn,
    NewIds,
    NgramColumn,
    NumberColumn,
    compile_template,
)
from trellis.features.encoded import Encoded, drop_unknown
from trellis.features.templates import Call, Template, Templates

__all__ = ["TemplateEncoder"]

_CHUNK = 1 << 16


class TemplateEncoder:
    """Encode corpora of columns by templates.

    Examples
    --------
    >>> from trellis import Corpus, Templates
    >>> from trellis.features import TemplateEncoder
    >>> encoder = TemplateEncoder(Templates.parse("word; word[-1] & word"))
    >>> encoded = encoder.learn(Corpus.from_columns({"word": [["a", "b", "a"]]}))
    >>> encoded.indices, encoder.names(range(4))
    (array([0, 1, 2, 0, 3], dtype=int32), ['word=a', 'word=b',
      'word[-1]=a & word=b', 'word[-1]=b & word=a'])
    """

    kind = "templates"

    def __init__(self, templates: Templates) -> None:
        self.templates = templates
        self.atoms: dict[tuple[str, Call | None], Atom] = {}
        self.columns: list[FeatureColumn] = []
        self._n_features = 0

    @property
    def n_features(self) -> int:
        """Number of features known."""
        return self._n_features

    @property
    def marks(self) -> int:
        """Number of boundary symbols: two for each distance beyond the sample."""
        if not self.templates.mark_edges:
            return 0
        return 2 * max((abs(t.offset) for p in self.templates for t in p.terms), default=0)

    def atoms_of(self, template: Template) -> list[Atom]:
        """Atoms of a template's terms, shared between templates."""
        found = []
        for term in template.terms:
            key = (term.column, term.call)
            found.append(self.atoms.setdefault(key, Atom(*key)))
        return found

    def learn(self, corpus: Corpus) -> Encoded:
        """Encode a corpus, adding features not seen before to the vocabulary."""
        self._check(corpus)
        if not self.columns:
            self.columns = [
                compile_template(t, corpus, self.atoms_of, self.marks) for t in self.templates
            ]
        known = self._n_features
        n_values = [len(column.ids) for column in self.columns]
        n_symbols = [len(atom) for atom in self.atoms.values()]
        try:
            return self._drop_rare(self._encode(corpus, grow=True), known)
        except BaseException:
            # A bad number, an interrupt: forget what is half learned, or later codes would not fit.
            self._n_features = known
            for column, n in zip(self.columns, n_values, strict=True):
                column.select(slice(n))
            for atom, n in zip(self.atoms.values(), n_symbols, strict=True):
                atom.forget(n)
            raise

    def encode(self, corpus: Corpus) -> Encoded:
        """Encode a corpus; features not in the vocabulary are left out."""
        if corpus.n_positions == 0:  # nothing to encode, whatever its columns
            none = np.zeros(0, np.int32), np.zeros(0, np.float32)
            return Encoded(corpus.offsets, np.zeros(1, np.int64), *none)
        self._check(corpus)
        return self._encode(corpus, grow=False)

    def _check(self, corpus: Corpus) -> None:
        for name in self.templates.columns():
            if name not in corpus.columns:
                raise DataError(
                    f"the templates need the column {name!r}; "
                    f"the corpus has {', '.join(corpus.columns) or 'none'}"
                )

    def _new_ids(self, n: int) -> NDArray[np.int32]:
        first = self._n_features
        if first + n >= 2**31:
            raise TemplateError("more than 2^31 features; raise min_count")
        self._n_features += n
        return np.arange(first, first + n, dtype=np.int32)

    def _encode(self, corpus: Corpus, *, grow: bool) -> Encoded:
        tables = {
            id(atom): atom.table(corpus.columns[atom.column], grow=grow)
            for atom in self.atoms.values()
        }
        for column in self.columns:
            column.prepare(corpus, grow=grow)
        new_ids = self._new_ids if grow else None
        parts = [self._chunk(chunk, tables, new_ids) for chunk in _chunks(corpus)]
        shift = np.cumsum([0] + [len(indices) for _, indices, _ in parts])
        indptr = np.concatenate(
            [[0]] + [p[1:] + s for (p, _, _), s in zip(parts, shift[:-1], strict=True)]
        ).astype(np.int64)
        indices = np.concatenate([np.zeros(0, np.int32), *(i for _, i, _ in parts)])
        values = np.concatenate([np.zeros(0, np.float32), *(v for _, _, v in parts)])
        return Encoded(corpus.offsets, indptr, indices, values)

    def _chunk(
        self, chunk: Corpus, tables: dict[int, NDArray[np.int32]], new_ids: NewIds | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        from trellis.kernels.coding import assemble

        n = chunk.n_positions
        codes = {
            id(atom): tables[id(atom)][chunk.columns[atom.column].codes]
            for atom in self.atoms.values()
        }
        plain: list[NDArray[np.int32]] = []
        valued: list[NDArray[np.int32]] = []
        numbers: list[NDArray[np.float32]] = []
        bags: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        for column in self.columns:
            if isinstance(column, ConjunctionColumn):
                plain.append(column.rows_from(chunk, codes, new_ids)[None])
            elif isinstance(column, NgramColumn):
                bags.append(column.bag(chunk, new_ids))
            elif isinstance(column, NumberColumn):
                valued.append(column.rows(chunk, new_ids))
                numbers.append(column.numbers(chunk))
            else:
                plain.append(column.rows(chunk, new_ids))
        empty = np.zeros((0, n), np.int32)
        single = np.concatenate([empty, *plain, *valued])
        shift = np.cumsum([0] + [len(ids) for _, ids in bags])
        bag_ptr = np.array([p + s for (p, _), s in zip(bags, shift[:-1], strict=True)], np.int64)
        return assemble(
            single,
            np.array(numbers, np.float32).reshape(len(numbers), n),
            bag_ptr.reshape(len(bags), n + 1),
            np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in bags)]),
            len(single) - len(numbers),
            bool(numbers),
        )

    def _drop_rare(self, encoded: Encoded, known: int) -> Encoded:
        """Apply the templates' count thresholds to the features learned since ``known``."""
        if all(t.min_count <= 1 for t in self.templates):
            return encoded
        counts = np.bincount(encoded.indices, minlength=self._n_features)
        keep = np.ones(self._n_features, bool)
        for column in self.columns:
            new = column.ids[column.ids >= known]
            keep[new] = counts[new] >= column.template.min_count
        mapping = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        self._n_features = int(keep.sum())
        for column in self.columns:
            column.renumber(mapping)
        return drop_unknown(
            Encoded(encoded.offsets, encoded.indptr, mapping[encoded.indices], encoded.values)
        )

    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        """Readable names of some features: template and value."""
        wanted = np.asarray(features, np.int64)
        owner = np.empty(self._n_features, np.int64)
        code = np.empty(self._n_features, np.int64)
        for j, column in enumerate(self.columns):
            owner[column.ids] = j
            code[column.ids] = np.arange(len(column.ids))
        result = np.empty(len(wanted), object)
        for j in np.unique(owner[wanted]):
            mine = owner[wanted] == j
            result[mine] = self.columns[j].value_names(code[wanted[mine]])
        return list(result)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything needed to rebuild the encoder: a JSON header and arrays."""
        from trellis.features.state import encoder_state

        return encoder_state(self)


def _chunks(corpus: Corpus) -> list[Corpus]:
    """Consecutive samples with about ``_CHUNK`` positions in each chunk; arrays are views."""
    bounds = [0]
    while bounds[-1] < len(corpus):
        target = corpus.offsets[bounds[-1]] + _CHUNK
        after = int(np.searchsorted(corpus.offsets, target, side="right")) - 1
        bounds.append(max(after, bounds[-1] + 1))
    chunks = []
    for a, b in itertools.pairwise(bounds):
        first, last = corpus.offsets[a], corpus.offsets[b]
        columns = {
            name: Column(column.codes[first:last], column.values)
            for name, column in corpus.columns.items()
        }
        chunks.append(Corpus(corpus.offsets[a : b + 1] - first, columns))
    return chunks
