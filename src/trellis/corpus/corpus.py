"""The one container of the library: all samples stacked into flat arrays.

A corpus of S samples with N positions in all is

    offsets (S+1,)            sample s is the positions offsets[s] .. offsets[s+1]
    columns {name: Column}    raw symbols: codes (N,) into a table of distinct strings
    features                  attributes in CSR over positions, with their names
    labels                    a label set for each position (see :mod:`trellis.corpus.labels`)
    edges (m, 2)              pairs of positions; None for chains, whose neighbours are implied
    edge_types                a symbol for each edge, or None
    edge_features             attributes in CSR over edges, with their names, or None

Everything but ``offsets`` is optional: a file of columns has no features yet, a list of feature
dicts has no columns. No Python object is kept per position.
"""

from __future__ import annotations

import html
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_list, as_offsets, held, known
from trellis.corpus.labels import Label, Labels, as_positions
from trellis.domains import has, instance, nothing, strings, text
from trellis.errors import DataError
from trellis.html_view import labelled_text

__all__ = ["Column", "Corpus", "Features", "Sample"]

T = TypeVar("T")

_MANY = 512  # strings from which on kernels are faster than a dict
FLOAT32_LIMIT = 2.0**128 * (1 - 2.0**-25)
"""Numbers smaller than this in size round to a finite float32, which is how values are kept."""


@dataclass(frozen=True, eq=False)
class Column:
    """One symbol for each position: ``values[codes[t]]``; ``numbers`` if they stand for numbers."""

    codes: NDArray[np.int32]
    values: Sequence[str]
    numbers: bool = False

    def __post_init__(self) -> None:
        values = _strings(self.values, "column values")
        codes = as_array(self.codes, np.int32, "column codes", (None,), low=0, high=len(values))
        object.__setattr__(self, "codes", held(codes, self.codes))
        object.__setattr__(self, "values", values)

    @classmethod
    def from_strings(cls, strings: Sequence[str], *, numbers: bool = False) -> Column:
        """Code a flat sequence of strings, which may be numbers."""
        column = _coded_together([strings], bounds([len(strings)]))
        column = cls._one_by_one(strings) if column is None else column
        return known(Column, codes=column.codes, values=column.values, numbers=numbers)

    @classmethod
    def _one_by_one(cls, strings: Sequence[str]) -> Column:
        table: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        codes = np.fromiter(map(table.__getitem__, strings), np.int32, count=len(strings))
        return cls(codes, list(table))

    def take(self, positions: NDArray[Any] | slice) -> Column:
        """Symbols of some positions, in that order; the table of strings is shared."""
        codes = np.ascontiguousarray(self.codes[as_positions(positions, len(self.codes))])
        return known(Column, codes=codes, values=self.values, numbers=self.numbers)

    def only_used(self) -> Column:
        """The same with no more symbols than positions: without those of a larger corpus."""
        if len(self.values) <= len(self.codes):
            return self
        used, codes = np.unique(self.codes, return_inverse=True)
        values = [self.values[code] for code in used.tolist()]
        codes = codes.astype(np.int32)
        return known(Column, codes=codes, values=values, numbers=self.numbers)

    def strings(self) -> list[str]:
        """The symbols as strings, one for each position."""
        values = self.values
        return [values[c] for c in self.codes]

    def used(self) -> set[str]:
        """The symbols that occur."""
        return {self.values[code] for code in np.unique(self.codes)}


