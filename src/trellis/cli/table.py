"""Tables of numbers from CSV files; whatever is wrong is named by file, line and column."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

from trellis.errors import DataError
from trellis.files import display_name, open_text_bytes

__all__ = ["MISSING", "Table", "read_table"]

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
"""How a missing value may be written, in any case."""


@dataclass(frozen=True)
class Table:
    """The cells of a CSV file by column, and the line that each row starts at."""

    name: str
    columns: dict[str, list[str]]
    lines: list[int]

    def numbers(self, column: str, *, missing: bool) -> list[float]:
        """A column as numbers; a missing value is NaN, or refused."""
        values = []
        for line, cell in zip(self.lines, self.columns[self.checked(column)], strict=True):
            value = _number(cell)
            if value is None:
                raise DataError(f"{self._place(line, column)}: {cell!r} is not a number")
            if math.isnan(value) and not missing:
                raise DataError(f"{self._place(line, column)}: the value is missing")
            if math.isinf(value):
                raise DataError(f"{self._place(line, column)}: {cell!r} is not finite")
            values.append(value)
        return values

    def checked(self, column: str) -> str:
        """The name of a column that exists."""
        if column not in self.columns:
            known = ", ".join(self.columns)
            raise DataError(f"{self.name} has no column {column!r}; it has {known}")
        return column

    def is_numeric(self, column: str) -> bool:
        """Whether every cell is a finite number or missing, and at least one is there."""
        values = [_number(cell) for cell in self.columns[column]]
        known = [v for v in values if v is not None and not math.isnan(v)]
        return None not in values and bool(known) and all(map(math.isfinite, known))

    def _place(self, line: int, column: str) -> str:
        return f"{self.name}, line {line}, column {column!r}"


def read_table(path: str) -> Table:
    """Read a CSV file with a header; «-» is standard input, compressed files are undone."""
    name = "standard input" if path == "-" else display_name(path)
    try:
        text = open_text_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 (byte {error.start}); convert it first") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: dict[str, list[str]] = {}
    lines: list[int] = []
    before = 0
    try:
        for row in reader:
            start, before = before + 1, reader.line_num
            if not row:
                continue
            if not columns:
                columns = _header(row, name, start)
                continue
            if len(row) != len(columns):
                raise DataError(
                    f"{name}, line {start}: {len(row)} cells, the header has {len(columns)}"
                )
            lines.append(start)
            for cells, cell in zip(columns.values(), row, strict=True):
                cells.append(cell.strip())
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}") from None
    if not columns:
        raise DataError(f"{name} is empty; expected a header and rows of cells between commas")
    if not lines:
        raise DataError(f"{name} has a header, but no rows")
    return Table(name, columns, lines)


def _header(row: list[str], name: str, line: int) -> dict[str, list[str]]:
    names = [cell.strip() for cell in row]
    for i, column in enumerate(names):
        if not column:
            raise DataError(f"{name}, line {line}: column {i + 1} of the header has no name")
        if column in names[:i]:
            raise DataError(f"{name}, line {line}: the header names column {column!r} twice")
    return {column: [] for column in names}


def _number(cell: str) -> float | None:
    if cell.lower() in MISSING:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return None
