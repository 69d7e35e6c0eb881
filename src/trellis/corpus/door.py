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

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list, known
from trellis.corpus.corpus import (
    FLOAT32_LIMIT,
    Column,
    Corpus,
    Features,
    Sample,
    bounds,
)
from trellis.corpus.form import Given
from trellis.corpus.huggingface import dataset, is_dataset
from trellis.corpus.spacy_docs import docs, is_docs
from trellis.corpus.tables import dense_features, is_series, is_table, long_table, tables
from trellis.domains import strings
from trellis.errors import DataError

__all__ = ["as_corpus", "take_in"]

_NUMBERS = frozenset({int, np.float32, np.float64, np.int32, np.int64})


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
        return _from_mapping(X, y, columns)
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
        if any(isinstance(s, np.ndarray) or _is_sparse(s) for s in samples):
            return _from_arrays(samples, columns)
        if any(isinstance(s, Mapping) for s in samples):
            return _from_column_dicts(samples, columns)
    return _lists(samples, columns, columns is not None if symbols is None else symbols)


def _lists(samples: list[Any], columns: list[str] | None, symbols: bool) -> Given:
    """Samples that are lists of positions."""
    first = next((s[0] for s in samples if isinstance(s, Sequence) and len(s)), None)
    if isinstance(first, str) and not isinstance(samples[0], str):
        listed = [_sequence(s, i) for i, s in enumerate(samples)]
        name = "word" if columns is None else columns[0]
        return Given(Corpus.from_columns({name: listed}), fields=(name,))
    if symbols and first is not None:
        return _from_symbols(samples, first, columns)
    return Given(_from_attributes(samples))


def _is_words(sample: Any) -> bool:
    """Whether a sample is an array or a series of symbols."""
    if isinstance(sample, np.ndarray):
        return sample.ndim == 1 and sample.dtype.kind in "UOT"
    return is_series(sample)


def _from_mapping(X: Mapping[str, Any], y: Any, columns: list[str] | None) -> Given:
    """Samples as a dict of columns, each a list of lists; one of them may be the labels."""
    names = [n for n in (X if columns is None else columns) if not (isinstance(y, str) and n == y)]
    missing = [n for n in (*names, y) if isinstance(n, str) and n not in X]
    if missing or not names:
        has = ", ".join(map(str, X)) or "none"
        raise DataError(f"there is no column {(missing or ['word'])[0]!r}; there are {has}")
    corpus = Corpus.from_columns(
        {name: X[name] for name in names}, X[y] if isinstance(y, str) else None
    )
    return Given(corpus, fields=tuple(names))


def _sequence(sample: Any, index: int) -> Sequence[Any]:
    if type(sample) is list:
        return sample
    if isinstance(sample, str | bytes | Mapping) or not isinstance(sample, Sequence):
        raise DataError(
            f"sample {index} is {type(sample).__name__}; expected a list of positions "
            "(feature dicts, lists of strings or strings) or an (n, d) array"
        )
    return sample


def _from_column_dicts(samples: list[Any], columns: list[str] | None) -> Given:
    """Samples that are dicts of columns: of those named, the ones that the first sample has."""
    first = samples[0]
    if not isinstance(first, Mapping):
        raise DataError("sample 0 is no dict of columns, but others are; give all in one form")
    names = [name for name in first if columns is None or name in columns]
    if not names:
        raise DataError(f"the columns {', '.join(columns or ())} are missing from sample 0")
    for i, sample in enumerate(samples):
        missing = [n for n in names if not isinstance(sample, Mapping) or n not in sample]
        if missing:
            raise DataError(f"sample {i} has no column {missing[0]!r}; sample 0 has")
        single = [n for n in names if not _is_column(sample[n])]
        if single:
            raise DataError(
                f"sample {i} is a dict; expected a list of positions, or a dict of columns, of "
                f"which {single[0]!r} is {sample[single[0]]!r:.60} and no list"
            )
    listed = {name: [sample[name] for sample in samples] for name in names}
    return Given(Corpus.from_columns(listed), fields=tuple(names))