@dataclass(frozen=True, eq=False)
class Features:
    """Attributes of the positions in CSR form.

    Parameters
    ----------
    indptr : int64 array (N+1,)
    indices : int32 array
        Attribute ids; those of position t are ``indices[indptr[t]:indptr[t+1]]``.
    values : float32 array or None
        Their values; None when all are indicators (value 1).
    names : sequence of str
        Name of each attribute.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    names: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _strings(self.names, "feature names"))
        for name, dtype in (("indptr", np.int64), ("indices", np.int32)):
            given = getattr(self, name)
            array = held(as_array(given, dtype, f"feature {name}"), given)
            if array.ndim != 1:
                raise DataError(
                    f"feature {name} must be one-dimensional, got the shape {array.shape}"
                )
            object.__setattr__(self, name, array)
        if self.values is not None:
            object.__setattr__(self, "values", _float32s(self.values, "feature values"))
        if self.indptr.size == 0 or self.indptr[0] != 0 or self.indptr[-1] != self.indices.size:
            raise DataError("feature indptr must run from 0 to the number of indices")
        if np.any(np.diff(self.indptr) < 0):
            raise DataError("feature indptr must not decrease")
        if self.indices.size and not (
            0 <= self.indices.min() <= self.indices.max() < len(self.names)
        ):
            raise DataError(f"feature indices must lie in 0..{len(self.names) - 1}")
        if self.values is not None:
            if self.values.shape != self.indices.shape:
                raise DataError("feature values must be as many as feature indices")
            bad = np.flatnonzero(~np.isfinite(self.values))
            if bad.size:
                t = int(np.searchsorted(self.indptr, bad[0], side="right")) - 1
                name = self.names[self.indices[bad[0]]]
                raise DataError(
                    f"attribute {name!r} at position {t} of the corpus is "
                    f"{self.values[bad[0]]}; values must be finite"
                )

    def take(self, positions: Sequence[int] | NDArray[Any]) -> Features:
        """Features of some positions, in that order; the names are shared."""
        n = len(self.indptr) - 1
        positions = as_array(positions, np.int64, "positions", (None,), low=0, high=n)
        counts = self.indptr[positions + 1] - self.indptr[positions]
        where = ranges(self.indptr[positions], counts)
        values = None if self.values is None else self.values[where]
        return known(
            Features,
            indptr=bounds(counts),
            indices=self.indices[where],
            values=values,
            names=self.names,
        )

    def identity(self) -> tuple[Any, ...]:
        """What the features say, however their names are numbered."""
        values = self.values
        if values is not None and (values == 1).all():
            values = None
        return (self.indptr.astype(np.int64), *_by_first_use(self.indices, self.names), values)

    def only_used(self) -> Features:
        """The same with no more names than entries: without those of a larger corpus."""
        if len(self.names) <= len(self.indices):
            return self
        used, indices = np.unique(self.indices, return_inverse=True)
        return known(
            Features,
            indptr=self.indptr,
            indices=indices.astype(np.int32),
            values=self.values,
            names=[self.names[i] for i in used.tolist()],
        )


@dataclass(frozen=True, eq=False)
class Corpus:
    """Samples stacked into flat arrays (see the module for the layout).

    A corpus has a length (its number of samples), ``corpus[i]`` is a :class:`Sample`,
    ``corpus[a:b]`` and ``corpus.take(indices)`` are corpora. Usually made by a reader
    (:func:`trellis.read_conll`, …) or at the door of an estimator.

    Examples
    --------
    >>> from trellis import Corpus
    >>> words, labels = [["the", "cat"], ["sat"]], [["D", "N"], ["V"]]
    >>> corpus = Corpus.from_columns({"word": words}, labels)
    >>> len(corpus), corpus.n_positions
    (2, 3)
    >>> corpus[0].columns["word"], corpus[0].labels
    (['the', 'cat'], ['D', 'N'])
    """

    offsets: NDArray[np.int64]
    columns: Mapping[str, Column] = field(default_factory=dict)
    features: Features | None = None
    labels: Labels | None = None
    edges: NDArray[np.int64] | None = None
    label_name: str = "label"
    edge_types: Column | None = None
    edge_features: Features | None = None

    def __post_init__(self) -> None:
        _COLUMNS.check("columns", self.columns)
        _FEATURES.check("features", self.features)
        _LABELS.check("labels", self.labels)
        _EDGE_TYPES.check("edge_types", self.edge_types)
        _FEATURES.check("edge_features", self.edge_features)
        text.check("label_name", self.label_name)
        offsets = held(as_offsets(self.offsets, "corpus offsets"), self.offsets)
        object.__setattr__(self, "offsets", offsets)
        n = self.n_positions
        if self.edges is not None:
            edges = as_array(self.edges, np.int64, "edges", (None, 2), low=0, high=n)
            object.__setattr__(self, "edges", held(edges, self.edges))
        for name, column in self.columns.items():
            text.check("column name", name)
            _COLUMN.check(f"column {name!r}", column)
            if column.codes.shape != (n,):
                raise DataError(f"column {name!r} has {len(column.codes)} symbols, expected {n}")
        if self.features is not None and self.features.indptr.size != n + 1:
            raise DataError(f"features cover {self.features.indptr.size - 1} positions, not {n}")
        if self.labels is not None and len(self.labels) != n:
            raise DataError(f"there are {len(self.labels)} labels for {n} positions")
        if self.edges is not None:
            ends = np.searchsorted(offsets, self.edges, side="right") - 1
            across = np.flatnonzero(ends[:, 0] != ends[:, 1])
            if across.size:
                a, b = ends[across[0]]
                raise DataError(f"edge {across[0]} joins samples {a} and {b}; edges stay in one")
        n_edges = 0 if self.edges is None else len(self.edges)
        if self.edge_types is not None and len(self.edge_types.codes) != n_edges:
            n_types = len(self.edge_types.codes)
            raise DataError(f"there are {n_types} edge types for {n_edges} edges")
        if self.edge_features is not None and self.edge_features.indptr.size != n_edges + 1:
            n_own = self.edge_features.indptr.size - 1
            raise DataError(f"edge features cover {n_own} edges, not {n_edges}")

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Sequence[Sequence[str]]],
        labels: Sequence[Sequence[Label]] | None = None,
    ) -> Corpus:
        """Corpus from lists of symbol lists, one entry for each column, and optional labels."""
        _COLUMNS.check("columns", columns)
        if not columns:
            raise DataError("a corpus needs at least one column")
        listed = {name: as_list(given, f"samples of {name}") for name, given in columns.items()}
        first = next(iter(listed))
        lengths = lengths_of(listed[first], first)
        offsets = bounds(lengths)
        coded = {}
        for name, samples in listed.items():
            check_lengths(lengths, samples, first, name)
            coded[name] = _coded_together(samples, offsets) or _coded_alone(samples, name)
        coded_labels = None
        if labels is not None:
            labels = as_list(labels, "samples of labels")
            check_lengths(lengths, labels, first, "labels")
            coded_labels = Labels.from_lists(labels)
        return cls(offsets, coded, labels=coded_labels)

    @property
    def n_positions(self) -> int:
        """Number of positions (tokens) of all samples."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of positions of each sample."""
        return np.diff(self.offsets)

    @property
    def nbytes(self) -> int:
        """Bytes held by the flat arrays (the tables of distinct strings not counted)."""
        parts = (
            self, *self.columns.values(), self.features, self.labels, self.edge_types,
            self.edge_features,
        )  # fmt: skip
        values = [value for part in parts if part is not None for value in vars(part).values()]
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def __repr__(self) -> str:
        parts = [f"{len(self)} samples", f"{self.n_positions} positions"]
        if self.columns:
            parts.append(f"columns {', '.join(self.columns)}")
        if self.features is not None:
            parts.append(f"{len(self.features.names)} attributes")
        if self.labels is not None:
            parts.append(f"{len(self.labels.classes)} labels")
        if self.edges is not None:
            own = self.edge_features
            what = "" if own is None else f" with {len(own.names)} attributes"
            parts.append(f"{len(self.edges)} edges{what}")
        return f"<Corpus: {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        """What there is, and the first samples."""
        shown = "".join(sample._repr_html_() for sample in self[:3])
        return f"<p>{html.escape(repr(self))}</p>{shown}"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Sample]:
        return (Sample(self, i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Sample | Corpus:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"sample {i} of a corpus of {len(self)}")
        return Sample(self, i % len(self))

    def take(self, samples: Sequence[int] | NDArray[Any]) -> Corpus:
        """Corpus of some samples, in that order; tables of strings are shared."""
        chosen = as_array(samples, np.int64, "samples", (None,), low=0, high=len(self))
        lengths = self.offsets[chosen + 1] - self.offsets[chosen]
        offsets = bounds(lengths)
        positions = ranges(self.offsets[chosen], lengths)
        edges, types, own = self.edges, self.edge_types, self.edge_features
        if edges is not None:
            numbers, shift = self._edges_of(chosen, offsets)
            edges = edges[numbers] + shift[:, None]
            if types is not None:
                types = types.take(numbers)
            if own is not None:
                own = own.take(numbers)
        return replace(
            self,
            offsets=offsets,
            columns={name: column.take(positions) for name, column in self.columns.items()},
            features=None if self.features is None else self.features.take(positions),
            labels=None if self.labels is None else self.labels.take(positions),
            edges=edges,
            edge_types=types,
            edge_features=own,
        )

    def _edges_of(
        self, chosen: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the edges of some samples, and by how much their positions move."""
        assert self.edges is not None
        owner = np.searchsorted(self.offsets, self.edges[:, 0], side="right") - 1
        by_owner = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[by_owner], np.arange(len(self) + 1))
        counts = np.diff(start)[chosen]
        numbers = by_owner[ranges(start[chosen], counts)]
        return numbers, np.repeat(offsets[:-1] - self.offsets[chosen], counts)

    def with_labels(self, y: Sequence[Sequence[Label]]) -> Corpus:
        """The same corpus with other labels (str, None or sets of str at each position)."""
        y = as_list(y, "samples of labels")
        check_lengths(self.lengths.tolist(), y, "samples", "labels")
        return replace(self, labels=Labels.from_lists(y))

    def only_used_labels(self) -> Corpus:
        """The same without the classes that no position may have: those of a larger corpus."""
        labels = self.labels
        assert labels is not None
        names = tuple(labels.classes[i] for i in labels.used())
        return replace(self, labels=labels.recoded(names))

    def check_samples(self, purpose: str) -> None:
        """Refuse a corpus without samples, and samples without positions, for a purpose."""
        if len(self) == 0:
            raise DataError(f"{purpose} needs at least one sequence; the corpus is empty")
        empty = np.flatnonzero(self.lengths == 0)
        if empty.size:
            raise DataError(f"sample {empty[0]} is empty; remove empty sequences before {purpose}")

    def label_lists(self) -> list[list[Label]]:
        """The labels, one list for each sample."""
        if self.labels is None:
            raise DataError("this corpus has no labels")
        return split(self.labels.tolist(), self.offsets)

    def identity(self) -> tuple[Any, ...]:
        """What the corpus says, however it came about (file, lists, a part of a larger one)."""
        columns = [(name, *_by_first_use(c.codes, c.values)) for name, c in self.columns.items()]
        labels = types = None
        features, own = (f and f.identity() for f in (self.features, self.edge_features))
        if self.labels is not None:
            classes = self.labels.classes
            sets: list[Any] = [[name] for name in classes]
            sets += [None, *([classes[i] for i in sorted(k)] for k in self.labels.sets)]
            labels = _by_first_use(self.labels.ids, sets)
        if self.edge_types is not None:
            types = _by_first_use(self.edge_types.codes, self.edge_types.values)
        known = self.offsets, sorted(columns, key=itemgetter(0)), features, labels
        # What has no features of edges is what it was before there were any.
        return (*known, self.edges, types) if own is None else (*known, self.edges, types, own)


