"""Templates over columns, with the vocabulary learned from a corpus.

Work is divided by what it depends on: string functions run once for each distinct symbol of a
corpus, integer codes are shifted, combined and looked up for all positions of a chunk at once. A
feature's id is exact: it stands for one value of one template, and can be named.

What templates take from raw text (clusters, contexts of n-grams) is learned together with the first
corpus, from its text and the unlabelled text beside it, and fixed from then on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.graphs import take_in_any
from trellis.domains import instance
from trellis.errors import DataError, TemplateError
from trellis.features.atoms import Atom, DictionaryAtom, LexiconAtom, TypeAtom
from trellis.features.attributes import AttributeEncoder
from trellis.features.brown import clusters_of
from trellis.features.coded import CodedChunk, Marks
from trellis.features.columns import (
    BagColumn,
    ConjunctionColumn,
    FeatureColumn,
    NewIds,
    NgramColumn,
    NumberColumn,
    compile_template,
)
from trellis.features.dictionary import Dictionary, given_dictionaries, is_of_characters
from trellis.features.encoded import Encoded, Encoder, Parts, drop_unknown, joined
from trellis.features.lexicon import Lexicon
from trellis.features.neighbourhood import Neighbourhood
from trellis.features.templates import (
    TYPE,
    Call,
    Template,
    Templates,
    Term,
    as_templates,
    is_default,
    is_set,
)

__all__ = ["TemplateEncoder", "encoder_for"]

_CHUNK = 1 << 16


class TemplateEncoder(Encoder):
    """Encode corpora of columns by templates.

    Parameters
    ----------
    templates : Templates
    unlabelled : sequence of Corpus
        Text to learn clusters and contexts from, beside the first corpus that is learned.
    dictionaries : dict of list of str, optional
        Entries of the dictionaries that the templates name.

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

    def __init__(
        self,
        templates: Templates,
        unlabelled: Sequence[Corpus] = (),
        dictionaries: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.templates = templates
        self.unlabelled = tuple(unlabelled)
        self.entries = dict(dictionaries or {})
        self.clusters: dict[str, dict[str, str]] = {}
        self.dictionaries: dict[tuple[str, str], Dictionary] = {}
        self.lexicons: dict[str, Lexicon] = {}
        self.atoms: dict[tuple[str, Call | None], Atom] = {}
        self.columns: list[FeatureColumn] = []
        self._n_features = 0

    @property
    def n_features(self) -> int:
        return self._n_features

    @property
    def marks(self) -> Marks:
        """Boundary symbols: two for each distance beyond the sample, one for each above roots."""
        if not self.templates.mark_edges:
            return Marks()
        terms = [term for template in self.templates for term in template.terms]
        return Marks(
            2 * max((abs(term.offset) for term in terms), default=0),
            max((term.steps for term in terms), default=0),
        )

    def atoms_of(self, template: Template) -> list[Atom]:
        """Atoms of a template's terms, shared between templates."""
        atoms = []
        for term in template.terms:
            key = (term.column, term.call)
            if key not in self.atoms:
                self.atoms[key] = self.new_atom(term)
            atoms.append(self.atoms[key])
        return atoms

    def new_atom(self, term: Term) -> Atom:
        """An atom without values, for the function and the column of a term."""
        call = term.call
        if call == TYPE:
            return TypeAtom(term.column, call)
        if call is not None and call.name == "cluster":
            return Atom(term.column, call, self.clusters[term.column])
        if call is not None and call.name == "dictionary":
            return DictionaryAtom(
                term.column, call, self.dictionaries[term.column, str(call.arguments[0])]
            )
        if call is not None and call.name == "lexicon":
            return LexiconAtom(term.column, call, self.lexicons[term.column])
        return Atom(term.column, call)

    def _learn_from_text(self, text: Sequence[Corpus]) -> list[FeatureColumn]:
        """Clusters, dictionaries, lexicons and word lists of the templates, and their columns."""
        self.atoms, self.clusters, self.dictionaries = {}, {}, {}  # of an attempt that was refused
        for name, corpus in itertools.product(self.templates.from_text(), text):
            if name not in corpus.columns:
                raise DataError(
                    f"unlabelled text needs the column {name!r}, as the labelled samples have it; "
                    f"it has {', '.join(corpus.columns) or 'none'}"
                )
        for column in self.templates.clustered():
            self.clusters[column] = clusters_of(text, column, self.templates.n_clusters)
        for column, name in self.templates.dictionaries():
            if name not in self.entries:
                raise DataError(
                    f"the templates name the dictionary {name!r}, which is not given; give its "
                    f"entries: dictionaries={{{name!r}: [...]}}"
                )
            found = Dictionary.for_column(self.entries[name], text[0].columns[column])
            self.dictionaries[column, name] = found
        for column in self.templates.lexicons():
            self.lexicons[column] = Lexicon.from_corpus(text[0], column)
        return [
            compile_template(t, text, self.atoms_of, self.new_atom, self.marks)
            for t in self.templates
        ]

    def learn_into(self, corpus: Corpus, parts: Parts) -> None:
        self._check(corpus)
        if not self.columns:
            self.columns = self._learn_from_text([corpus, *self.unlabelled])
            self.unlabelled, self.entries = (), {}  # all that is needed is learned
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
        finally:
            for lexicon in self.lexicons.values():
                lexicon.forget_samples()  # what comes next are others

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
        if along := self.templates.along_edges():
            _check_edges(corpus, along)

    def numbered(self, n: int) -> NDArray[np.int32]:
        """Numbers of n new features."""
        first = self._n_features
        if first + n >= 2**31:
            raise TemplateError("more than 2^31 features; raise min_count")
        self._n_features += n
        return np.arange(first, first + n, dtype=np.int32)

    def _encode(self, corpus: Corpus, *, grow: bool) -> Iterator[Encoded]:
        columns = {name: corpus.columns[name].only_used() for name in self.templates.columns()}
        atoms = [atom for atom in self.atoms.values() if not isinstance(atom, TypeAtom)]
        place = {id(atom): i for i, atom in enumerate(atoms)}
        of_types = next((a for a in self.atoms.values() if isinstance(a, TypeAtom)), None)
        kinds = None if of_types is None else corpus.edge_types
        edges = corpus.edges if self.templates.along_edges() else None
        corpus = _by_sample(Corpus(corpus.offsets, columns, edges=edges, edge_types=kinds))
        tables = [atom.table(corpus.columns[atom.column], grow=grow) for atom in atoms]
        types = np.zeros(0, np.int32)
        if of_types is not None and kinds is not None:
            types = of_types.table(kinds, grow=grow)
        for column in self.columns:
            column.prepare(corpus, grow=grow)
        new_ids = self.numbered if grow else None
        for first, chunk in _chunks(corpus):
            codes = np.empty((len(atoms), chunk.n_positions), np.int32)
            for row, atom, table in zip(codes, atoms, tables, strict=True):
                row[:] = atom.codes(chunk, table, first if grow else None)
            around = None
            if chunk.edges is not None:
                around = Neighbourhood(chunk.n_positions, chunk.edges)
            of_edges = types if chunk.edge_types is None else types[chunk.edge_types.codes]
            yield self._chunk(CodedChunk(chunk, codes, place, around, of_edges), new_ids)

    def _chunk(self, coded: CodedChunk, new_ids: NewIds | None) -> Encoded:
        from trellis.kernels.coding import assemble

        n = coded.chunk.n_positions
        of_other_form = NgramColumn | BagColumn | NumberColumn
        plain = [column for column in self.columns if not isinstance(column, of_other_form)]
        n_plain = sum(column.n_rows for column in plain)
        n_numbers = sum(isinstance(column, NumberColumn) for column in self.columns)
        single = np.empty((n_plain + n_numbers, n), np.int32)
        numbers = np.empty((n_numbers, n), np.float32)
        bags: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        at, valued = 0, 0
        for column in self.columns:  # in this order, in which new ids are given
            if isinstance(column, NgramColumn | BagColumn):
                bags.append(column.bag(coded, new_ids))
            elif isinstance(column, ConjunctionColumn):
                column.fill_row(single[at], coded, new_ids)
                at += 1
            elif isinstance(column, NumberColumn):
                single[n_plain + valued] = column.rows(coded, new_ids)
                numbers[valued] = column.numbers(coded)
                valued += 1
            else:
                single[at : at + column.n_rows] = column.rows(coded, new_ids)
                at += column.n_rows
        shift = np.cumsum([0] + [len(ids) for _, ids in bags])
        bag_ptr = np.array([p + s for (p, _), s in zip(bags, shift[:-1], strict=True)], np.int64)
        rows = assemble(
            single,
            numbers,
            bag_ptr.reshape(len(bags), n + 1),
            np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in bags)]),
            n_plain,
            n_numbers > 0,
        )
        return Encoded.made(coded.chunk.offsets, *rows)

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

    def only(self, keep: NDArray[np.bool_]) -> tuple[TemplateEncoder, NDArray[np.int64]]:
        from trellis.features.reduction import reduced

        return reduced(self, keep)


