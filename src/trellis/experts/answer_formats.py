r"""Files of answers: column files, tables of records, lines of words; read, and written again.

    conll              a label a line, in a column of fields; a blank line after each sample
    jsonl, json        an object a line, or a list of objects: an answer under a key
    csv, tsv           a table with a header: an answer in a cell
    lines              a sample a line, words separated by spaces
    trn                lines with the utterance in brackets: ``the cat sat (utt-1)``
    ctm                ``utterance channel start duration word [confidence]``, a word a line

Each class here is what one file holds, knows the place of every sample for messages, and gives the
text of the same file with other answers in it. What an answer means is said in
:mod:`trellis.experts.answer_values`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, count, pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from trellis.corpus.columnfile import FieldTable, check_writable, code_column, read_fields
from trellis.domains import is_whole
from trellis.errors import DataError
from trellis.experts.answer_values import Missing, is_plain, label_text
from trellis.files.text import ReadText, Source, read_bytes, read_text

__all__ = [
    "FORMATS",
    "AnswerFormat",
    "ColumnFile",
    "Combined",
    "LineFile",
    "RecordFile",
    "read_answer_file",
    "read_sources",
    "told_formats",
]

FORMATS = ("conll", "jsonl", "json", "csv", "tsv", "lines", "trn", "ctm")
_RECORDS = ("jsonl", "json", "csv", "tsv")
_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "json", ".ctm": "ctm", ".trn": "trn", ".conll": "conll", ".bio": "conll",
    ".iob": "conll", ".iob2": "conll",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".xz")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CTM_LINE = re.compile(rf"\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+(?:\s|$)")
_TRN_ID = re.compile(
    r"(?P<words>.*?)\s*\((?P<last>[^()\s]+)\)|\((?P<first>[^()\s]+)\)\s+(?P<rest>.*)"
)
_NO_KEY = Missing("key not there")


@dataclass(frozen=True)
class Combined:
    """What is to be written: for each sample an answer, how sure it is, and where it came from.

    Attributes
    ----------
    kind : str
    labels : list of (list of str or None)
        For the column and line formats.
    values : list
        The same as users write them: a label, a list, an object; None where there is no answer.
    confidence : list or None
        Numbers, lists or objects of them, likewise.
    rows : list of (int or None)
        The sample of the file that each belongs to; None if the file has none.
    ids : list of str
    key : int, str or None
        The column that is replaced; None: there is a new one.
    id : str or None
        The column of the ids.
    mark : str
        What stands where there is no answer.
    spread : bool
        Whether answers are objects that are no value of a record, but part of it.
    """

    kind: str
    labels: list[list[Any] | None]
    values: list[Any]
    confidence: list[Any] | None
    rows: list[int | None]
    ids: list[str]
    key: int | str | None
    id: str | None
    mark: str
    spread: bool = False


# ---------------------------------------------------------------------------- column files


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """A file with a label a line."""

    table: FieldTable
    format: str = "conll"

    @property
    def name(self) -> str:
        """Of the file."""
        return self.table.name

    def __len__(self) -> int:
        return len(self.table.sample_ptr) - 1

    def place(self, sample: int) -> str:
        """Where a sample begins."""
        table = self.table
        return f"{table.name}, line {table.line_number[table.sample_ptr[sample]]}"

    def answers(self, column: Any, marks: Sequence[str]) -> list[Any]:
        """The labels in a column; None for those that are a mark."""
        table = self.table
        fields = self._fields(column)
        coded = code_column(table, fields)
        values: list[str | None] = [None if v in marks else v for v in coded.values]
        labels = [values[code] for code in coded.codes]
        ends = table.sample_ptr.tolist()
        if None not in values:
            return [labels[a:b] for a, b in pairwise(ends)]
        silent = Missing(f"marked {next(m for m in marks if m in coded.values)!r}")
        return [
            silent if all(label is None for label in labels[a:b]) else labels[a:b]
            for a, b in pairwise(ends)
        ]

    def _fields(self, column: Any) -> Any:
        """The field of each line that belongs to a column."""
        number = _column_number(column)
        table = self.table
        counts = np.diff(table.line_ptr)
        short = np.flatnonzero(counts < abs(number))
        if short.size:
            raise table.fail(int(short[0]), f"{counts[short[0]]} fields, expected column {number}")
        return table.line_ptr[:-1] + number - 1 if number > 0 else table.line_ptr[1:] + number

    def text(self, combined: Combined) -> str:
        """The file with the combined labels in a column, and their confidence in one more."""
        labels = [y for answer in combined.labels for y in answer or ()]
        check_writable((y for y in labels if y is not None), "an answer", "a column file", " \t")
        if combined.kind != "labels":
            return self._of_other_lengths(combined)
        table = self.table
        data = table.buffer.tobytes()
        last_field = table.line_ptr[1:] - 1
        replaced = last_field if combined.key is None else self._fields(combined.key)
        pieces = []
        done = 0
        lines = iter(
            zip(
                table.first[replaced].tolist(), table.last[replaced].tolist(),
                table.last[last_field].tolist(), table.first[table.line_ptr[:-1]].tolist(),
                strict=True,
            )
        )  # fmt: skip
        for row, answer in enumerate(combined.labels):
            length = int(table.sample_ptr[row + 1] - table.sample_ptr[row])
            if answer is not None and len(answer) != length:
                raise DataError(f"{self.place(row)}: {len(answer)} labels for {length} lines")
            sure = None if combined.confidence is None else combined.confidence[row]
            for k in range(length):
                first, last, end, begin = next(lines)
                label = (None if answer is None else answer[k]) or combined.mark
                gap = b"\t" if b"\t" in data[begin:end] else b" "
                if combined.key is None:
                    pieces += [data[done:end], gap, label.encode()]
                else:
                    pieces += [data[done:first], label.encode(), data[last:end]]
                if combined.confidence is not None:
                    number = combined.mark if sure is None else f"{sure[k]:.4f}"
                    pieces += [gap, number.encode()]
                done = end
        return b"".join([*pieces, data[done:]]).decode()

    def _of_other_lengths(self, combined: Combined) -> str:
        lines = []
        for row, answer in enumerate(combined.labels):
            for k, label in enumerate([combined.mark] if answer is None else answer):
                sure = None if combined.confidence is None else combined.confidence[row]
                lines.append(f"{label} {sure[k]:.4f}" if sure is not None else label)
            lines.append("")
        return "".join(f"{line}\n" for line in lines)


def _column_number(column: Any) -> int:
    if isinstance(column, str) and re.fullmatch(r"-?[1-9][0-9]{0,8}", column):
        column = int(column)
    if not is_whole(column) or column == 0:
        raise DataError(
            f"column is {column!r}: expected the number of a column of a column file, 1 (the "
            "first), 2, ... or -1 (the last)"
        )
    return int(column)


# ---------------------------------------------------------------------------- tables of records


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


def _read_jsonl(source: Source) -> RecordFile:
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


def _read_json(source: Source) -> RecordFile:
    name, text = read_text(source)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(_record(text.lstrip().split("\n")[0]), dict):
            return _read_jsonl(ReadText(name, text.encode()))
        raise DataError(f"{name}: not JSON ({error})") from None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or (value and not any(isinstance(r, dict) for r in value)):
        raise DataError(f"{name}: expected a list of objects, one for each sample")
    records = [r if isinstance(r, dict) else Missing("not a JSON object") for r in value]
    return RecordFile(name, "json", _keys(records), records, list(range(1, len(records) + 1)))


def _read_csv(source: Source, format: str) -> RecordFile:
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


# ---------------------------------------------------------------------------- lines of words


@dataclass(frozen=True, eq=False)
class LineFile:
    """A file with a sequence of words a line, or for each utterance."""

    name: str
    format: str
    words: list[list[str]]
    lines: list[int]
    utterances: list[str] | None = None
    channels: list[str] = field(default_factory=list)  # of utterances in a ctm file
    odd: list[int] = field(default_factory=list)  # lines that could not be read

    def __len__(self) -> int:
        return len(self.words)

    def place(self, sample: int) -> str:
        """Where a sample is."""
        return f"{self.name}, line {self.lines[sample]}"

    def answers(self, marks: Sequence[str]) -> list[Any]:
        """The words of each sample."""
        return [
            Missing(f"marked {words[0]!r}") if len(words) == 1 and words[0] in marks else words
            for words in self.words
        ]

    def text(self, combined: Combined) -> str:
        """A line for each sample, with its utterance; confidences after a tab."""
        if self.utterances is not None:
            check_writable(combined.ids, "an utterance", "a trn file", " \t()")
        lines = []
        for i, answer in enumerate(combined.labels):
            words = [combined.mark] if answer is None else [y or combined.mark for y in answer]
            check_writable(words, "an answer", "a file of lines", " \t")
            line = " ".join(words)
            if self.utterances is not None:
                line = f"{line} ({combined.ids[i]})".lstrip()
            if combined.confidence is not None:
                sure = combined.confidence[i]
                numbers = [] if sure is None else sure if isinstance(sure, list) else [sure]
                line += "\t" + " ".join(f"{c:.4f}" for c in numbers)
            lines.append(f"{line}\n")
        return "".join(lines)


def _text_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _read_lines(source: Source) -> LineFile:
    name, text = read_text(source)
    rows = _text_lines(text)
    return LineFile(name, "lines", [row.split() for row in rows], list(range(1, len(rows) + 1)))


def _read_trn(source: Source) -> LineFile:
    name, text = read_text(source)
    words, lines, utterances = [], [], []
    odd = []
    for number, row in enumerate(_text_lines(text), 1):
        if not row.strip() or row.startswith(";;"):
            continue
        found = _TRN_ID.fullmatch(row.strip())
        if found is None:
            odd.append(number)
            continue
        words.append((found["words"] if found["last"] else found["rest"]).split())
        utterances.append(found["last"] or found["first"])
        lines.append(number)
    if odd and not words:
        raise DataError(
            f"{name}, line {odd[0]}: expected words and an utterance in brackets, «the cat sat "
            "(utt-1)»; for lines without utterances, the format is lines"
        )
    return LineFile(name, "trn", words, lines, utterances, odd=odd)


def _read_ctm(source: Source) -> LineFile:
    name, text = read_text(source)
    said: dict[tuple[str, str], list[tuple[float, str]]] = {}
    first: list[int] = []
    odd = []
    for number, row in enumerate(_text_lines(text), 1):
        fields = row.split()
        if not fields or row.startswith(";;"):
            continue
        start = _time(fields[2]) if len(fields) >= 5 else None
        if start is None or _time(fields[3]) is None:
            odd.append(number)
            continue
        key = (fields[0], fields[1])
        if key not in said:
            first.append(number)
        said.setdefault(key, []).append((start, fields[4]))
    if odd and not said:
        raise DataError(
            f"{name}, line {odd[0]}: expected utterance, channel, start, duration and word, and "
            "perhaps a confidence"
        )
    words = [[word for _, word in sorted(timed, key=lambda x: x[0])] for timed in said.values()]
    utterances = [utterance for utterance, _ in said]
    channels = [channel for _, channel in said]
    return LineFile(name, "ctm", words, first, utterances, channels, odd)


def _time(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# ---------------------------------------------------------------------------- formats

AnswerFormat = ColumnFile | RecordFile | LineFile


def read_sources(sources: Sequence[Source]) -> list[ReadText]:
    """The content of files, read once."""
    return [ReadText(*read_bytes(source)) for source in sources]


def read_answer_file(source: ReadText, format: str) -> AnswerFormat:
    """Read a file of a known format."""
    if format == "conll":
        read_text(source)  # all columns, since all are written
        return ColumnFile(read_fields(source, tabs_only=False))
    if format in ("csv", "tsv"):
        return _read_csv(source, format)
    if format == "jsonl":
        return _read_jsonl(source)
    if format == "json":
        return _read_json(source)
    if format == "trn":
        return _read_trn(source)
    return _read_ctm(source) if format == "ctm" else _read_lines(source)


def told_formats(files: Sequence[ReadText], columns: Sequence[Any] = ()) -> list[str]:
    """The formats of files, told from their names and their content.

    Whether a file of words has one word or one sample a line is told from all files together: the
    former have equally many fields in all lines, and their blank lines in the same places.
    """
    formats = [_told_format(file, columns) for file in files]
    unclear = [file for file, told in zip(files, formats, strict=True) if not told]
    for file in unclear:
        read_text(file)  # text at all
    plain = _words_or_samples([read_fields(file, tabs_only=False) for file in unclear])
    return [format or plain for format in formats]


def _told_format(file: ReadText, columns: Sequence[Any]) -> str:
    path = PurePath(file.name)
    while path.suffix.lower() in _PACKED:
        path = path.with_suffix("")
    told = _SUFFIXES.get(path.suffix.lower(), "")
    data = file.getvalue()
    if told == "tsv" and re.search(rb"[^\s][ \t\r]*\n[ \t\r]*\n\s*[^\s]", data):
        return "conll"  # blank lines between samples
    if told == "jsonl" and data.lstrip()[:1] == b"[":
        return "json"
    if told:
        return told
    start = data[: 1 << 16].decode("utf-8", "replace")
    lines = [line.strip() for line in start.split("\n") if line.strip()][:100]
    if not lines:
        return "lines"
    header = lines[0]
    if columns and any(
        {c.strip().strip('"') for c in header.split(mark)} >= {str(c) for c in columns}
        for mark in ",;\t"
    ):
        return "tsv" if "\t" in header else "csv"
    if lines[0].startswith("{"):
        return "jsonl"
    if lines[0].startswith("[") and re.match(r"\[\s*(\{|\]\s*$)", start.lstrip()):
        return "json"
    spoken = [line for line in lines if not line.startswith(";;")]
    if spoken and all(_CTM_LINE.match(line) for line in spoken):
        return "ctm"
    if spoken and all(_TRN_ID.fullmatch(line) for line in spoken):
        return "trn"
    return ""


def _words_or_samples(tables: list[FieldTable]) -> str:
    """Whether files have one word a line (conll) or one sample (lines)."""
    tables = [table for table in tables if len(table.line_number)]
    counts = [np.unique(np.diff(table.line_ptr)) for table in tables]
    if not tables or any(len(count) > 1 for count in counts):
        return "lines"
    several = [len(table.sample_ptr) > 2 for table in tables]
    if any(count[0] == 1 for count in counts):
        same = all(np.array_equal(t.line_number, tables[0].line_number) for t in tables)
        return "conll" if all(several) and same else "lines"
    ends = [re.search(rb"\n[ \t\r]*\n\Z", t.buffer[-80:].tobytes()) for t in tables]
    if all(a or b for a, b in zip(several, ends, strict=True)):
        return "conll"
    if len({int(count[0]) for count in counts}) > 1:
        return "lines"
    raise DataError(
        f"cannot tell whether {tables[0].name} has one word or one sample a line: say "
        "format='conll' (a word a line) or format='lines' (a sample a line)"
    )