@dataclass(frozen=True, repr=False)
class Sample:
    """One sample of a corpus: a view, accepted wherever a corpus of one sample is."""

    corpus: Corpus
    index: int

    def identity(self) -> tuple[Any, ...]:
        """What the sample says, in whatever corpus it is."""
        return self.corpus.take([self.index]).identity()

    def __repr__(self) -> str:
        text = " ".join(next(iter(self.columns.values()), []))
        shown = f"{text[:57]}…" if len(text) > 60 else text
        return f"<Sample {self.index}: {len(self)} positions{shown and f'; {shown}'}>"

    def _repr_html_(self) -> str:
        """The first column, or numbers of positions, with the labels."""
        symbols = next(iter(self.columns.values()), list(map(str, range(len(self)))))
        return labelled_text(symbols, self.labels)

    def __len__(self) -> int:
        a, b = self.corpus.offsets[self.index : self.index + 2]
        return int(b - a)

    @property
    def columns(self) -> dict[str, list[str]]:
        """The symbols of this sample, column by column."""
        a, b = self.corpus.offsets[self.index : self.index + 2]
        return {
            name: [column.values[c] for c in column.codes[a:b]]
            for name, column in self.corpus.columns.items()
        }

    @property
    def labels(self) -> list[Label] | None:
        """The labels of this sample (str, None or a set at each position), or None."""
        if self.corpus.labels is None:
            return None
        a, b = self.corpus.offsets[self.index : self.index + 2]
        return self.corpus.labels.take(slice(a, b)).tolist()


