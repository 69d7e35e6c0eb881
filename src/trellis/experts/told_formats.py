"""Which format a file of answers has, told from its name and its content; reading it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from trellis.corpus.columnfile import FieldTable, read_fields
from trellis.errors import DataError
from trellis.experts.column_answers import ColumnFile
from trellis.experts.line_answers import (
    CTM_LINE,
    TRN_LINE,
    LineFile,
    read_ctm,
    read_lines,
    read_trn,
)
from trellis.experts.record_answers import RecordFile, read_csv, read_json, read_jsonl
from trellis.files.text import ReadText, Source, read_bytes, read_text

__all__ = ["AnswerFormat", "read_answer_file", "read_sources", "told_formats"]

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "json", ".ctm": "ctm", ".trn": "trn", ".conll": "conll", ".bio": "conll",
    ".iob": "conll", ".iob2": "conll",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".xz")

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
        return read_csv(source, format)
    if format == "jsonl":
        return read_jsonl(source)
    if format == "json":
        return read_json(source)
    if format == "trn":
        return read_trn(source)
    return read_ctm(source) if format == "ctm" else read_lines(source)


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
    if spoken and all(CTM_LINE.match(line) for line in spoken):
        return "ctm"
    if spoken and all(TRN_LINE.fullmatch(line) for line in spoken):
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
