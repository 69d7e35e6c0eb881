"""Where answers are: which files and which of their columns, and which samples belong together.

Several files hold one system each, or one table holds a column for each. Files are joined by the
ids of their samples if all have ids, and else by order.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Any

from trellis.domains import is_whole
from trellis.errors import DataError
from trellis.experts.answer_values import Missing, said, structure
from trellis.experts.column_answers import ColumnFile
from trellis.experts.line_answers import LineFile
from trellis.experts.record_answers import RecordFile
from trellis.experts.told_formats import AnswerFormat, read_answer_file, read_sources, told_formats
from trellis.files.text import Source

__all__ = ["AnswerColumn", "AnswerSources"]

_USUAL_KEYS = (
    "labels", "answer", "answers", "label", "spans", "entities", "tags", "prediction",
    "predictions", "output", "response",
)  # fmt: skip


@dataclass(frozen=True)
class AnswerColumn:
    """What one system says in a file, one value for each sample of the file."""

    name: str
    file: AnswerFormat
    values: list[Any]
    key: int | str | None = None
    spread: bool = False


class AnswerSources:
    """Files, the columns of the systems in them, and which samples belong together."""

    def __init__(
        self,
        format: str,
        kind: str,
        id: str | None,
        text: str | None,
        strict: bool,
        marks: tuple[str, ...],
    ) -> None:
        self.format = format
        self.kind = kind
        self.id = id
        self.text = text
        self.strict = strict
        self.marks = marks
        self.columns: list[AnswerColumn] = []
        self.gold: AnswerColumn | None = None
        self.files: list[AnswerFormat] = []
        self.paths: list[str] = []
        self.notes: list[str] = []

    # ------------------------------------------------------------------ files and columns

    def read_files(self, sources: list[Source], gold: Any, column: Any) -> None:
        """One file for each system."""
        if is_whole(gold):
            raise DataError(
                f"gold is {gold}: with several files it is one more file; the column in which "
                "all have their answers is given by column"
            )
        self._open([*sources, *([] if gold is None else [gold])])
        names = _short_names(self.paths[: len(sources)])
        for file, name in zip(self.files, names, strict=False):
            self.columns.append(self._column(file, name, column))
        if gold is not None:
            self.gold = self._gold_column(column)

    def read_table(
        self, source: Source, systems: Sequence[Any] | None, gold: Any, column: Any
    ) -> None:
        """One file with a column for each system."""
        if systems is not None and column is not None:
            raise DataError("name the columns by systems or by column, not by both")
        self._open([source], [c for c in (*(systems or ()), self.id) if not _is_number(c)])
        file = self.files[0]
        if isinstance(file, RecordFile):
            gold = self._table_columns(file, systems if column is None else [column], gold)
        elif systems is None:
            self.columns = [self._column(file, _short_names(self.paths)[0], column)]
        elif isinstance(file, LineFile):
            raise DataError(f"{file.name} has the format {file.format}: it has no columns")
        else:
            for number in systems:
                values = file.answers(number, self.marks)
                self.columns.append(AnswerColumn(f"column {number}", file, values))
        if isinstance(file, ColumnFile) and gold is not None and _is_number(gold):
            self.gold = AnswerColumn("gold", file, file.answers(gold, self.marks))
        elif gold is not None:
            self._open([gold])
            self.gold = self._gold_column(None)

    def _open(self, sources: Sequence[Source], columns: Sequence[Any] = ()) -> None:
        """Read files, all of them before anything is made of them."""
        files = read_sources(sources)
        known = [c for c in columns if c is not None]
        formats = [self.format] * len(files)
        if self.format == "auto":
            formats = told_formats(files, known)
        for source, content, format in zip(sources, files, formats, strict=True):
            file = read_answer_file(content, format)
            if not len(file):
                raise DataError(f"{file.name} is empty: there is no sample in it")
            self.files.append(file)
            name = source if isinstance(source, (str, os.PathLike)) else content.name
            self.paths.append(os.fsdecode(name))

    def _column(self, file: AnswerFormat, name: str, column: Any) -> AnswerColumn:
        """The answers of one system in its file."""
        if isinstance(file, ColumnFile):
            number = -1 if column is None else column
            return AnswerColumn(name, file, file.answers(number, self.marks), number)
        if isinstance(file, LineFile):
            if column is not None:
                raise DataError(f"{file.name} has the format {file.format}: it has no columns")
            self._odd_lines(file)
            return AnswerColumn(name, file, file.answers(self.marks), "")
        other = (self.id_of(file), self._text_of(file))
        rest = [c for c in file.columns if c not in other]
        usual = [c for c in _USUAL_KEYS if c in rest]
        likely = usual[0] if usual else rest[0] if len(rest) == 1 else None
        if column is not None:
            key = file.require(column, "the column")
        elif self.kind == "fields" and rest and not _holds_objects(file, likely):
            return AnswerColumn(name, file, file.whole(other), "", spread=True)
        elif likely is not None:
            key = likely
        else:
            raise DataError(
                f"{file.name}: which of its columns has the answers? They are "
                f"{', '.join(rest) or '(none)'}; name one by column, or say kind='fields' if an "
                "answer is the whole record"
            )
        return AnswerColumn(name, file, file.answers(key), key)

    def _gold_column(self, column: Any) -> AnswerColumn:
        """The right answers, in the last file: there they may have a name of their own."""
        file = self.files[-1]
        if isinstance(file, RecordFile) and "gold" in file.columns:
            return AnswerColumn("gold", file, file.answers("gold"))
        known = not isinstance(file, RecordFile) or column in file.columns
        return self._column(file, "gold", column if known else None)

    def _odd_lines(self, file: LineFile) -> None:
        """Lines that have not the format of their file."""
        if file.odd and self.strict:
            raise DataError(f"{file.name}, line {file.odd[0]}: not a line of a {file.format} file")
        if file.odd:
            self.notes.append(
                f"{file.name}: {len(file.odd)} line(s) left out that are not of a {file.format} "
                f"file; first line {file.odd[0]}"
            )

    def _table_columns(self, file: RecordFile, systems: Sequence[Any] | None, gold: Any) -> Any:
        """The columns of a table; returns ``gold`` if it is no column but a file."""
        likely = "gold" if gold is None and systems is None and "gold" in file.columns else None
        if likely is not None and any(map(said, file.answers(likely))):
            self.notes.append(f"{file.name}: the column 'gold' is taken as the right answers")
            gold = likely
        right = gold if isinstance(gold, str) and gold in file.columns else None
        if right is not None:
            self.gold = AnswerColumn("gold", file, file.answers(right))
            gold = None
        elif is_whole(gold) or (isinstance(gold, str) and gold != "-" and not _is_file(gold)):
            raise DataError(
                f"gold {gold!r} is neither a column of {file.name} nor a file; the columns are "
                f"{', '.join(file.columns)}"
            )
        other = [self.id_of(file), self._text_of(file), right, likely]
        if systems is None:
            chosen = [c for c in file.columns if c not in other]
        else:
            chosen = [file.require(name, "the system") for name in systems]
            for name in chosen:
                if name in (right, self.id, self.text) or chosen.count(name) > 1:
                    raise DataError(f"the column {name!r} is named for two things")
        if not chosen:
            raise DataError(f"{file.name} has no column of a system's answers")
        self.columns = [AnswerColumn(name, file, file.answers(name)) for name in chosen]
        return gold

    def id_of(self, file: AnswerFormat) -> str | None:
        """The column of a file that names its samples."""
        if not isinstance(file, RecordFile):
            if self.id is not None and isinstance(file, ColumnFile):
                raise DataError(f"id is {self.id!r}, but {file.name} is no table with a header")
            return None
        if self.id is not None:
            return file.require(self.id, "id")
        return next((c for c in ("id", "ID", "Id") if c in file.columns), None)

    def _text_of(self, file: RecordFile) -> str | None:
        if self.text is not None:
            return file.require(self.text, "text") if file is self.files[0] else self.text
        return "text" if "text" in file.columns else None

    # ------------------------------------------------------------------ joining

    def join(self) -> None:
        """Find the samples: ``ids``, and ``rows[f][i]``, the row of sample i in file f."""
        self.ids, self.rows = self._joined()

    def _joined(self) -> tuple[list[str], list[list[int | None]]]:
        """Ids of the samples, and for each file the row that each sample has there."""
        ids = [self._ids(file) for file in self.files]
        if len(self.files) == 1:
            n = len(self.files[0])
            names = ids[0] or [None] * n
            numbered = [self._unnamed(i) if x is None else x for i, x in enumerate(names)]
            return numbered, [list(range(n))]
        if all(x is not None for x in ids):
            return self._joined_by_id([x for x in ids if x is not None])
        if any(x is not None for x in ids):
            without = next(f for f, x in zip(self.files, ids, strict=True) if x is None)
            self.notes.append(f"joined by order, since {without.name} has no ids that are distinct")
        first = self.files[0]
        for file in self.files[1:]:
            _check_same_number(first, file)
        found = next((x for x in ids if x is not None), [None] * len(first))
        called = [str(i + 1) if x is None else x for i, x in enumerate(found)]
        return called, [list(range(len(first))) for _ in self.files]

    def _unnamed(self, row: int) -> str:
        """What to call a row of the only file."""
        file = self.files[0]
        named = self.id_of(file) is not None and isinstance(file, RecordFile)
        return f"line {file.lines[row]}" if named and isinstance(file, RecordFile) else str(row + 1)

    def _ids(self, file: AnswerFormat) -> list[str | None] | None:
        """The ids of a file, if each is another."""
        column = self.id_of(file)
        if isinstance(file, LineFile) and file.utterances is not None:
            ids: list[str | None] = [*file.utterances]
            if any(_several_channels(f) for f in self.files) and file.channels:
                ids = [f"{u}-{c}" for u, c in zip(file.utterances, file.channels, strict=True)]
        elif isinstance(file, RecordFile) and column is not None:
            ids = file.ids(column)
        else:
            return None
        seen: dict[str, int] = {}
        for row, name in enumerate(ids):
            if name is None and self.strict:
                raise DataError(f"{file.place(row)}: no id")
            if name is not None and name in seen:
                if self.id is None and isinstance(file, RecordFile):
                    self.notes.append(
                        f"{file.name}: the column {column!r} does not name samples ({name!r} is at "
                        f"{file.place(seen[name])} and at {file.place(row)})"
                    )
                    return None
                raise DataError(
                    f"{file.place(row)}: the id {name!r} is also at {file.place(seen[name])}"
                )
            if name is not None:
                seen[name] = row
        return ids if seen else None

    def _joined_by_id(
        self, ids: list[list[str | None]]
    ) -> tuple[list[str], list[list[int | None]]]:
        rows = [{name: k for k, name in enumerate(x) if name is not None} for x in ids]
        right = None if self.gold is None else self.files.index(self.gold.file)
        known: dict[str, None] = {}
        for f, (file, found) in enumerate(zip(self.files, rows, strict=True)):
            unnamed = len(ids[f]) - len(found)
            if unnamed:
                first = ids[f].index(None)
                self.notes.append(
                    f"{file.name}: {unnamed} of {len(file)} samples left out that have no id; "
                    f"first at {file.place(first)}"
                )
            if f and known.keys().isdisjoint(found):
                name = next(iter(found))
                raise DataError(
                    f"{file.name} has no id that the files before it have; its first is {name!r}, "
                    f"that of {self.files[0].name} is {next(iter(rows[0]))!r}"
                )
            if f != right:
                known |= dict.fromkeys(found)
        if right is not None and (extra := [x for x in rows[right] if x not in known]):
            self.notes.append(
                f"gold: {len(extra)} right answers left out that no system has a sample for; first "
                f"at {self.files[right].place(rows[right][extra[0]])}"
            )
        return list(known), [[found.get(name) for name in known] for found in rows]

    def rows_of(self, file: AnswerFormat) -> list[int | None]:
        """The row of each sample in a file."""
        return self.rows[self.files.index(file)]

    def raw(self, column: AnswerColumn) -> list[Any]:
        """What a system says to each sample."""
        rows = self.rows_of(column.file)
        nothing_said = Missing("no such id")
        return [nothing_said if k is None else column.values[k] for k in rows]

    def place(self, column: AnswerColumn, sample: int) -> str:
        """Where a system answers a sample."""
        row = self.rows_of(column.file)[sample]
        return column.file.name if row is None else column.file.place(row)

    def texts(self) -> list[str | None] | None:
        """The texts of the samples, from whichever files have them."""
        texts: list[str | None] = [None] * len(self.ids)
        for file, rows in zip(self.files, self.rows, strict=True):
            if not isinstance(file, RecordFile) or (column := self._text_of(file)) is None:
                continue
            values = file.answers(column)
            for i, row in enumerate(rows):
                if texts[i] is None and row is not None and isinstance(values[row], str):
                    texts[i] = values[row]
        return texts if any(text is not None for text in texts) else None


def _is_number(column: Any) -> bool:
    """Whether this is the number of a column, perhaps as the text of a command line."""
    return is_whole(column) or (
        isinstance(column, str) and re.fullmatch(r"-?[0-9]+", column) is not None
    )


def _is_file(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _holds_objects(file: RecordFile, column: str | None) -> bool:
    """Whether there are objects in a column."""
    values = [] if column is None else file.answers(column)
    return any(isinstance(structure(value), dict) for value in values)


def _several_channels(file: AnswerFormat) -> bool:
    return (
        isinstance(file, LineFile)
        and file.utterances is not None
        and bool(file.channels)
        and len(set(file.utterances)) < len(file.utterances)
    )


def _check_same_number(first: AnswerFormat, other: AnswerFormat) -> None:
    """Refuse two files that do not have the same number of samples."""
    if len(first) != len(other):
        longer = max(first, other, key=len)
        extra = longer.place(min(len(first), len(other)))
        raise DataError(
            f"{other.name} has {len(other)} samples, {first.name} has {len(first)}: the first "
            f"without a counterpart is at {extra}"
        )


def _short_names(paths: Sequence[str]) -> list[str]:
    """Names of files without what they share: folders, endings, parts between marks.

    Examples
    --------
    >>> _short_names(["out/sys1.txt", "out/sys2.txt"])
    ['sys1', 'sys2']
    >>> _short_names(["gpt/answers.jsonl", "claude/answers.jsonl"])
    ['gpt', 'claude']
    >>> _short_names(["ner-gpt.conll.gz", "ner-rules.conll.gz"])
    ['gpt', 'rules']
    """
    parts = [PurePath(path).parts or ("",) for path in paths]
    names = [_stem(p[-1]) for p in parts]
    for depth in range(2, max(map(len, parts)) + 1):
        if len(set(names)) == len(names):
            break
        folders = [p[-depth] if len(p) >= depth else "" for p in parts]
        names = folders if len(set(folders)) == len(folders) else names
    words = [re.split(r"([-_. ])", name) for name in names]
    if len(names) > 1 and len(set(names)) == len(names):
        a = _shared(words)
        b = _shared([w[::-1] for w in words])
        short = ["".join(w[a : len(w) - b]).strip("-_. ") for w in words]
        if len(set(short)) == len(short) and all(re.search(r"[^\W\d]", name) for name in short):
            names = short
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name} {j + 1}" for j, name in enumerate(names)]


def _stem(name: str) -> str:
    return re.sub(r"(\.(gz|bz2|xz))?$", "", name).rsplit(".", 1)[0] or name


def _shared(words: list[list[str]]) -> int:
    """How many parts all have in common at their beginning, one being left to each at least."""
    same = list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
    return min(len(same), min(map(len, words)) - 1)