_COLUMN = instance(Column)
_COLUMNS = has("keys", "items", words="a mapping of names to columns")
_FEATURES = nothing | instance(Features)
_LABELS = nothing | instance(Labels)
_EDGE_TYPES = nothing | _COLUMN


def _strings(values: Any, what: str) -> list[str]:
    """Strings as a list, checked once: parts of a corpus share it."""
    listed = as_list(values, what)
    strings.check(what, listed)
    return listed


def _coded_together(samples: list[Any], offsets: NDArray[np.int64]) -> Column | None:
    """Column of the symbols of samples, by the bytes of all: a fraction of the time of a dict.

    ``offsets`` are the bounds of the samples. None if they are few, or cannot be told apart by
    bytes: some are no strings, or hold a NUL.
    """
    n = int(offsets[-1])
    if n < _MANY or not set(map(type, samples)) <= {list, tuple}:
        return None
    try:
        # A sample at a time, so that its strings are near when they are looked at again.
        text = "\0".join(map("\0".join, filter(None, samples)))
    except TypeError:
        return None
    coded = code_joined(text.encode("utf-8", "surrogatepass"), n)
    if coded is None:
        return None
    codes, where = coded
    sample = np.searchsorted(offsets, where, side="right") - 1
    at = (where - offsets[sample]).tolist()
    holders = map(samples.__getitem__, sample.tolist())
    values = list(map(operator.getitem, holders, at))
    return known(Column, codes=codes, values=values, numbers=False)


