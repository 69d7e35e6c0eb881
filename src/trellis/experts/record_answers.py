"""Tables of records with answers: JSON lines, a list of JSON objects, CSV and TSV with a header."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from trellis.errors import DataError
from trellis.experts.answer_formats import FORMATS, Combined
from trellis.experts.answer_values import Missing, is_plain, label_text
from trellis.files.text import ReadText, Source, read_text

__all__ = ["RecordFile", "read_csv", "read_json", "read_jsonl"]

_NO_KEY = Missing("key not there")


@dataclass(frozen=True, eq=False)
class RecordFile:
    """A table: one record a sample, with the names of its columns (or keys)."""

    name: str
    format: str
    columns: list[str]
    records: list[dict[str, Any] | Missing]
    lines: list[int]
    delimiter: str = ","

    def __len__(self) -> int:
        return len(self.records)

    def place(self, sample: int) -> str:
        """Where a record begins."""
        what = "record" if self.format == "json" else "line"
        return f"{self.name}, {what} {self.lines[sample]}"

    def require(self, column: Any, what: str) -> str:
        """A column that must be there."""
        if column not in self.columns:
            raise DataError(
                f"{what} {column!r} is not a column of {self.name}: its columns are "
                f"{', '.join(self.columns) or '(none)'}"
            )
        return str(column)

    def answers(self, column: str) -> list[Any]:
        """What is under a key."""
        return [r if isinstance(r, Missing) else r.get(column, _NO_KEY) for r in self.records]

    def whole(self, without: Sequence[str | None]) -> list[Any]:
        """The records as answers."""
        return [
            r if isinstance(r, Missing) else {k: v for k, v in r.items() if k not in without}
            for r in self.records
        ]

    def ids(self, column: str) -> list[str | None]:
        """What is under a key as text; None where it cannot name a sample."""
        return [
            (label_text(value) or None) if is_plain(value) else None
            for value in self.answers(column)
        ]

    def text(self, combined: Combined) -> str:
        """The table with the combined answers in a column, and their confidence in one more."""
        wide = combined.key is None and not combined.spread
        key = self._new_name("combined") if wide else str(combined.key)
        sure = self._new_name("confidence") if wide else "confidence"
        records = []
        for i, row in enumerate(combined.rows):
            if row is None:  # a sample that only other files have, by its id
                record: Any = {combined.id: combined.ids[i]}
            else:
                record = {} if isinstance(self.records[row], Missing) else self.records[row]
            answer = combined.values[i]
            record = record | ((answer or {}) if combined.spread else {key: answer})
            if combined.confidence is not None:
                record[sure] = combined.confidence[i]
            records.append(record)
        if self.format == "json":
            return _json(records, indent=1) + "\n"
        if self.format == "jsonl":
            return "".join(f"{_json(record)}\n" for record in records)
        out = io.StringIO()
        names = [*self.columns, *(n for n in (key, sure) if n not in self.columns)]
        if combined.confidence is None and sure not in self.columns:
            names.remove(sure)
        writer = csv.writer(out, delimiter=self.delimiter, lineterminator="\n")
        writer.writerow(names)
        for record in records:
            writer.writerow([_cell(record.get(name)) for name in names])
        return out.getvalue()

    def _new_name(self, name: str) -> str:
        """A name that no column has yet."""
        others = (f"{name}{k}" for k in count(2))
        return next(new for new in chain([name], others) if new not in self.columns)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.4f}" if isinstance(value, float) else _json(value)


def _json(value: Any, indent: int | None = None) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, elsewhere in the record
        return json.dumps(value, indent=indent)
    except RecursionError:
        raise DataError("a record is nested too deeply to be written") from None
    return text


def read_jsonl(source: Source) -> RecordFile:
    """An object a line."""
    name, text = read_text(source)
    records: list[dict[str, Any] | Missing] = []
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            records.append(_record(line))
            lines.append(number)
    if records and all(isinstance(record, Missing) for record in records):
        raise DataError(
            f"{name}, line {lines[0]}: expected JSON lines, an object a line, and no line is one; "
            f"say what the file is by its format: {', '.join(FORMATS)}"
        )
    return RecordFile(name, "jsonl", _keys(records), records, lines)


def _record(line: str) -> dict[str, Any] | Missing:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Missing("not JSON")
    return value if isinstance(value, dict) else Missing("not a JSON object")


def _keys(records: Sequence[dict[str, Any] | Missing]) -> list[str]:
    return list(dict.fromkeys(key for r in records if isinstance(r, dict) for key in r))


def read_json(source: Source) -> RecordFile:
    """A list of objects, or one."""
    name, text = read_text(source)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(_record(text.lstrip().split("\n")[0]), dict):
            return read_jsonl(ReadText(name, text.encode()))
        raise DataError(f"{name}: not JSON ({error})") from None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or (value and not any(isinstance(r, dict) for r in value)):
        raise DataError(f"{name}: expected a list of objects, one for each sample")
    records = [r if isinstance(r, dict) else Missing("not a JSON object") for r in value]
    return RecordFile(name, "json", _keys(records), records, list(range(1, len(records) + 1)))


def read_csv(source: Source, format: str) -> RecordFile:
    """A header and rows of cells."""
    name, text = read_text(source)
    header_end = text.find("\n")
    header = text if header_end < 0 else text[:header_end]
    delimiter = "\t" if format == "tsv" else max(",;\t", key=_outside_quotes(header).count)
    rows, lines = _cells(name, text, delimiter)
    if not rows:
        raise DataError(f"{name} is empty; expected a header and rows of cells")
    columns = [cell.strip() for cell in rows[0]]
    for k, column in enumerate(columns):
        if not column:
            raise DataError(f"{name}, line {lines[0]}: column {k + 1} of the header has no name")
        if column in columns[:k]:
            raise DataError(f"{name}, line {lines[0]}: the header names column {column!r} twice")
    records: list[dict[str, Any] | Missing] = []
    for line, row in zip(lines[1:], rows[1:], strict=True):
        if any(cell.strip() for cell in row[len(columns) :]):
            raise DataError(
                f"{name}, line {line}: {len(row)} cells, but the header has {len(columns)}; put "
                "cells with a separator inside between double quotes"
            )
        records.append(dict(zip(columns, row, strict=False)))
    return RecordFile(name, format, columns, records, lines[1:], delimiter)


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _cells(name: str, text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Rows of cells and their lines (the module csv has a limit on cells, for all who use it)."""
    # A tab separates in any case, so that quotes in a TSV file may be part of a text.
    quoted = r'"([^"]*(?:""[^"]*)*)"'
    plain = rf"([^{delimiter}\r\n]*)"
    cell = re.compile(rf"(?:{quoted}(?=[{delimiter}\r\n]|\Z)|{plain})([{delimiter}]|\r\n|\n|\r|\Z)")
    rows: list[list[str]] = []
    lines: list[int] = []
    row: list[str] = []
    position, line, start = 0, 1, 1
    while position < len(text) or row:
        found = cell.match(text, position)
        assert found is not None  # the plain form matches anything
        if found[1] is None and found[2].startswith('"') and delimiter != "\t":
            raise DataError(
                f"{name}, line {line}: a cell begins with a double quote that is not closed at "
                "the end of a cell; write quotes inside quotes twice"
            )
        row.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        line += 0 if found[1] is None else found[1].count("\n")
        position = found.end()
        if found[3] != delimiter:
            if len(row) > 1 or row[0].strip() or found[1] is not None:  # not a blank line
                rows.append(row)
                lines.append(start)
            row = []
            line += bool(found[3])
            start = line
    return rows, lines
