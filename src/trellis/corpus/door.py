"""The door: whatever a user calls «X» and «y» becomes a :class:`Corpus`, once.

Accepted samples (all of one kind within a call):

    Sample or Corpus          as they are
    [str, …]                  one symbol a position: the column ``word``, or the one that is named
    [[str, …], …]             attributes of each position, all indicators
    [{str: value}, …]         attributes of each position: a string value means the indicator
                              «key=value», a bool an indicator if true, a number the value itself
    {str: [str, …]}           the columns of a sample; all samples may be such a dict of lists
    (n, d) array or matrix    d real-valued attributes a position, named x0 … x(d-1); also sparse
    table                     a row a position (:mod:`trellis.corpus.tables`); one long table, too
    datasets of Hugging Face  :mod:`trellis.corpus.huggingface`
    documents of spaCy        :mod:`trellis.corpus.spacy_docs`

Where templates are to be used, what stands at a position is not attributes but symbols of columns:
a tuple with a symbol for each of the ``columns``, or a dict with their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trellis.arrays import as_list
from trellis.corpus.attributes import from_attributes, sequence
from trellis.corpus.corpus import Corpus, Sample
from trellis.corpus.form import Given
from trellis.corpus.huggingface import dataset, is_dataset
from trellis.corpus.number_rows import from_rows, is_sparse
from trellis.corpus.spacy_docs import docs, is_docs
from trellis.corpus.symbols import from_column_dicts, from_mapping, from_symbols
from trellis.corpus.tables import is_series, is_table, long_table, tables
from trellis.domains import strings
from trellis.errors import DataError

__all__ = ["as_corpus", "take_in"]


def as_corpus(
    X: Any, y: Any = None, *, columns: Sequence[str] | None = None, group: str | None = None
) -> Corpus:
    """Turn samples (and labels) in any accepted form into a corpus.

    Parameters
    ----------
    X
        Samples (see above).
    y : list of label lists, or as the form of the samples has them, optional
        Of tables also the name of a column, or a series with the labels of all rows.
    columns : list of str, optional
        Names of the columns: those that the tuples of positions are for, or those of a table that
        are to be taken.
    group : str, optional
        The column of a long table that says which rows are one sample.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> corpus = as_corpus([[{"w": "the", "cap": False}, {"w": "Cat", "cap": True, "len": 3}]])
    >>> list(corpus.features.names)
    ['w=the', 'w=Cat', 'cap', 'len']
    >>> corpus.features.values
    array([1., 1., 1., 3.], dtype=float32)
    >>> corpus = as_corpus([[("the", "DT"), ("cat", "NN")]], columns=["word", "pos"])
    >>> corpus[0].columns
    {'word': ['the', 'cat'], 'pos': ['DT', 'NN']}
    """
    return take_in(X, y, columns=columns, group=group).corpus


def take_in(
    X: Any,
    y: Any = None,
    *,
    columns: Sequence[str] | None = None,
    group: str | None = None,
    symbols: bool | None = None,
) -> Given:
    """Take samples in, and remember their form; as :func:`as_corpus`.

    ``symbols``: whether tuples and dicts at positions are symbols of columns, not attributes, and
    numbers of tables are; by default the former are if ``columns`` are given.
    """
    if columns is not None:
        columns = as_list(columns, "columns")
        strings.check("columns", columns)
        if not columns or len(set(columns)) < len(columns):
            raise DataError(f"columns must be different names, at least one; got {columns}")
    given = _taken(X, y, columns, group, symbols)
    if y is None or (isinstance(y, str) and given.corpus.labels is not None):
        return given
    return replace(given, corpus=replace(given.corpus, labels=given.labelled(y)))


def _taken(
    X: Any, y: Any, columns: list[str] | None, group: str | None, symbols: bool | None
) -> Given:
    if isinstance(X, Given):  # which a service has taken in before
        return X
    if isinstance(X, Corpus):
        return Given(X, fields=tuple(X.columns))
    if isinstance(X, Sample):
        return Given(X.corpus.take([X.index]), fields=tuple(X.corpus.columns))
    besides = (y,) if isinstance(y, str) else ()
    if is_table(X):
        return long_table(X, columns, group, besides, bool(symbols))
    if is_dataset(X):
        return dataset(X, y, columns)
    if is_docs(X):
        return docs(X, y, columns)
    if isinstance(X, Mapping):
        return from_mapping(X, y, columns)
    try:
        samples = as_list(X, "samples")
    except DataError:
        raise DataError(
            f"expected a corpus or a list of samples, got {type(X).__name__}; "
            "read files with read_conll and its relatives"
        ) from None
    # Questions to each of thousands of samples would take longer than reading short ones.
    plain = set(map(type, samples)) <= {list, tuple}
    if not plain and is_docs(samples):
        return docs(samples, y, columns)
    if not plain and any(map(is_table, samples)):
        return tables(samples, columns, besides, bool(symbols))
    if isinstance(y, str):
        raise DataError(
            f"y={y!r} names a column, but the samples are no tables; pass a list of label lists"
        )
    if not samples:
        return Given(Corpus(np.zeros(1, np.int64)))
    if not plain:
        if all(isinstance(s, Sample) for s in samples):
            corpus = _from_views(samples)
            return Given(corpus, fields=tuple(corpus.columns))
        samples = [list(s) if _is_words(s) else s for s in samples]
        if any(isinstance(s, np.ndarray) or is_sparse(s) for s in samples):
            return from_rows(samples, columns)
        if any(isinstance(s, Mapping) for s in samples):
            return from_column_dicts(samples, columns)
    return _lists(samples, columns, columns is not None if symbols is None else symbols)


def _lists(samples: list[Any], columns: list[str] | None, symbols: bool) -> Given:
    """Samples that are lists of positions."""
    first = next((s[0] for s in samples if isinstance(s, Sequence) and len(s)), None)
    if isinstance(first, str) and not isinstance(samples[0], str):
        listed = [sequence(s, i) for i, s in enumerate(samples)]
        name = "word" if columns is None else columns[0]
        return Given(Corpus.from_columns({name: listed}), fields=(name,))
    if symbols and first is not None:
        return from_symbols(samples, first, columns)
    return Given(from_attributes(samples))


def _is_words(sample: Any) -> bool:
    """Whether a sample is an array or a series of symbols."""
    if isinstance(sample, np.ndarray):
        return sample.ndim == 1 and sample.dtype.kind in "UOT"
    return is_series(sample)


def _from_views(samples: list[Sample]) -> Corpus:
    parent = samples[0].corpus
    if any(s.corpus is not parent for s in samples):
        raise DataError("samples of different corpora cannot be mixed in one call")
    return parent.take([s.index for s in samples])
