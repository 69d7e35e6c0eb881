"""Tables of cells: CSV files, mappings of columns, data frames, with the place of every complaint.

A table is a list of columns of equal length. Its cells are text or numbers; each is read as what it
is asked for, and what cannot be read so is refused, naming file and line (or the row of a table in
memory, counted from 0).

Cells of a file stand between commas unless the header has none and has semicolons, tabs or bars
instead. Where cells do not stand between commas, a comma may be that of a decimal (1,5 as half of
Europe writes it): it is if some cell is digits, comma, digits, and none is digits, point, digits;
points that can only be those of thousands (1.234 beside 1,5) do not count. Where cells do stand
between commas, 1,5 in quotes is such a decimal, too, but not 1,500.

What spreadsheets leave behind is passed over: a first line ``sep=;``, rows of empty cells, columns
without a name and without a value. A first column without a name is called «unnamed».
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError
from trellis.files.text import Source, read_text

__all__ = ["MISSING", "SEPARATORS", "Table", "read_table"]


MISSING = ("", "na", "n/a", "nan", "null", "none", "<na>", "?")
"""How a missing value may be written, in any case."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What cells of a file may stand between, and its name in messages."""

_GREATEST = 2.0**53  # up to here every integer is a float64
_DECIMAL = {mark: re.compile(rf"\s*[+-]?\d+{re.escape(mark)}\d+\s*") for mark in ".,"}
_THOUSANDS = {
    mark: re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+\s*") for mark in ".,"
}
_SEP_LINE = re.compile(r"\s*\"?sep=(.)\"?[ ,;\t]*(\r\n|\r|\n)", re.IGNORECASE)
_UNNAMED = "unnamed"


@dataclass(frozen=True)
class Table:
    """Columns of cells, with the name and the lines that messages need."""

    name: str
    columns: Mapping[str, Any]
    lines: list[int] | None  # None: a table in memory
    separator: str = ","
    decimal: str = "."
    named: Mapping[str, str] = field(default_factory=dict)  # how the file calls a column, if else

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def place(self, row: int) -> str:
        """Name a row: by its line, if the table is a file."""
        if self.lines is None:
            return f"{self.name}, row {row}"
        return f"{self.name}, line {self.lines[row]}"

    def fail(
        self, row: int | np.integer[Any], message: str, column: str | None = None
    ) -> DataError:
        """Make an error that names the row, and the column if one is given."""
        where = "" if column is None else f", column {self.named.get(column, column)!r}"
        return DataError(f"{self.place(int(row))}{where}: {message}")

    @property
    def between(self) -> str:
        """What cells stand between, in words."""
        return SEPARATORS.get(self.separator, repr(self.separator))

    def subset(self, rows: Int64s) -> Table:
        """The table of some rows."""
        columns = {
            name: cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows]
            for name, cells in self.columns.items()
        }
        lines = None if self.lines is None else [self.lines[row] for row in rows]
        return replace(self, columns=columns, lines=lines)

    def require(self, columns: Iterable[str]) -> None:
        """Refuse a table that lacks one of these columns."""
        for column in columns:
            if column not in self.columns:
                alike = [name for name in self.columns if name.lower() == column.lower()]
                raise DataError(
                    f"{self.name} has no column {column!r}, only {', '.join(self.columns)}; "
                    + (
                        f"is it {alike[0]!r}?"
                        if alike
                        else "expected a header that names the columns, with "
                        f"{self.between} between them"
                    )
                )

    def texts(self, column: str) -> list[str]:
        """Cells of a column as text; empty texts if there is no such column."""
        if column not in self.columns:
            return [""] * len(self)
        return [str(cell).strip() for cell in self.columns[column]]

    def numbers(self, column: str) -> tuple[Float64s, Int64s]:
        """A column as numbers, NaN where one is missing; and the rows that hold something else."""
        cells = self.columns[column]
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
            return cells.astype(np.float64), np.empty(0, np.int64)
        cells = self.texts(column) if self.lines is None else cells
        if self.decimal != ".":
            cells = [cell.replace(self.decimal, ".") for cell in cells]
        if "_" not in "".join(cells):  # Python reads "1_2" as 12
            try:
                return np.array(list(map(float, cells))), np.empty(0, np.int64)
            except ValueError:
                pass
        values = np.full(len(cells), np.nan)
        bad = []
        for row, cell in enumerate(cells):
            try:
                values[row] = float("?" if "_" in cell else cell)
            except ValueError:
                if cell.strip().lower() not in MISSING:
                    bad.append(row)
        return values, np.array(bad, np.int64)

    def is_numeric(self, column: str) -> bool:
        """Whether every cell is a finite number or missing, and at least one is there."""
        values, bad = self.numbers(column)
        known = values[~np.isnan(values)]
        return bool(not bad.size and known.size and np.isfinite(known).all())

    def checked_numbers(self, column: str, *, missing: bool = False, advice: str = "") -> Float64s:
        """A column as finite numbers, or NaN if they may be missing; ``advice`` ends messages."""
        values, bad = self.numbers(column)
        if bad.size:
            cell = self.texts(column)[bad[0]]
            raise self.fail(bad[0], f"{cell!r} is not a number{advice}", column)
        wrong = np.isinf(values) if missing else ~np.isfinite(values)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            if np.isnan(values[row]):
                raise self.fail(row, "the value is missing; correct or remove the row", column)
            what = "leave the cell empty" if missing else "correct or remove the row"
            raise self.fail(row, f"{self.texts(column)[row]!r} is not finite; {what}", column)
        return values

    def integers(self, column: str) -> Int64s:
        """A column as whole numbers."""
        values = self.checked_numbers(column)
        wrong = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > _GREATEST))
        if wrong.size:
            cell = self.texts(column)[wrong[0]]
            raise self.fail(wrong[0], f"{cell!r} is not a whole number up to 2^53", column)
        return values.astype(np.int64)