def encoder_for(
    features: Any,
    corpus: Corpus,
    unlabelled: Sequence[Corpus] | None = None,
    dictionaries: Any = None,
    *,
    structure: str = "chain",
) -> Encoder:
    """Return a new encoder of the kind a corpus needs, for what a user passed as ``features=``.

    With unlabelled text or dictionaries, templates that use them are added to a named set and to
    the default; for trees without types of edges, those that look at parents and children are
    added to the default. (Where edges have types, the labels at both ends and the type say more,
    and the words there are noise: benchmarks/along_edges.py.)
    """
    automatic = is_default(features)
    entries = given_dictionaries(dictionaries)
    if corpus.features is not None:
        if not automatic:
            raise DataError(
                "features= names templates over columns, but the samples are ready-made features; "
                "leave features='auto'"
            )
        if unlabelled is not None or entries:
            raise DataError(
                f"{'dictionaries' if unlabelled is None else 'unlabelled'}= is for templates over "
                "columns, but the samples are ready-made features; give each position a feature of "
                "your own instead, e.g. its word's cluster of trellis.features.brown_clusters"
            )
        return AttributeEncoder()
    numbers = [name for name, column in corpus.columns.items() if column.numbers]
    trees = structure == "tree" and corpus.edge_types is None
    templates = as_templates(features, list(corpus.columns), numbers, trees=trees)
    if is_set(features, list(corpus.columns)):
        if unlabelled is not None:
            first = corpus.columns[templates.columns()[0]]
            templates = templates.with_text(of_characters=is_of_characters(first))
        templates = templates.with_dictionaries(list(entries))
    if unlabelled is not None:
        _check_unlabelled(unlabelled, templates)
    named = {name for _, name in templates.dictionaries()}
    for name in entries:
        if name not in named:
            raise DataError(
                f"no template uses the dictionary {name!r}; add a line such as "
                f'dictionary(word, "{name}"), or leave it out'
            )
    return TemplateEncoder(templates, unlabelled or (), entries)


