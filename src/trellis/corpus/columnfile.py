"""Shared by all text readers: bytes → fields → coded columns, with errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import known
from trellis.corpus.corpus import Column, split
from trellis.corpus.label_values import label_name
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files.text import NOT_UTF8, Source, read_bytes

__all__ = [
    "FieldTable",
    "check_columns",
    "check_writable",
    "code_column",
    "joined_samples",
    "label_strings",
    "read_fields",
]

# What no text file of fields can hold: its line breaks, NUL bytes, and what is not Unicode text.
_UNWRITABLE = re.compile("[\0\n\r\ud800-\udfff]")


@dataclass(frozen=True)
class FieldTable:
    """The fields of a text file: byte ranges, lines and samples (see ``kernels.text``)."""

    name: str
    buffer: NDArray[np.uint8]
    line_ptr: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    line_number: NDArray[np.int64]
    sample_ptr: NDArray[np.int64]

    def fail(self, line: int, message: str) -> DataError:
        """Error about the line-th kept line."""
        return DataError(f"{self.name}, line {self.line_number[line]}: {message}")

    def rectangle(self, n_columns: int, expected: str) -> NDArray[np.int64]:
        """Field ids as (lines, n_columns); a line with another number of fields is refused."""
        counts = np.diff(self.line_ptr)
        bad = np.flatnonzero(counts != n_columns)
        if bad.size:
            raise self.fail(
                int(bad[0]), f"{counts[bad[0]]} fields, expected {n_columns} ({expected})"
            )
        return np.arange(len(self.first), dtype=np.int64).reshape(-1, n_columns)

    def refuse_empty(self, names: Sequence[str]) -> None:
        """Refuse empty fields; every line must have the columns ``names``."""
        empty = np.flatnonzero(self.first == self.last)
        if empty.size:
            line, which = divmod(int(empty[0]), len(names))
            raise self.fail(line, f"the field {names[which]!r} is empty")


def read_fields(source: Source, *, tabs_only: bool, skip: str = "") -> FieldTable:
    """Read a text file into fields; see :func:`trellis.kernels.text.split_fields`."""
    from trellis.kernels.text import split_fields

    name, data = read_bytes(source)
    buffer = np.frombuffer(data, np.uint8)
    prefix = np.frombuffer(skip.encode(), np.uint8)
    return FieldTable(name, buffer, *split_fields(buffer, tabs_only, prefix))


def code_column(table: FieldTable, fields: NDArray[np.int64]) -> Column:
    """Column of the given fields, one for each position."""
    from trellis.kernels.text import code_fields

    first, last = table.first[fields], table.last[fields]
    codes, where = code_fields(table.buffer, first, last)
    data = table.buffer.data
    values = []
    for k, a, b in zip(where.tolist(), first[where].tolist(), last[where].tolist(), strict=True):
        try:
            values.append(str(data[a:b], "utf-8"))
        except UnicodeDecodeError:
            line = int(np.searchsorted(table.line_ptr, fields[k], side="right")) - 1
            raise table.fail(line, NOT_UTF8) from None
    return known(Column, codes=codes, values=values)


def check_columns(columns: Sequence[str], label: str | None) -> list[str]:
    """Column names as a list; refuses repeated and empty names and a label that is no column."""
    if isinstance(columns, str):
        raise DataError(f"columns must be a list of names, got the string {columns!r}")
    names = list(columns)
    if not names:
        raise DataError("columns must name at least one column")
    for name in names:
        if not isinstance(name, str) or not name:
            raise DataError(f"column name {name!r} is not a non-empty string")
        if names.count(name) > 1:
            raise DataError(f"column {name!r} is named twice")
    if label is not None and label not in names:
        raise DataError(f"label column {label!r} is not among the columns {', '.join(names)}")
    return names


def check_writable(strings: Iterable[str], what: str, file: str, separators: str) -> None:
    """Refuse strings that could not be read back as one field of a file."""
    for text in dict.fromkeys(strings):
        if not text or _UNWRITABLE.search(text) or not set(text).isdisjoint(separators):
            raise DataError(f"{what} holds {text!r}, which {file} cannot")


def label_strings(labels: Labels, file: str) -> list[str]:
    """Labels as fields of a file: ``_`` where nothing is known; sets are refused."""
    strings = []
    for label in labels.tolist():
        if isinstance(label, frozenset):
            raise DataError(f"a set of allowed labels cannot be written to {file}; use JSONL")
        strings.append("_" if label is None else label_name(label))
    return strings


def joined_samples(lines: Sequence[str], offsets: NDArray[np.int64]) -> str:
    """Text of a file with a line for each position, and a blank one after each sample."""
    samples = split(lines, offsets)
    return "".join("".join(f"{line}\n" for line in sample) + "\n" for sample in samples)