def _is_column(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _from_symbols(samples: list[Any], first: Any, columns: list[str] | None) -> Given:
    """Samples whose positions are tuples or dicts of the symbols of columns."""
    by_name = isinstance(first, Mapping)
    if by_name:
        names = [name for name in (columns or first) if name in first]
        if not names:
            raise DataError(
                f"the columns are {', '.join(columns or ())}, but position 0 of sample 0 has "
                f"{', '.join(map(str, first)) or 'none'}"
            )
    elif columns is None:
        raise DataError(
            "the features are templates over columns: say which column each entry of a position "
            f"is, {first!r:.60} being the first: columns=['word', ...]; or give dicts with the "
            "names of columns"
        )
    else:
        names = columns
    fast = _strings_of_columns(samples, names, by_name)
    if fast is not None:
        return Given(Corpus.from_columns(fast), fields=tuple(names))
    flat: dict[str, list[str]] = {name: [] for name in names}
    lengths, numeric = [], dict.fromkeys(names, True)
    for i, raw in enumerate(samples):
        sample = _sequence(raw, i)
        lengths.append(len(sample))
        for t, position in enumerate(sample):
            symbols = _of_names(position, names, by_name, f"sample {i}, position {t}")
            for name, symbol in zip(names, symbols, strict=True):
                if type(symbol) is not str:
                    symbol = _symbol(symbol, name, f"sample {i}, position {t}")  # noqa: PLW2901
                else:
                    numeric[name] = False
                flat[name].append(symbol)
    coded = {
        name: Column.from_strings(flat[name], numbers=numeric[name] and len(flat[name]) > 0)
        for name in names
    }
    return Given(Corpus(bounds(lengths), coded), fields=tuple(names))


def _strings_of_columns(
    samples: list[Any], names: list[str], by_name: bool
) -> dict[str, list[Any]] | None:
    """The symbols of each column, sample by sample; None if some are missing or no strings."""
    kinds = {dict} if by_name else {tuple, list}
    columns: list[list[Any]] = [[] for _ in names]
    for sample in samples:
        if type(sample) not in (list, tuple) or not set(map(type, sample)) <= kinds:
            return None
        if by_name:
            try:
                parts = [list(map(itemgetter(name), sample)) for name in names]
            except KeyError:
                return None
        elif set(map(len, sample)) <= {len(names)}:
            parts = list(map(list, zip(*sample, strict=True))) or [[] for _ in names]
        else:
            return None
        if not all(set(map(type, part)) <= {str} for part in parts):
            return None
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    return dict(zip(names, columns, strict=True))


def _of_names(position: Any, names: list[str], by_name: bool, where: str) -> Sequence[Any]:
    """The symbols of a position, in the order of the columns."""
    expected = f"a {'dict' if by_name else 'tuple'} of {', '.join(names)}"
    if by_name:
        if not isinstance(position, Mapping):
            raise DataError(f"{where} is {position!r:.60}; expected {expected}")
        missing = [name for name in names if name not in position]
        if missing:
            raise DataError(f"{where} has no {missing[0]!r}; expected {expected}")
        return [position[name] for name in names]
    if isinstance(position, str | bytes | Mapping) or not isinstance(position, Sequence):
        raise DataError(f"{where} is {position!r:.60}; expected {expected}")
    if len(position) != len(names):
        raise DataError(f"{where} has {len(position)} entries; expected {expected}")
    return position


def _symbol(value: Any, name: str, where: str) -> str:
    """A symbol that is not given as a string."""
    if isinstance(value, numbers.Real | np.bool_):
        number = _as_float(value)
        if not abs(number) < FLOAT32_LIMIT:
            raise DataError(f"{where}: {name!r} is {number}; must be a finite float32")
        return repr(number)
    if isinstance(value, str):
        return str(value)
    raise DataError(f"{where}: {name!r} is {value!r:.60}; expected a string or a number")


def _from_views(samples: list[Sample]) -> Corpus:
    parent = samples[0].corpus
    if any(s.corpus is not parent for s in samples):
        raise DataError("samples of different corpora cannot be mixed in one call")
    return parent.take([s.index for s in samples])


def _is_sparse(sample: Any) -> bool:
    return hasattr(sample, "tocsr") and hasattr(sample, "nnz")


def _from_arrays(samples: list[Any], columns: list[str] | None = None) -> Given:
    width = None if columns is None else len(columns)
    others = "sample 0 has" if columns is None else "there are names for"
    for i, sample in enumerate(samples):
        if not (isinstance(sample, np.ndarray) or _is_sparse(sample)) or sample.ndim != 2:
            shape = getattr(sample, "shape", type(sample).__name__)
            raise DataError(f"sample {i} is {shape}; expected an (n, d) array like the others")
        width = sample.shape[1] if width is None else width
        if sample.shape[1] != width:
            raise DataError(f"sample {i} has {sample.shape[1]} columns, {others} {width}")
        if sample.dtype.kind not in "biuf":
            raise DataError(f"sample {i} has dtype {sample.dtype}; expected numbers")
    names = [f"x{j}" for j in range(width or 0)] if columns is None else columns
    offsets = bounds([sample.shape[0] for sample in samples])
    if any(map(_is_sparse, samples)):  # of a million columns, maybe: their names are not kept
        return Given(Corpus(offsets, features=_sparse_features(samples, offsets, names)))
    for i, sample in enumerate(samples):
        bad = np.argwhere(~(np.abs(sample.astype(np.float64)) < FLOAT32_LIMIT))
        if len(bad):
            t, j = bad[0]
            raise _no_float32(i, t, j, sample[t, j])
    stacked: NDArray[np.float32] = np.concatenate([s.astype(np.float32) for s in samples])
    return Given(Corpus(offsets, features=dense_features(stacked, names)), fields=tuple(names))


def _sparse_features(samples: list[Any], offsets: NDArray[np.int64], names: list[str]) -> Features:
    """Features of matrices of one width, of which some are sparse."""
    from scipy.sparse import csr_array, vstack

    matrix = vstack([csr_array(sample).astype(np.float64) for sample in samples], format="csr")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(~(np.abs(matrix.data) < FLOAT32_LIMIT))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        at = matrix.indices[bad[0]]
        raise _no_float32(i, row - offsets[i], at, matrix.data[bad[0]])
    values = matrix.data.astype(np.float32)
    return Features(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        None if (values == 1).all() else values,
        names,
    )


def _no_float32(sample: int, position: int, column: int, value: Any) -> DataError:
    return DataError(
        f"sample {sample}, position {position}, column {column} is {value}; "
        "must be a finite float32"
    )


def _from_attributes(samples: list[Any]) -> Corpus:
    # Exact types first, and in place: a call, or a question to an abstract class, for each of
    # millions of attributes would take longer than all else. Any other type goes the long way.
    names = _Names()
    pairs, valued = names.pairs, names.valued
    indices: list[int] = []  # −1 − number of the attribute where it has a value
    values: list[float] = []
    ends, lengths = [0], []
    add, add_value = indices.append, values.append
    for i, raw in enumerate(samples):
        sample = _sequence(raw, i)
        lengths.append(len(sample))
        for t, position in enumerate(sample):
            given_as = type(position)
            if given_as is dict or (given_as is not list and isinstance(position, Mapping)):
                for key, value in position.items():
                    kind = type(value) if type(key) is str else None
                    if kind is str:
                        try:
                            known_values = pairs[key]
                        except KeyError:
                            known_values = pairs[key] = {}
                        attribute = known_values.get(value)
                        if attribute is None:
                            attribute = known_values[value] = names.of_pair(key, value)
                        add(attribute)
                        continue
                    if kind is bool:
                        if value:
                            add(names[key])
                        continue
                    name, number = key, value
                    if kind is float or kind in _NUMBERS:
                        number = value if kind is float else _as_float(value)
                        if not -FLOAT32_LIMIT < number < FLOAT32_LIMIT:
                            raise _not_finite(key, number, i, t)
                    else:
                        name, number = _attribute(key, value, i, t)
                        if name is None:
                            continue
                    add_value(number)
                    try:
                        add(valued[name])
                    except KeyError:
                        add(names.of_valued(name))
            elif given_as is list or _holds_names(position):
                listed = position if given_as is list else _in_order(position)
                try:
                    "".join(listed)  # nothing asks faster whether all are strings
                except TypeError:
                    _check_strings(listed, i, t)
                indices += map(names.__getitem__, listed)
            else:
                raise DataError(
                    f"sample {i}, position {t} is {position!r}; expected a dict of features "
                    "or a list of strings"
                )
            ends.append(len(indices))
    features = known(
        Features,
        indptr=np.array(ends, np.int64),
        **_with_values(np.array(indices, np.int32), values),
        names=names.by_number,
    )
    return Corpus(bounds(lengths), features=features)


def _with_values(indices: NDArray[np.int32], given: list[float]) -> dict[str, Any]:
    """Numbers and values of attributes; ``given`` are the values of those below 0."""
    if not given:
        return {"indices": indices, "values": None}
    values = np.ones(len(indices), np.float32)
    values[indices < 0] = given
    indices = np.where(indices < 0, ~indices, indices)
    return {"indices": indices, "values": None if (values == 1).all() else values}


class _Names(dict[str, int]):
    """Names of attributes and their numbers, in order of first appearance.

    An attribute is found under what it was given as: its name, a key and a string, so that
    «key=string» is put together once and not at each position, or a key with a value.
    """

    def __init__(self) -> None:
        self.by_number: list[str] = []
        self.pairs: dict[str, dict[str, int]] = {}
        self.valued: dict[str, int] = {}

    def __missing__(self, name: str) -> int:
        number = None
        if self.pairs and "=" in name:
            key, _, value = name.partition("=")
            number = self.pairs.get(key, {}).get(value)
        if number is None:
            number = len(self.by_number)
            self.by_number.append(name)
        self[name] = number
        return number

    def of_pair(self, key: str, value: str) -> int:
        """Number of «key=value», which is not yet found under its key."""
        name = f"{key}={value}"
        if "=" in key:  # only then may another pair have the same name
            return self[name]
        number = self.get(name)
        if number is None:
            number = len(self.by_number)
            self.by_number.append(name)
        return number

    def of_valued(self, name: str) -> int:
        """What stands for an attribute with a value, the first time that it has one."""
        self.valued[name] = mark = ~self[name]
        return mark


def _holds_names(position: Any) -> bool:
    return (
        isinstance(position, Iterable)
        and not isinstance(position, str | bytes)
        and getattr(position, "ndim", 1) != 0  # an array without dimensions holds no names
    )


def _in_order(names: Iterable[Any]) -> list[Any]:
    # Sets are sorted: their own order differs from run to run.
    return sorted(names, key=str) if isinstance(names, Set) else list(names)


def _check_strings(names: list[Any], sample: int, position: int) -> None:
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"sample {sample}, position {position}: attribute {name!r} is not a string"
            )


def _attribute(key: Any, value: Any, sample: int, position: int) -> tuple[str | None, float]:
    """Name and value of one dict entry; no name if the entry is False."""
    if not isinstance(key, str):
        raise DataError(f"sample {sample}, position {position}: feature key {key!r} is no string")
    if isinstance(value, str):
        return f"{key}={value}", 1.0
    if isinstance(value, bool | np.bool_):
        return (key, 1.0) if value else (None, 0.0)
    if isinstance(value, numbers.Real):
        number = _as_float(value)
        if not abs(number) < FLOAT32_LIMIT:
            raise _not_finite(key, number, sample, position)
        return key, number
    raise DataError(
        f"sample {sample}, position {position}: feature {key!r} is {value!r}; "
        "expected a string, a bool or a number"
    )


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int of hundreds of digits
        return math.inf


def _not_finite(key: str, number: float, sample: int, position: int) -> DataError:
    return DataError(
        f"sample {sample}, position {position}: feature {key!r} is {number}; "
        "must be a finite float32"
    )
