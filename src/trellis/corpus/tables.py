"""Tables as samples: data frames of pandas, Polars, PyArrow and their kin, through narwhals.

A table has a row for each position. Samples are the rows of a *long* table that have the same value
in the column ``group``, in order of first appearance; or each sample is a table of its own. Labels
are a column of the table, given by its name, or a series beside it.

    text, categories     symbols of a column of the corpus, for templates
    numbers, bools       real-valued features, named as their columns; beside text they are columns
                         of numbers, for the template ``number``

What a model says goes back as a series or a table of the same library, with the same index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus.corpus import FLOAT32_LIMIT, Column, Corpus, bounds, split
from trellis.corpus.form import Form, Given
from trellis.corpus.label_values import is_missing
from trellis.corpus.number_rows import dense_features
from trellis.errors import DataError

__all__ = [
    "is_series",
    "is_table",
    "long_table",
    "node_names",
    "sample_order",
    "tables",
]


def is_table(value: Any) -> bool:
    """Whether a value is a data frame of some library; none is imported."""
    if hasattr(value, "__dataframe__") or hasattr(value, "__narwhals_dataframe__"):
        return True
    if hasattr(value, "collect_schema"):
        return True
    return hasattr(value, "__arrow_c_stream__") and hasattr(value, "columns")


def is_series(value: Any) -> bool:
    """Whether a value is a column of a data frame."""
    return (hasattr(value, "to_list") or hasattr(value, "to_pylist")) and not is_table(value)


def node_names(sample: Any) -> list[Any] | None:
    """The index of a table, if it names its rows."""
    index = getattr(sample, "index", None) if is_table(sample) else None
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return list(index)


class LongTable(Form):
    """The rows of one table; ``order`` are their numbers sample by sample."""

    def __init__(self, frame: Any, order: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        self.frame, self.order, self.offsets = frame, order, offsets

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of the rows, from a column, a series or an array; or lists, sample by sample."""
        if isinstance(y, str):
            flat = _values(self.frame, y)
        else:
            flat = _flat(y)
            if len(flat) == len(self.offsets) - 1 and not is_series(y) and _nested(flat):
                return flat
            if len(flat) != len(self.order):
                raise DataError(
                    f"{what} has {len(flat)} entries; the table has {len(self.order)} rows in "
                    f"{len(self.offsets) - 1} samples"
                )
        return split(_ordered(flat, self.order), self.offsets)

    def labels(self, each: list[list[Any]]) -> Any:
        """A series in the order of the rows."""
        return _series(self.frame, self._in_rows(each))

    def chances(self, each: list[Any], classes: Sequence[Any]) -> Any:
        """A table with a column for each label, in the order of the rows."""
        rows = np.zeros((len(self.order), len(classes)))
        if len(self.order):
            rows[self.order] = np.concatenate(each)
        return _frame(self.frame, rows, classes)

    def _in_rows(self, each: list[list[Any]]) -> list[Any]:
        flat: list[Any] = [None] * len(self.order)
        for row, label in zip(
            self.order.tolist(), itertools.chain.from_iterable(each), strict=True
        ):
            flat[row] = label
        return flat