def read_table(
    source: Any,
    what: str = "the table",
    *,
    separator: str | None = ",",
    decimal: str | None = ".",
) -> Table:
    """Read a path, an open file, a mapping of columns or a data frame; ``what`` names it.

    ``separator`` stands between the cells of a file; None: what its header looks like. ``decimal``
    is the mark of decimals; None: what its cells look like. A table that is one stays as it is.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return _read_csv(source, separator, decimal)
    if not isinstance(source, Mapping) and not hasattr(source, "columns"):
        kind = type(source).__name__
        raise DataError(f"{what} is a {kind}; expected a path, a mapping of columns or a DataFrame")
    names = source if isinstance(source, Mapping) else source.columns
    columns = {str(name): _column(source[name], str(name), what) for name in names}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        each = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise DataError(f"{what}: columns must have one length, not {each}")
    if not columns:
        raise DataError(f"{what} is empty: it has no columns")
    return Table(what, columns, None)


def _column(values: Any, name: str, what: str) -> np.ndarray:
    try:
        column = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise DataError(f"{what}: column {name!r} holds lists; expected one value a row") from None
    if column.ndim != 1:
        raise DataError(
            f"{what}: column {name!r} has shape {column.shape}, expected one value a row"
        )
    return column


def _read_csv(source: Source, separator: str | None, decimal: str | None) -> Table:
    name, text = read_text(source)
    skipped = 0
    if separator is None:
        said = _SEP_LINE.match(text)
        if said:  # as Excel writes it for itself
            text, skipped = text[said.end() :], 1
        separator = said[1] if said and said[1] in SEPARATORS else _separator_of(text)
    elif len(separator) != 1 or separator in '\r\n"':
        raise DataError(f"cells cannot stand between {separator!r}; give one sign, such as ';'")
    if decimal not in (None, ".", ","):
        raise DataError(f"the mark of decimals must be '.' or ',', got {decimal!r}")
    between = SEPARATORS.get(separator, repr(separator))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    before = 0
    try:
        for row in reader:
            start, before = before + 1, reader.line_num
            if len(row) == 1 or any(map(str.strip, row)):
                rows.append(row)
                lines.append(start + skipped)
    except csv.Error as error:
        raise DataError(
            f"{name}, line {reader.line_num + skipped}: {error}; expected cells with {between} "
            "between them"
        ) from None
    if not rows:
        raise DataError(f"{name} is empty; expected a header and rows of cells between {between}")
    header = [cell.strip() for cell in rows[0]]
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise DataError(
                f"{name}, line {line}: {len(row)} cells, but the header has {len(header)}; "
                f"is the file cut off, or a {between.removesuffix('s')} missing?"
            )
    cells = list(zip(*rows[1:], strict=True)) or [()] * len(header)
    if decimal is None:
        decimal = _decimal_of(rows[1:], alone=separator != ",")
    columns = _named(header, cells, f"{name}, line {lines[0]}")
    return Table(name, columns, lines[1:], separator, decimal)


def _named(header: list[str], cells: list[Any], where: str) -> dict[str, Any]:
    """Columns by name; those without one are left out if they are empty."""
    columns: dict[str, Any] = {}
    for i, (name, values) in enumerate(zip(header, cells, strict=True)):
        column = name
        if not column and len(values) and not any(map(str.strip, values)):
            continue
        if not column and i == 0 and len(values) and any(header) and _UNNAMED not in header:
            column = _UNNAMED  # as data frames write the names of their rows
        if not column:
            raise DataError(
                f"{where}: column {i + 1} of the header has no name; is this line the header?"
            )
        if column in columns:
            raise DataError(f"{where}: the header names column {column!r} twice; rename one")
        columns[column] = values
    return columns


def _separator_of(text: str) -> str:
    """What cells seem to stand between: a comma wherever the header has one."""
    header = text.lstrip().partition("\n")[0]
    outside = re.sub(r'"[^"]*"', "", header)
    found = [sign for sign in SEPARATORS if sign in outside]
    return found[0] if "," in found[:1] else max(found, key=outside.count, default=",")


def _decimal_of(rows: list[list[str]], *, alone: bool) -> str:
    """How decimals seem to be written; `alone`: a comma stands between no cells."""
    cells = [cell for row in rows for cell in row if "." in cell or "," in cell]
    surely = {
        mark: any(
            _DECIMAL[mark].fullmatch(cell) and not _THOUSANDS[mark].fullmatch(cell)
            for cell in cells
        )
        for mark in ".,"
    }
    if surely["."] or surely[","]:
        return "." if surely["."] else ","
    # 1,234 alone may be either; beside 1.234 a comma is that of thousands.
    points = any(_DECIMAL["."].fullmatch(cell) for cell in cells)
    commas = any(_DECIMAL[","].fullmatch(cell) for cell in cells)
    return "," if commas and not points and alone else "."