def code_joined(data: bytes, n: int) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    r"""Codes of n strings joined by NUL, in order of first appearance, and where each first stands.

    None if there are not so many, because one of them holds a NUL.

    Examples
    --------
    >>> code_joined(b"b\0a\0b", 3)
    (array([0, 1, 0], dtype=int32), array([0, 1]))
    """
    from trellis.kernels.text import code_fields

    buffer = np.frombuffer(data, np.uint8)
    last = np.append(np.flatnonzero(buffer == 0), len(buffer))
    if len(last) != n:
        return None
    first = np.empty_like(last)
    first[0], first[1:] = 0, last[:-1] + 1
    return code_fields(buffer, first, last)


def _coded_alone(samples: list[Any], name: str) -> Column:
    """Column of the symbols of samples, one by one; refuses what is no string."""
    flat = list(itertools.chain.from_iterable(samples))
    for kind in set(map(type, flat)):
        if not issubclass(kind, str):
            odd = next(symbol for symbol in flat if type(symbol) is kind)
            raise DataError(f"column {name!r} holds {odd!r}; expected strings")
    return Column._one_by_one(flat)


def _float32s(values: Any, what: str) -> NDArray[np.float32]:
    """Numbers as a read-only array; those beyond float32 become infinite."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"got an array of {array.dtype}")
        with np.errstate(over="ignore"):
            array = np.require(array, np.float32, ["C", "A", "E"])
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} must be numbers: {error}") from None
    return held(array, values)


def _by_first_use(
    codes: NDArray[Any], values: Sequence[Any]
) -> tuple[list[Any], NDArray[np.int64]]:
    """The values in use, by first occurrence, and codes into them: the same for every table."""
    used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return [values[code] for code in used[order]], rank[inverse]


def split(flat: Sequence[T], offsets: NDArray[np.int64]) -> list[list[T]]:
    """Cut a flat sequence into one list for each sample."""
    return [list(flat[a:b]) for a, b in itertools.pairwise(offsets.tolist())]


def bounds(counts: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Where each of some consecutive runs starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The integers start .. start + count − 1 of each pair, one range after the other."""
    return np.arange(counts.sum()) + np.repeat(starts - bounds(counts)[:-1], counts)


def lengths_of(samples: Any, what: str) -> list[int]:
    """Number of positions of each sample; refuses samples that have none."""
    listed = as_list(samples, f"samples of {what}")
    try:
        return list(map(len, listed))
    except TypeError:
        for s, sample in enumerate(listed):
            try:
                len(sample)
            except TypeError:
                raise DataError(
                    f"{what} of sample {s}: expected a list of positions, got {sample!r:.80}"
                ) from None
        raise


def check_lengths(expected: Sequence[int], samples: Any, of: str, what: str) -> None:
    """Raise a DataError that names the first sample that is not of the length expected."""
    lengths = lengths_of(samples, what)
    if len(expected) != len(lengths):
        raise DataError(
            f"{of} and {what} differ in number: {len(expected)} and {len(lengths)} samples"
        )
    if list(expected) != lengths:
        s = next(s for s, a in enumerate(expected) if a != lengths[s])
        a, b = expected[s], lengths[s]
        raise DataError(f"sample {s}: {of} has {a} positions, {what} has {b}")