class Tables(Form):
    """A table for each sample."""

    def __init__(self, frames: Sequence[Any]) -> None:
        self.frames = frames

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of each table, from a column or a list of series or lists."""
        if isinstance(y, str):
            return [_values(frame, y) for frame in self.frames]
        return [_flat(labels) for labels in as_list(y, f"samples of {what}")]

    def labels(self, each: list[list[Any]]) -> Any:
        """A series for each table."""
        pairs = zip(self.frames, each, strict=True)
        return [_series(frame, labels) for frame, labels in pairs]

    def chances(self, each: list[Any], classes: Sequence[Any]) -> Any:
        """A table for each table."""
        return [_frame(f, rows, classes) for f, rows in zip(self.frames, each, strict=True)]


def long_table(
    X: Any, columns: Sequence[str] | None, group: str | None, besides: Iterable[str], symbols: bool
) -> Given:
    """Samples of one long table.

    Parameters
    ----------
    X : data frame
    columns : list of str, optional
        The columns to take; by default all but the group and ``besides``.
    group : str, optional
        The column that tells samples apart.
    besides : iterable of str
        Columns that are no features: the labels.
    symbols : bool
        Whether numbers are to be symbols, too.
    """
    frame = _narwhals(X)
    if group is None:
        raise DataError(
            "a table needs group=, the name of the column that says which rows are one sample "
            f"({_some(frame.columns)}); or pass a list of tables, one for each sample"
        )
    keys = _values(frame, group)
    empty = frame[group].is_null().to_list()
    if any(empty):
        row = empty.index(True)
        raise DataError(f"row {row}: the column {group!r}, which tells samples apart, is empty")
    order, offsets = sample_order(keys)
    names = _names(frame, columns, {group, *besides}, symbols)
    corpus = _corpus([frame], names, offsets, order, symbols)
    return Given(corpus, LongTable(frame, order, offsets), names)


def sample_order(keys: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows sample by sample, in order of first appearance, and the bounds of the samples.

    Examples
    --------
    >>> sample_order(["b", "a", "b"])
    (array([0, 2, 1]), array([0, 2, 3]))
    """
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return np.argsort(codes, kind="stable"), bounds(np.bincount(codes, minlength=len(numbers)))


def tables(
    X: Sequence[Any], columns: Sequence[str] | None, besides: Iterable[str], symbols: bool
) -> Given:
    """Samples that are a table each; parameters as for :func:`long_table`."""
    frames = []
    for i, sample in enumerate(X):
        if not is_table(sample):
            raise DataError(f"sample {i} is {type(sample).__name__}; expected a table like others")
        frames.append(_narwhals(sample))
    names = _names(frames[0], columns, set(besides), symbols)
    offsets = bounds([len(frame) for frame in frames])
    corpus = _corpus(frames, names, offsets, np.arange(offsets[-1]), symbols)
    return Given(corpus, Tables(frames), names)


def _narwhals(X: Any) -> Any:
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise DataError(
            f"a table of type {type(X).__name__} cannot be read row by row; collect it first "
            "(pandas, Polars and PyArrow tables can)"
        ) from None
    except ValueError as error:  # narwhals: two columns of one name
        raise DataError(f"a table that cannot be read: {' '.join(str(error).split())}") from None
    for name in frame.columns:
        if not isinstance(name, str):
            raise DataError(f"the table has a column named {name!r}; column names must be strings")
    return frame


def _names(
    frame: Any, columns: Sequence[str] | None, besides: set[str], symbols: bool
) -> tuple[str, ...]:
    """The columns to take; of those named, symbols that no template needs may be missing."""
    if columns is None:
        names = [name for name in frame.columns if name not in besides]
        if not names:
            raise DataError(f"the table has no column to predict from beside {_some(besides)}")
        return tuple(names)
    there = [name for name in columns if name in frame.columns]
    if not symbols or not there:
        for name in columns:
            _check_column(frame, name)
    return tuple(there)


def _check_column(frame: Any, name: str) -> None:
    if name not in frame.columns:
        raise DataError(f"the table has no column {name!r}; it has {_some(frame.columns)}")


def _values(frame: Any, name: str) -> list[Any]:
    _check_column(frame, name)
    return list(frame[name].to_list())


def _flat(y: Any) -> list[Any]:
    if is_table(y):
        frame = _narwhals(y)
        if len(frame.columns) != 1:
            raise DataError(f"labels are a table of {len(frame.columns)} columns; expected one")
        return _values(frame, frame.columns[0])
    if is_series(y):
        return list(y.to_list() if hasattr(y, "to_list") else y.to_pylist())
    return as_list(y, "labels")


def _nested(entries: list[Any]) -> bool:
    """Whether entries are lists of labels, not labels."""
    return all(isinstance(e, list | np.ndarray) or is_series(e) for e in entries)


