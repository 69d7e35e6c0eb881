"""Samples with edges: the door of tree and graph models, and a plain text format.

At the door edges are given sample by sample, (m, 2) integers that number the positions of the
sample from 0: in the corpus itself, as ``edges=``, or with each sample as a pair (features, edges).
Features of edges are in :mod:`trellis.corpus.edge_features`.

The text format is a column file (:mod:`trellis.corpus.conll`) whose samples may have lines of edges
after their nodes, which are numbered from 1; an edge may have a type, and after a bar features, a
name or ``name:value`` each, as in CRFsuite's format (:mod:`trellis.corpus.crfsuite`):

    sky     blue   A
    roof    red    B
    wall    white  B
    @edge 1 2 above
    @edge 2 3 above | contrast:2.5 touching
    @edge 1 3 | contrast:0.5
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_list
from trellis.corpus.conll import Fields, format_conll, read_conll
from trellis.corpus.corpus import Column, Corpus, Features, Sample, bounds, split
from trellis.corpus.crfsuite import format_attribute, parse_attribute
from trellis.corpus.door import take_in
from trellis.corpus.edge_features import edge_attributes, is_triple, split_edges
from trellis.corpus.form import Given, One
from trellis.corpus.huggingface import is_dataset
from trellis.corpus.labels import Label
from trellis.corpus.networks import Links, Networks, is_network, plain_edges
from trellis.corpus.spacy_docs import is_docs
from trellis.corpus.tables import is_table, node_names
from trellis.errors import DataError
from trellis.files.text import ReadText, Source, read_bytes, write_text

__all__ = ["as_graph_corpus", "format_graphs", "read_graphs", "write_graphs"]

_MARK = b"@edge"
_BAR = "|"  # features of an edge come after it
_HIDDEN = b"\x01"  # stands for a line that is not a node, so that lines keep their numbers


def as_graph_corpus(
    X: Any,
    y: Sequence[Sequence[Label]] | None = None,
    edges: Sequence[Any] | None = None,
    edge_types: Sequence[Sequence[str]] | None = None,
    edge_features: Sequence[Any] | None = None,
) -> Corpus:
    """Turn samples, labels and edges in any accepted form into a corpus with edges.

    Parameters
    ----------
    X : Corpus, list of samples or list of pairs (sample, edges)
        Samples as for :func:`trellis.corpus.as_corpus`.
    y : list of label lists, optional
    edges : list of integer arrays (m, 2), optional
        One for each sample, in place of edges that ``X`` has. Positions count from 0 in each. Edges
        may be triples (a, b, {name: value}) with their features.
    edge_types : list of lists of str, optional
        Type of each edge.
    edge_features : list of arrays (m, d), of lists of dicts or of lists of lists of str, optional
        Features of each edge: numbers, or what :func:`trellis.corpus.as_corpus` takes for a
        position.

    Examples
    --------
    >>> from trellis.corpus import as_graph_corpus
    >>> corpus = as_graph_corpus([["a", "b"], ["c", "d"]], edges=[[(0, 1)], [(1, 0)]])
    >>> corpus.edges.tolist()
    [[0, 1], [3, 2]]
    >>> near = as_graph_corpus([["a", "b"]], edges=[[(0, 1)]], edge_features=[[{"distance": 2.5}]])
    >>> near.edge_features.names, near.edge_features.values
    (['distance'], array([2.5], dtype=float32))
    """
    corpus = as_any_corpus(X, y, edges, edge_types, edge_features)
    check_edges(corpus)
    return corpus


def check_edges(corpus: Corpus) -> None:
    """Refuse a corpus without edges, and edges that lead nowhere or are there twice."""
    if corpus.edges is None:
        raise DataError(
            "there are no edges: pass edges=, samples (features, edges), or a corpus with edges "
            "(read_conllu, read_graphs)"
        )
    _refuse_loops(corpus.edges, corpus.offsets)


def as_any_corpus(
    X: Any, y: Any = None, edges: Any = None, edge_types: Any = None, edge_features: Any = None
) -> Corpus:
    """Do the same for chains, trees and graphs: there may be no edges, and any are taken."""
    return take_in_any(X, y, edges, edge_types, edge_features).corpus


def take_in_any(
    X: Any,
    y: Any = None,
    edges: Any = None,
    edge_types: Any = None,
    edge_features: Any = None,
    **how: Any,
) -> Given:
    """Take in samples that may have edges, and remember their form.

    ``how`` are the keywords of :func:`trellis.corpus.door.take_in`. A graph of NetworkX is a
    sample, and a list of them is several. A table, an (n, d) array or a sparse matrix by itself is
    one sample if edges come with it.
    """
    alone = is_network(X) or (edges is not None and _is_one(X, how.get("group")))
    if alone:
        X, edges, edge_types, edge_features = (
            None if part is None else [part] for part in (X, edges, edge_types, edge_features)
        )
        y = y if y is None or isinstance(y, str) else [y]
    if edges is None and not isinstance(X, Corpus | Sample | str) and _is_listed(X):
        X = list(X)
        if X and all(_is_pair(sample) for sample in X):
            X, edges = [s for s, _ in X], [e for _, e in X]
    if isinstance(X, list) and X and all(map(is_network, X)):
        form = Networks(X)
        edges = X if edges is None else edges
        positions = form.positions([y] if isinstance(y, str) else [])
        given = take_in(positions, None if y is None else form.label_lists(y), **how)
        given = replace(given, form=form)
    else:
        given = take_in(X, y, **how)
    corpus = given.corpus
    if edges is not None:
        links = _links(edges, X, corpus)
        edges, attributes = split_edges([link.edges for link in links])
        if attributes is None and any(link.features is not None for link in links):
            attributes = [link.features or [{}] * len(link.edges) for link in links]
        if edge_types is None and any(link.types is not None for link in links):
            edge_types = [link.types or [] for link in links]
        stacked = _stacked(edges, corpus)
        corpus = replace(corpus, edges=stacked, edge_types=None, edge_features=None)
        if attributes is not None and edge_features is not None:
            raise DataError("the edges carry their features; leave out edge_features")
        edge_features = edge_features if attributes is None else attributes
    if edge_types is not None:
        corpus = replace(corpus, edge_types=_types(edge_types, edges, corpus))
    if edge_features is not None:
        counts = _edge_counts("edge_features", edges, corpus)
        corpus = replace(corpus, edge_features=edge_attributes(edge_features, counts))
    return replace(given, corpus=corpus, form=One(given.form) if alone else given.form)


def _is_one(X: Any, group: str | None) -> bool:
    """Whether this is the features of one sample, not a list of samples."""
    if is_table(X):
        return group is None
    return hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object)


def _is_listed(X: Any) -> bool:
    return isinstance(X, Iterable) and not (is_table(X) or is_dataset(X) or is_docs(X))


def _links(edges: Any, X: Any, corpus: Corpus) -> list[Links]:
    """Edges of each sample in this library's form."""
    listed = as_list(edges, "edges of the samples")
    if len(listed) != len(corpus):
        raise DataError(f"there are edges for {len(listed)} samples, but {len(corpus)} samples")
    names = [node_names(sample) for sample in X] if isinstance(X, list) else [None] * len(listed)
    return plain_edges(listed, names)


