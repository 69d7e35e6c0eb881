r"""The answers of several systems, from whatever files there are, and back.

p systems answer the same n samples: ``answers[j][i]`` is what system j says about sample i, and
``gold[i]`` what is right, where that is known. They come from p files, one for each system, or
from one table with a column for each; see :mod:`trellis.experts.answer_formats` for the formats
and :mod:`trellis.experts.answer_values` for what an answer may be. Files are joined by the ids of
their samples if all have ids, and else by order.

What cannot be read as an answer (a refusal, a broken line, a key that is not there) is missing, as
an empty cell is: the system says nothing there. What was taken so, and why, is said in ``notes``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

from trellis.domains import nothing, one_of, strings
from trellis.domains import text as a_text
from trellis.errors import DataError
from trellis.experts.answer_formats import FORMATS
from trellis.experts.answer_sources import AnswerColumn, AnswerSources
from trellis.experts.answer_values import (
    KINDS,
    Missing,
    Reading,
    forms,
    label_text,
    most_common_form,
    said,
    structure,
)
from trellis.experts.answers import MARK, Answers, Shape
from trellis.experts.column_answers import ColumnFile
from trellis.experts.outputs import checked_names
from trellis.experts.record_answers import RecordFile
from trellis.files.text import Source

__all__ = ["read_answers"]

_FORMS = {"single": "text", "fields": "object", "spans": "spans"}  # that kinds can only have
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)")
_WITH_POINT = re.compile(r"(-?(?:0|[1-9]\d*))\.0+")


def read_answers(
    sources: Source | Sequence[Source],
    *,
    format: str = "auto",
    kind: str = "auto",
    names: Sequence[str] | None = None,
    id: str | None = None,
    systems: Sequence[int | str] | None = None,
    gold: Source | int | None = None,
    column: int | str | None = None,
    text: str | None = None,
    fields: Sequence[str] | None = None,
    missing: str = "skip",
    missing_marks: Sequence[str] = (MARK,),
) -> Answers:
    r"""Read the answers of several systems: a file for each, or one table with a column for each.

    Parameters
    ----------
    sources : path, "-", open file, or a sequence of them
        One file for each system; or one table whose columns are the systems.
    format : "auto", "conll", "jsonl", "json", "csv", "tsv", "lines", "trn" or "ctm"
        By default told from the names of the files and what is in them.
    kind : "auto", "labels", "words", "single", "fields" or "spans"
        What the answers are; see :class:`Answers`. By default told from what most of them are.
    names : sequence of str or None
        Of the systems; by default the names of files or columns.
    id : str or None
        The column of tables that names the samples; by default ``id`` if all files have it. Lines
        of a ``trn`` or ``ctm`` file name theirs.
    systems : sequence of (str or int), or None
        One table: the columns of the systems; by default all that are not otherwise used. For a
        column file, their numbers: 1 is the first, -1 the last.
    gold : source, str, int or None
        The right answers: one more file, or a column of the one table (by default ``gold``, if it
        has one and ``systems`` is not given).
    column : int, str or None
        Several files: where the answers are: the number of a column of column files (by default the
        last), the key or the column of tables.
    text : str or None
        The column of the texts; by default ``text``, if there is one.
    fields : sequence of str or None
        The keys that objects are made of; by default those of the right answers or, without any,
        those that two systems use.
    missing : "skip" or "error"
        What cannot be read as an answer is missing, with a note; or it is refused.
    missing_marks : sequence of str
        What stands for a missing answer, or a missing label, besides nothing at all.

    Returns
    -------
    Answers

    Raises
    ------
    DataError
        If a file cannot be read, or files do not belong together.

    Examples
    --------
    >>> import io
    >>> from trellis.experts import read_answers
    >>> files = [io.StringIO("the cat sat\nyes\n"), io.StringIO("the cat\n_\n")]
    >>> read_answers(files, format="lines").answers
    [[['the', 'cat', 'sat'], ['yes']], [['the', 'cat'], None]]
    >>> read_answers(io.StringIO("the D D N\ncat N N V\n"), format="conll", systems=[3, 4], gold=2)
    Answers(names=('column 3', 'column 4'), answers=[[['D', 'N']], [['N', 'V']]], ids=['1'],
    kind='labels', gold=[['D', 'N']], fields=(), texts=None, notes=[])
    """
    one_of("auto", *FORMATS).check("format", format)
    one_of("auto", *KINDS).check("kind", kind)
    one_of("skip", "error").check("missing", missing)
    strings.check("missing_marks", missing_marks)
    (nothing | strings).check("fields", fields)
    for what, value in (("id", id), ("text", text)):
        (nothing | a_text).check(what, value)
    for what, listed in (("systems", systems), ("names", names)):
        if isinstance(listed, str):
            raise DataError(f"{what} must be a list of names, got the string {listed!r}")
    if isinstance(sources, (str, os.PathLike)) or hasattr(sources, "read"):
        sources = [cast(Source, sources)]
    if not isinstance(sources, Iterable) or not (sources := list(sources)):
        raise DataError("there are no files to read answers from")
    marks = tuple(missing_marks)
    found = AnswerSources(format, kind, id, text, missing == "error", marks)
    if len(sources) == 1:
        found.read_table(sources[0], systems, gold, column)
    elif systems is not None:
        raise DataError(
            "systems are columns of one table, but there are several files, one for each system; "
            "use column to say where in each the answers are"
        )
    else:
        found.read_files(sources, gold, column)
    found.join()
    return _Interpretation(found, fields).answers(names)


class _Interpretation:
    """What the values in files are as answers."""

    def __init__(self, sources: AnswerSources, fields: Sequence[str] | None) -> None:
        self.sources = sources
        self.strict = sources.strict
        self.marks = sources.marks
        self.fields = None if fields is None else tuple(sorted(set(fields)))
        self.gold = sources.gold
        self.notes = sources.notes

    def answers(self, names: Sequence[str] | None) -> Answers:
        """Read what is said in the files."""
        sources = self.sources
        columns = [*sources.columns, *([] if self.gold is None else [self.gold])]
        raw = [sources.raw(column) for column in columns]
        texts = sources.texts()
        lengths = [None if x is None else len(x) for x in texts or [None] * len(sources.ids)]
        reading, told = self._reading(columns, raw)
        done = [
            self._read_column(c, values, reading, lengths)
            for c, values in zip(columns, raw, strict=True)
        ]
        kind = reading.kind
        if kind == "single":
            self._without_points(columns, done)
        if kind == "labels":
            kind = self._settle_lengths(columns, done, told)
        for column, values in zip(columns, done, strict=True):
            self._account(column, values)
        held = [[None if isinstance(x, Missing) else x for x in values] for values in done]
        gold = None if self.gold is None else held.pop()
        if not any(x is not None for values in held for x in values):
            raise DataError(
                f"no answer could be read: {sources.place(columns[0], 0)}: {done[0][0].reason}; "
                "say what the answers are by kind, where they are by column, or what the file is "
                "by format"
            )
        called = checked_names(
            [c.name for c in sources.columns] if names is None else names, len(held)
        )
        fields = reading.fields if kind == "fields" else ()
        shape = self._shape(reading, kind)
        return Answers(called, held, sources.ids, kind, gold, fields, texts, self.notes, shape)

    def _shape(self, reading: Reading, kind: str) -> Shape:
        """How answers are written: as in the file of the first system."""
        first = self.sources.columns[0]
        as_text = first.file.format in ("csv", "tsv") and kind == "single"
        return Shape(
            first.file,
            first.key,
            self.sources.rows_of(first.file),
            self.sources.id_of(first.file),
            self.marks[0] if self.marks else MARK,
            first.spread,
            {} if as_text else reading.originals,
            joined=reading.form == "text" and kind in ("labels", "words"),
        )

    def _reading(self, columns: list[AnswerColumn], raw: list[list[Any]]) -> tuple[Reading, bool]:
        """How answers are to be read, and whether their kind may still be another."""
        sequences = [c.file for c in columns if not isinstance(c.file, RecordFile)]
        cells = [j for j, c in enumerate(columns) if isinstance(c.file, RecordFile)]
        read = {j: [structure(x) if said(x) else x for x in raw[j]] for j in cells}
        kind = self.sources.kind
        form = _FORMS.get(kind, "list")
        if cells and kind not in _FORMS:
            form = most_common_form(forms(x for j in cells for x in read[j]))
        if form != "text":
            for j in cells:
                raw[j] = read[j]
        if sequences and kind in ("fields", "spans"):
            raise DataError(
                f"{sequences[0].name} has the format {sequences[0].format}, which cannot hold "
                f"{kind}; they can be in jsonl, json, csv and tsv files"
            )
        told = kind == "auto"
        if told and any(isinstance(file, ColumnFile) for file in sequences):
            kind, told = "labels", False
        elif told and sequences:
            words = (x for values in raw for x in values if isinstance(x, list))
            kind = "words" if cells or any(len(x) > 1 for x in words) else "single"
        elif told and form == "text" and self._is_free_text(raw[0]):
            kind = "words"
            self.notes.append(
                "answers are taken as texts, and split into words; say kind='single' if each is a "
                "label"
            )
        elif told:
            kind = {"list": "labels", "text": "single", "object": "fields", "spans": "spans"}[form]
        fields = self._keys(raw) if kind == "fields" else ()
        return Reading(kind, form, self.marks, fields), told

    @staticmethod
    def _is_free_text(values: list[Any]) -> bool:
        """Whether texts are sentences: of three words or more, and hardly ever the same."""
        texts = [x for x in values if isinstance(x, str) and said(x)]
        words = sum(len(text.split()) for text in texts)
        return len(texts) > 1 and words >= 3 * len(texts) and len(set(texts)) > len(texts) / 2

    def _keys(self, raw: list[list[Any]]) -> tuple[str, ...]:
        """The fields that objects are made of."""
        if self.fields is not None:
            return self.fields
        users: dict[str, set[int]] = {}
        for j, values in enumerate(raw):
            for value in values:
                for key in value if isinstance(value, dict) else ():
                    users.setdefault(key, set()).add(j)
        gold = None if self.gold is None else len(raw) - 1
        right = [key for key, who in users.items() if gold in who]
        several = [key for key, who in users.items() if len(who) > 1]
        kept = right or several or list(users)
        kept = [key for key in kept if label_text(key) is not None]  # text that can be written
        if out := sorted(key for key in users if key not in kept):
            whose = "the right answers have not" if right else "only one system has"
            shown = ", ".join(map(repr, out[:5])) + (", ..." if len(out) > 5 else "")
            self.notes.append(f"{len(out)} field(s) left out that {whose}: {shown}")
        return tuple(sorted(kept))

    def _read_column(
        self, column: AnswerColumn, values: list[Any], reading: Reading, lengths: list[int | None]
    ) -> list[Any]:
        """The answers of a system, or why there are none."""
        if isinstance(column.file, RecordFile):
            before = reading.bad_spans
            done = [reading(x, n) for x, n in zip(values, lengths, strict=True)]
            if reading.bad_spans > before:
                self.notes.append(
                    f"{column.name}: {reading.bad_spans - before} span(s) left out that are not "
                    "start, end (beyond start, within the text) and type"
                )
            return done
        if reading.kind != "single":
            return values
        empty = Missing("empty")
        return [
            x if isinstance(x, Missing) else [" ".join(y or MARK for y in x)] if x else empty
            for x in values
        ]

    def _without_points(self, columns: list[AnswerColumn], done: list[list[Any]]) -> None:
        """Whole numbers that some files write with a point: 3.0 is 3 (data frames do that)."""
        flat = {x[0] for values in done for x in values if isinstance(x, list)}
        if not any(_WHOLE_NUMBER.fullmatch(y) for y in flat):
            return
        plain = {y: found[1] for y in flat if (found := _WITH_POINT.fullmatch(y))}
        for column, values in zip(columns, done, strict=True):
            changed = [i for i, x in enumerate(values) if isinstance(x, list) and x[0] in plain]
            if changed:
                old = values[changed[0]][0]
                for i in changed:
                    values[i] = [plain[values[i][0]]]
                self.notes.append(
                    f"{column.name}: {len(changed)} answers like {old} are taken as {plain[old]}"
                )

    def _settle_lengths(
        self, columns: list[AnswerColumn], done: list[list[Any]], told: bool
    ) -> str:
        """Let all answers to a sample have one length, or find that they are to be aligned."""
        odd = []  # samples whose answers differ in length
        compared = 0
        for i, answers in enumerate(zip(*done, strict=True)):
            lengths = [len(x) for x in answers if isinstance(x, list)]
            compared += len(lengths) > 1
            if len(set(lengths)) > 1:
                odd.append(i)
        if not odd:
            return "labels"
        if told and 2 * len(odd) > compared:
            self.notes.append(
                f"the answers to {len(odd)} of {compared} samples differ in length: they are taken "
                "as words, to be aligned"
            )
            return "words"
        place = self.sources.place
        for i in odd:
            known = [j for j, values in enumerate(done) if isinstance(values[i], list)]
            lengths = [len(done[j][i]) for j in known]
            counts = Counter(lengths)
            length = max(lengths, key=counts.__getitem__)  # the first of the most frequent
            if self.gold is not None and known[-1] == len(done) - 1:
                length = lengths[-1]  # the right one
            other = known[lengths.index(length)]
            for j, n in zip(known, lengths, strict=True):
                if n == length:
                    continue
                if self.strict or isinstance(columns[j].file, ColumnFile):
                    raise DataError(
                        f"{place(columns[j], i)}: {columns[j].name} has {n} labels, "
                        f"but {columns[other].name} has {length} ({place(columns[other], i)}); say "
                        "kind='words' if answers are to be aligned"
                    )
                done[j][i] = Missing("not as long as others")
        return "labels"

    def _account(self, column: AnswerColumn, values: list[Any]) -> None:
        """Say what is missing; in strict reading, refuse it."""
        why = [(i, x.reason) for i, x in enumerate(values) if isinstance(x, Missing)]
        if column is self.gold:
            if len(why) == len(values):
                place = self.sources.place(column, 0)
                raise DataError(f"gold: no right answer could be read; {place}: {why[0][1]}")
            why = [(i, reason) for i, reason in why if not _is_silence(reason)]
        if why and self.strict:
            raise DataError(
                f"{self.sources.place(column, why[0][0])}: an answer of {column.name} is missing: "
                f"{why[0][1]}"
            )
        if why:
            counts = Counter(reason for _, reason in why)
            each = ", ".join(f"{reason}: {n}" for reason, n in counts.most_common())
            self.notes.append(
                f"{column.name}: {len(why)} of {len(values)} answers missing ({each}); first at "
                f"{self.sources.place(column, why[0][0])}"
            )
        partly = [x for x in values if isinstance(x, list) and None in x]
        if partly:
            n = sum(x.count(None) for x in partly)
            self.notes.append(f"{column.name}: {n} label(s) missing in {len(partly)} answers")


def _is_silence(reason: str) -> bool:
    """Whether a right answer is not given, rather than given in a way that cannot be read."""
    return reason in ("null", "empty", "key not there", "no such id", "nothing but nulls") or (
        reason.startswith("marked")
    )