def _corpus(
    frames: Sequence[Any],
    names: Sequence[str],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    symbols: bool,
) -> Corpus:
    kinds = {name: _kind(frames, name) for name in names}
    if symbols or "text" in kinds.values():
        columns = {}
        for name, kind in kinds.items():
            flat = [v for frame in frames for v in _symbols(frame, name, kind)]
            columns[name] = Column.from_strings(_ordered(flat, order), numbers=kind == "number")
        return Corpus(offsets, columns)
    parts = [np.concatenate([_numbers(frame, name) for frame in frames]) for name in names]
    stacked = np.stack(parts, axis=1)[order].astype(np.float32)
    return Corpus(offsets, features=dense_features(stacked, list(names)))


def _ordered(rows: list[Any], order: NDArray[np.int64]) -> list[Any]:
    """Rows sample by sample; most often they are already."""
    if np.array_equal(order, np.arange(len(order))):
        return rows
    return [rows[i] for i in order.tolist()]


def _kind(frames: Sequence[Any], name: str) -> str:
    """What a column holds: "text" or "number"; refuses others."""
    kinds = set()
    for frame in frames:
        _check_column(frame, name)
        dtype = frame.schema[name]
        if dtype.is_numeric() or type(dtype).__name__ == "Boolean":
            kinds.add("number")
        elif type(dtype).__name__ in ("String", "Categorical", "Enum", "Object"):
            kinds.add("text")
        else:
            raise DataError(
                f"column {name!r} holds {dtype}; turn it into text or numbers, or leave it out "
                "(columns= names those to take)"
            )
    return kinds.pop() if len(kinds) == 1 else "text"


def _symbols(frame: Any, name: str, kind: str) -> list[str]:
    if kind == "number":
        return [repr(number) for number in _numbers(frame, name).tolist()]
    symbols = frame[name].to_list()
    if set(map(type, symbols)) == {str}:
        return list(symbols)
    for row, value in enumerate(symbols):
        if is_missing(value):
            raise DataError(
                f"row {row}, column {name!r} is missing; fill it in. (pandas reads words such as "
                "NA and null as missing: read_csv(..., keep_default_na=False))"
            )
    return [str(value) for value in symbols]


def _numbers(frame: Any, name: str) -> NDArray[np.float64]:
    column = frame[name]
    if column.is_null().any():
        row = column.is_null().to_list().index(True)
        raise DataError(f"row {row}, column {name!r} is missing; fill it in, or leave it out")
    numbers = np.asarray(column.to_numpy(), np.float64)
    bad = np.flatnonzero(~(np.abs(numbers) < FLOAT32_LIMIT))
    if bad.size:
        raise DataError(
            f"row {bad[0]}, column {name!r} is {numbers[bad[0]]}; must be a finite float32"
        )
    return numbers


def _series(frame: Any, labels: list[Any]) -> Any:
    """Labels as a series of the library of a table, with its index."""
    import narwhals.stable.v2 as nw

    backend = nw.get_native_namespace(frame)
    try:
        series = nw.new_series("label", labels, backend=backend)
        if series.to_list() != labels:
            raise TypeError("this library has no such values")
    except Exception:  # each library has errors of its own for values that it cannot hold
        return labels
    native, index = series.to_native(), nw.maybe_get_index(frame)
    if index is not None:
        native.index = index
    return native


def _frame(like: Any, rows: NDArray[np.float64], classes: Sequence[Any]) -> Any:
    """Rows (n, L) as a table of the library of another, with its index."""
    import narwhals.stable.v2 as nw

    backend = nw.get_native_namespace(like)
    columns = {str(label): rows[:, j] for j, label in enumerate(classes)}
    frame = nw.from_dict(columns, backend=backend)
    native, index = frame.to_native(), nw.maybe_get_index(like)
    if index is not None:  # pandas: columns may have names of any type, too
        native.index, native.columns = index, list(classes)
    return native


def _some(names: Iterable[Any]) -> str:
    listed = [str(name) for name in names]
    return ", ".join(listed[:12]) + (", …" if len(listed) > 12 else "")