def _edge_counts(what: str, edges: Any, corpus: Corpus) -> NDArray[np.int64]:
    """How many edges each sample has; refuses edges that are not sample by sample."""
    if corpus.edges is None:
        raise DataError(f"{what} need edges")
    owner = np.searchsorted(corpus.offsets, corpus.edges[:, 0], side="right") - 1
    if edges is None and np.any(np.diff(owner) < 0):
        raise DataError(f"{what} need the edges of the corpus sample by sample; pass edges=")
    return np.bincount(owner, minlength=len(corpus))


def _is_pair(sample: Any) -> bool:
    """Whether a sample is (features, edges): a tuple whose second part is pairs of integers.

    Edges may have features, (a, b, {name: value}).
    """
    if not (isinstance(sample, tuple) and len(sample) == 2):
        return False
    second = sample[1]
    if isinstance(second, np.ndarray):
        return second.ndim == 2 or second.size == 0
    return isinstance(second, list | tuple) and all(
        e.shape == (2,)
        if isinstance(e, np.ndarray)
        else is_triple(e)
        or (isinstance(e, list | tuple) and len(e) == 2 and not isinstance(e[0], str))
        for e in second
    )


def _stacked(edges: Sequence[Any], corpus: Corpus) -> NDArray[np.int64]:
    parts = [np.zeros((0, 2), np.int64)]
    for s, pairs in enumerate(edges):
        array = as_array(pairs, np.int64, f"edges of sample {s}", (None, 2))
        n = int(corpus.lengths[s])
        outside = np.flatnonzero((array < 0).any(axis=1) | (array >= n).any(axis=1))
        if outside.size:
            a, b = array[outside[0]]
            raise DataError(
                f"sample {s}, edge {outside[0]} joins nodes {a} and {b}; it has nodes 0 to {n - 1}"
            )
        parts.append(array + corpus.offsets[s])
    return np.concatenate(parts)


