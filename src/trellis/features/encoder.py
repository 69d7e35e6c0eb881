"""Templates over columns, with the vocabulary learned from a corpus.

Work is divided by what it depends on: string functions run once for each distinct symbol of a
corpus, integer codes are shifted, combined and looked up for all positions of a chunk at once. A
feature's id is exact: it stands for one value of one template, and can be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.domains import instance
from trellis.errors import DataError, TemplateError
from trellis.features.atoms import Atom
from trellis.features.attributes import AttributeEncoder
from trellis.features.columns import (
    ConjunctionColumn,
    FeatureColumn,
    NewIds,
    NgramColumn,
    NumberColumn,
    compile_template,
)
from trellis.features.encoded import Encoded, Encoder, Parts, drop_unknown, joined
from trellis.features.templates import Call, Template, Templates, as_templates

__all__ = ["TemplateEncoder", "encoder_for"]

_CHUNK = 1 << 16


class TemplateEncoder(Encoder):
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
        return self._n_features

    @property
    def marks(self) -> int:
        """Number of boundary symbols: two for each distance beyond the sample."""
        if not self.templates.mark_edges:
            return 0
        return 2 * max((abs(t.offset) for p in self.templates for t in p.terms), default=0)

    def atoms_of(self, template: Template) -> list[Atom]:
        """Atoms of a template's terms, shared between templates."""
        atoms = []
        for term in template.terms:
            key = (term.column, term.call)
            atoms.append(self.atoms.setdefault(key, Atom(*key)))
        return atoms

    def learn_into(self, corpus: Corpus, parts: Parts) -> None:
        self._check(corpus)
        if not self.columns:
            self.columns = [
                compile_template(t, corpus, self.atoms_of, self.marks) for t in self.templates
            ]
        known = self._n_features
        n_values = [len(column.ids) for column in self.columns]
        n_symbols = [len(atom) for atom in self.atoms.values()]
        try:
            for part in self._encode(corpus, grow=True):
                parts.append(part)
            self._drop_rare(parts, known)
        except BaseException:
            # A bad number, an interrupt: forget what is half learned, or later codes would not fit.
            self._n_features = known
            for column, n in zip(self.columns, n_values, strict=True):
                column.select(slice(n))
            for atom, n in zip(self.atoms.values(), n_symbols, strict=True):
                atom.forget(n)
            raise

    def encode(self, corpus: Corpus) -> Encoded:
        instance(Corpus).check("corpus", corpus)
        if corpus.n_positions == 0:  # nothing to encode, whatever its columns
            return joined(corpus.offsets, [])
        self._check(corpus)
        return joined(corpus.offsets, self._encode(corpus, grow=False))

    def _check(self, corpus: Corpus) -> None:
        instance(Corpus).check("corpus", corpus)
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

    def _encode(self, corpus: Corpus, *, grow: bool) -> Iterator[Encoded]:
        tables = {
            id(atom): atom.table(corpus.columns[atom.column], grow=grow)
            for atom in self.atoms.values()
        }
        for column in self.columns:
            column.prepare(corpus, grow=grow)
        new_ids = self._new_ids if grow else None
        for chunk in _chunks(corpus):
            yield self._chunk(chunk, tables, new_ids)

    def _chunk(
        self, chunk: Corpus, tables: dict[int, NDArray[np.int32]], new_ids: NewIds | None
    ) -> Encoded:
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
        rows = assemble(
            single,
            np.array(numbers, np.float32).reshape(len(numbers), n),
            bag_ptr.reshape(len(bags), n + 1),
            np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in bags)]),
            len(single) - len(numbers),
            bool(numbers),
        )
        return Encoded.made(chunk.offsets, *rows)

    def _drop_rare(self, parts: Parts, known: int) -> None:
        """Apply the templates' count thresholds to the features learned since ``known``."""
        if all(t.min_count <= 1 for t in self.templates):
            return
        counts = np.zeros(self._n_features, np.int64)
        for part in parts:
            np.add.at(counts, part.indices, 1)  # np.bincount would touch every feature, each time
        keep = np.ones(self._n_features, bool)
        for column in self.columns:
            new = column.ids[column.ids >= known]
            keep[new] = counts[new] >= column.template.min_count
        mapping = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        self._n_features = int(keep.sum())
        for column in self.columns:
            column.renumber(mapping)

        def kept(part: Encoded) -> Encoded:
            indices = mapping[part.indices]
            return drop_unknown(Encoded.made(part.offsets, part.indptr, indices, part.values))

        parts.rewrite(kept)

    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        wanted = np.asarray(features, np.int64)
        owner = np.empty(self._n_features, np.int64)
        code = np.empty(self._n_features, np.int64)
        for j, column in enumerate(self.columns):
            owner[column.ids] = j
            code[column.ids] = np.arange(len(column.ids))
        result = np.empty(len(wanted), object)
        for j in np.unique(owner[wanted]):
            places = owner[wanted] == j
            result[places] = self.columns[j].value_names(code[wanted[places]])
        return list(result)

    def crossed(self) -> NDArray[np.bool_]:
        edge = np.array([column.template.edge for column in self.columns], bool)
        return edge[self.groups()] if len(edge) else np.zeros(0, bool)

    def groups(self) -> NDArray[np.int32]:
        owner = np.zeros(self._n_features, np.int32)
        for j, column in enumerate(self.columns):
            owner[column.ids] = j
        return owner

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from trellis.features.state import encoder_state

        return encoder_state(self)


def encoder_for(features: Any, corpus: Corpus) -> Encoder:
    """Return a new encoder of the kind a corpus needs, for what a user passed as ``features=``."""
    automatic = features is None or (isinstance(features, str) and features == "auto")
    if corpus.features is not None:
        if not automatic:
            raise DataError(
                "features= names templates over columns, but the samples are ready-made features; "
                "leave features='auto'"
            )
        return AttributeEncoder()
    return TemplateEncoder(as_templates(features, list(corpus.columns)))


def _chunks(corpus: Corpus) -> Iterator[Corpus]:
    """Consecutive samples with about ``_CHUNK`` positions in each chunk; arrays are views."""
    a = 0
    while a < len(corpus):
        target = corpus.offsets[a] + _CHUNK
        b = max(int(np.searchsorted(corpus.offsets, target, side="right")) - 1, a + 1)
        first, last = corpus.offsets[a], corpus.offsets[b]
        columns = {name: column.take(slice(first, last)) for name, column in corpus.columns.items()}
        yield Corpus(corpus.offsets[a : b + 1] - first, columns)
        a = b