def unlabelled_text(given: Any, **how: Any) -> list[Corpus]:
    """What a user passed as ``unlabelled=``, as corpora; refuses what holds no text.

    ``how`` are the keywords of :func:`trellis.corpus.door.take_in`.
    """
    several = isinstance(given, list | tuple) and given and isinstance(given[0], Corpus)
    try:
        corpora = [take_in_any(part, **how).corpus for part in (given if several else [given])]
    except DataError as error:
        raise DataError(f"unlabelled=: {error}") from None
    if not any(corpus.n_positions for corpus in corpora):
        raise DataError("unlabelled= holds no text; leave it out")
    return [corpus for corpus in corpora if corpus.n_positions]


def _check_unlabelled(unlabelled: Sequence[Corpus], templates: Templates) -> None:
    if any(corpus.features is not None for corpus in unlabelled):
        raise DataError(
            "unlabelled= holds ready-made features; give raw text with the columns of the samples"
        )
    if not templates.from_text():
        raise DataError(
            "no template learns from unlabelled text; add a line such as cluster(word) or "
            "variety(char, 2..4), or leave unlabelled= out"
        )


def _check_edges(corpus: Corpus, templates: Sequence[Template]) -> None:
    """Refuse a corpus that lacks what templates along edges look at."""
    edges = corpus.edges
    if edges is None:
        raise DataError(
            f"templates along edges, as {str(templates[0])!r}, need trees or graphs: there are no "
            "edges"
        )
    for template in templates:
        typed = corpus.edge_types is not None or not len(edges)
        if not typed and any(term.call == TYPE for term in template.terms):
            raise DataError(
                f"the template {str(template)!r} needs types of edges, but these have none"
            )
        if any(term.steps for term in template.terms):
            several = np.flatnonzero(np.bincount(edges[:, 0]) > 1)
            if several.size:
                sample = int(np.searchsorted(corpus.offsets, several[0], side="right")) - 1
                raise DataError(
                    f"sample {sample}: node {several[0] - corpus.offsets[sample]} has several "
                    f"parents, but the template {str(template)!r} asks for one; an edge (a, b) "
                    "leads from a node a to its parent b. any(parents, …) takes all of them"
                )


def _by_sample(corpus: Corpus) -> Corpus:
    """The same with its edges, if there are any, sample by sample."""
    edges, types = corpus.edges, corpus.edge_types
    if edges is None or np.all(edges[1:, 0] >= edges[:-1, 0]):
        return corpus
    order = np.argsort(edges[:, 0], kind="stable")
    return replace(
        corpus, edges=edges[order], edge_types=None if types is None else types.take(order)
    )


def _chunks(corpus: Corpus) -> Iterator[tuple[int, Corpus]]:
    """Number of the first, and samples with about ``_CHUNK`` positions; arrays are views."""
    a = 0
    while a < len(corpus):
        target = corpus.offsets[a] + _CHUNK
        b = max(int(np.searchsorted(corpus.offsets, target, side="right")) - 1, a + 1)
        first, last = corpus.offsets[a], corpus.offsets[b]
        columns = {name: column.take(slice(first, last)) for name, column in corpus.columns.items()}
        edges, types = corpus.edges, corpus.edge_types
        if edges is not None:
            part = slice(*np.searchsorted(edges[:, 0], (first, last)))
            edges = edges[part] - first
            types = None if types is None else types.take(part)
        yield a, Corpus(corpus.offsets[a : b + 1] - first, columns, edges=edges, edge_types=types)
        a = b