def _types(types: Sequence[Sequence[str]], edges: Sequence[Any] | None, corpus: Corpus) -> Column:
    flat: list[str] = []
    counts = _edge_counts("edge_types", edges, corpus)
    given = as_list(types, "edge types of the samples")
    if len(given) != len(corpus):
        raise DataError(f"there are edge types for {len(given)} samples, not {len(corpus)}")
    for s, listed in enumerate(given):
        names = as_list(listed, f"edge types of sample {s}")
        if len(names) != counts[s]:
            raise DataError(f"sample {s} has {counts[s]} edges, but edge_types of another number")
        for name in names:
            if not isinstance(name, str):
                raise DataError(f"edge_types of sample {s} hold {name!r}; expected strings")
            flat.append(name)
    return Column.from_strings(flat)


def _refuse_loops(edges: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
    def place(e: int) -> str:
        s = int(np.searchsorted(offsets, edges[e, 0], side="right")) - 1
        a, b = edges[e] - offsets[s]
        return f"sample {s}: the edge between nodes {a} and {b}"

    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loops.size:
        raise DataError(f"{place(int(loops[0]))} joins a node to itself; remove it")
    low, high = edges.min(axis=1, initial=1 << 62), edges.max(axis=1, initial=-1)
    order = np.lexsort((high, low))
    again = np.flatnonzero((np.diff(low[order]) == 0) & (np.diff(high[order]) == 0))
    if again.size:
        raise DataError(f"{place(int(order[again[0] + 1]))} is there twice; give each edge once")


def read_graphs(
    source: Source,
    columns: Sequence[str],
    label: str | None = None,
    *,
    separator: str | None = None,
    skip: str = "",
) -> Corpus:
    r"""Read a column file with lines of edges.

    Parameters
    ----------
    source, columns, label, separator, skip
        As for :func:`trellis.read_conll`.

    Returns
    -------
    Corpus
        With edges, their types if there are any (then those without one have the type ""), and
        their features if there are any.

    Examples
    --------
    >>> import io
    >>> from trellis import read_graphs
    >>> file = io.BytesIO(b"a X\nb Y\n@edge 1 2\n\nc X\n")
    >>> corpus = read_graphs(file, ["word", "label"], "label")
    >>> len(corpus), corpus.edges.tolist(), corpus.label_lists()
    (2, [[0, 1]], [['X', 'Y'], ['X']])
    """
    name, data = read_bytes(source)
    lines = data.split(b"\n")
    comment = skip.encode()
    edges: list[tuple[int, int]] = []
    types: list[str] = []
    features: list[dict[str, float]] = []
    first = n = 0  # nodes before the sample, and so far
    for i, line in enumerate(lines):
        fields = line.split()
        if not fields:
            first = n
        elif fields[0] == _MARK:
            where = f"{name}, line {i + 1}"
            a, b, kind, own = _edge(fields, where, n - first)
            edges.append((first + a - 1, first + b - 1))
            types.append(kind)
            features.append(_attributes(own, where))
            lines[i] = _HIDDEN
        elif comment and line.startswith(comment):
            lines[i] = _HIDDEN
        else:
            n += 1
    file = ReadText(name, b"\n".join(lines))
    corpus = read_conll(file, columns, label, separator=separator, skip=_HIDDEN.decode())
    kinds = Column.from_strings(types) if any(types) else None
    attributes = None
    if any(features):
        attributes = edge_attributes([features], np.array([len(features)]))
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    return replace(corpus, edges=pairs, edge_types=kinds, edge_features=attributes)


def _edge(fields: list[bytes], where: str, n_nodes: int) -> tuple[int, int, str, list[str]]:
    """Ends, type and features, as text, of an edge of a sample that has so many nodes."""
    ends = [f.decode("utf-8", "replace") for f in fields[1:]]
    own: list[str] = []
    bar = next((i for i in (2, 3) if len(ends) > i and ends[i] == _BAR), len(ends))
    if bar + 1 < len(ends):  # a bar at the end is a type: without features it parts nothing
        ends, own = ends[:bar], ends[bar + 1 :]
    if len(ends) not in (2, 3) or not all(e.isdecimal() and e.isascii() for e in ends[:2]):
        raise DataError(
            f"{where}: expected '@edge A B' or '@edge A B TYPE', A and B node numbers; features "
            "come after a bar: '@edge A B TYPE | NAME:VALUE'"
        )
    for end in ends[:2]:
        if len(end) > 9 or not 1 <= int(end) <= n_nodes:
            raise DataError(
                f"{where}: an edge to node {end}, but its sample has {n_nodes} nodes so far"
            )
    return int(ends[0]), int(ends[1]), ends[2] if len(ends) == 3 else "", own


def _attributes(fields: list[str], where: str) -> dict[str, float]:
    """Features of an edge, by name."""
    found: dict[str, float] = {}
    for field in fields:
        try:
            name, value = parse_attribute(field)
            if name in found:
                raise ValueError("is there twice")
        except ValueError as error:
            raise DataError(f"{where}: feature {field!r}: {error}") from None
        found[name] = value
    return found


def write_graphs(
    path: str | os.PathLike[Any],
    corpus: Corpus,
    *,
    labels: Fields | None = None,
    separator: str = " ",
) -> None:
    """Write a corpus with edges as text: as :func:`trellis.write_conll`, with lines of edges."""
    write_text(path, format_graphs(corpus, labels=labels, separator=separator))


def format_graphs(corpus: Corpus, labels: Fields | None = None, separator: str = " ") -> str:
    """Text that :func:`write_graphs` writes."""
    if corpus.edges is None:
        raise DataError("this corpus has no edges; write it as a column file")
    samples = format_conll(corpus, labels=labels, separator=separator).split("\n\n")
    owner = np.searchsorted(corpus.offsets, corpus.edges[:, 0], side="right") - 1
    order = np.argsort(owner, kind="stable")
    names = [""] * len(owner) if corpus.edge_types is None else corpus.edge_types.strings()
    for name in dict.fromkeys(names):
        if any(c.isspace() for c in name):
            raise DataError(f"edge type {name!r} has a space, which this format cannot hold")
    own = _attribute_texts(corpus.edge_features, len(owner))
    if _BAR in names and any(own):
        raise DataError(f"edge type {_BAR!r} stands before features, which this format cannot hold")
    rows = [
        f"{_MARK.decode()} {a} {b} {names[e]}".rstrip() + own[e]
        for e, (a, b) in zip(
            order, corpus.edges[order] - corpus.offsets[owner[order], None] + 1, strict=True
        )
    ]
    lines = split(rows, bounds(np.bincount(owner, minlength=len(corpus))))
    return "".join(
        "\n".join([nodes, *more]) + "\n\n"
        for nodes, more in zip(samples[: len(corpus)], lines, strict=True)
    )


def _attribute_texts(features: Features | None, n_edges: int) -> list[str]:
    """What is written of the features of each edge: nothing, or a bar and these."""
    if features is None:
        return [""] * n_edges
    for code in np.unique(features.indices).tolist():
        name = features.names[code]
        if not name or any(c.isspace() for c in name):
            raise DataError(
                f"edge feature {name!r} is empty or has a space, which this format cannot hold"
            )
    texts = []
    for a, b in itertools.pairwise(features.indptr.tolist()):
        values = np.ones(b - a) if features.values is None else features.values[a:b]
        summed: dict[str, float] = {}  # one that stands there twice is written as the sum
        for code, value in zip(features.indices[a:b].tolist(), values.tolist(), strict=True):
            name = features.names[code]
            summed[name] = summed.get(name, 0.0) + value
        fields = [format_attribute(name, value) for name, value in summed.items()]
        texts.append(f" {_BAR} {' '.join(fields)}" if fields else "")
    return texts
