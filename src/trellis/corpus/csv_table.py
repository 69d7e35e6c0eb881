"""CSV files as samples: a header, then a row for each position.

    sentence,word,length,tag
    1,The,3,D
    1,cat,3,N
    2,Birds,5,N

The column ``group`` tells samples apart; rows of a sample keep their order, and need not be
neighbours. One column may be the label, where an empty cell is not annotated. The others are
features, by the rules for tables (:mod:`trellis.corpus.tables`): text is symbols of a column,
numbers are real-valued features, beside text columns of numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import Column, Corpus, split
from trellis.corpus.labels import Labels
from trellis.corpus.number_rows import dense_features
from trellis.corpus.tables import sample_order
from trellis.errors import DataError
from trellis.files.table import Table, read_table
from trellis.files.text import Source, read_text

__all__ = ["csv_columns", "format_csv", "read_csv"]


def read_csv(
    source: Source,
    label: str | None = None,
    *,
    group: str,
    columns: Sequence[str] | None = None,
) -> Corpus:
    r"""Read a CSV file with a header.

    Parameters
    ----------
    source
        A path, an open file, or "-" for standard input.
    label : str, optional
        The column to predict.
    group : str
        The column that says which rows are one sample.
    columns : list of str, optional
        The columns to take; by default all others.

    Raises
    ------
    DataError
        If a column is missing, or a cell is empty that should not be.

    Examples
    --------
    >>> import io
    >>> from trellis.corpus import read_csv
    >>> file = io.BytesIO(b"s,word,tag\n1,The,D\n1,cat,N\n2,Birds,\n")
    >>> corpus = read_csv(file, "tag", group="s")
    >>> corpus[0].columns, corpus.label_lists()
    ({'word': ['The', 'cat']}, [['D', 'N'], [None]])
    """
    table = read_table(source)
    table.require([group, *([] if label is None else [label]), *(columns or ())])
    names = [name for name in table.columns if name not in (group, label)]
    names = names if columns is None else list(columns)
    if not names:
        raise DataError(f"{table.name} has no column to predict from")
    order, offsets = sample_order(_filled(table, group))
    corpus = _features(table, names, order, offsets)
    if label is None:
        return corpus
    labels = [table.columns[label][i] or None for i in order.tolist()]
    coded = Labels.from_lists(split(labels, offsets))
    return Corpus(offsets, corpus.columns, corpus.features, coded, label_name=label)


def _features(
    table: Table, names: Sequence[str], order: NDArray[np.int64], offsets: NDArray[np.int64]
) -> Corpus:
    numeric = [name for name in names if table.is_numeric(name)]
    numbers = {name: table.checked_numbers(name)[order] for name in numeric}
    if len(numeric) == len(names):
        rows = np.stack(list(numbers.values()), axis=1).astype(np.float32)
        return Corpus(offsets, features=dense_features(rows, list(names)))
    columns = {}
    for name in names:
        if name in numbers:
            cells = [repr(number) for number in numbers[name].tolist()]
        else:
            filled = _filled(table, name)
            cells = [filled[i] for i in order.tolist()]
        columns[name] = Column.from_strings(cells, numbers=name in numbers)
    return Corpus(offsets, columns)


def _filled(table: Table, column: str) -> Sequence[str]:
    """Cells of a column, none of which may be empty."""
    cells: Sequence[str] = table.columns[column]
    if not all(cells):
        raise table.fail(list(map(bool, cells)).index(False), "the cell is empty", column)
    return cells


def csv_columns(source: Source) -> list[str]:
    """Names of the columns of a CSV file, from its first line alone."""
    name, text = read_text(source)
    header = next(csv.reader(io.StringIO(text, newline="")), None)
    if not header:
        raise DataError(f"{name} is empty; expected a header and rows of cells between commas")
    return [cell.strip() for cell in header]


def format_csv(source: Source, group: str, added: dict[str, list[list[str]]]) -> str:
    """The file with further columns, whose cells come sample by sample; a name is made new."""
    table = read_table(source)
    order, _ = sample_order(_filled(table, group))
    columns: dict[str, Any] = dict(table.columns)
    for wanted, samples in added.items():
        flat, cells = [cell for sample in samples for cell in sample], [""] * len(order)
        for row, cell in zip(order.tolist(), flat, strict=True):
            cells[row] = cell
        name = wanted
        while name in columns:
            name += "_"
        columns[name] = cells
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([columns, *zip(*columns.values(), strict=True)])
    return out.getvalue()
