r"""What several systems say about the same samples.

p systems answer the same n samples: ``answers[j][i]`` is what system j says about sample i, and
``gold[i]`` what is right, where that is known. Answers remember the file they were read from, so
that combined ones can be written in its shape.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from trellis.domains import is_number, is_whole, one_of, samples
from trellis.errors import DataError
from trellis.experts.answer_formats import Combined
from trellis.experts.answer_values import KINDS, NO_VALUE
from trellis.experts.record_answers import RecordFile
from trellis.experts.told_formats import AnswerFormat
from trellis.files.text import write_text

__all__ = ["MARK", "Answers", "Shape"]

MARK = "_"
"""What stands for a missing answer."""


@dataclass(frozen=True)
class Shape:
    """The file in whose shape answers are written."""

    file: AnswerFormat
    key: int | str | None  # the column that is replaced; None: there is a new one
    rows: list[int | None]
    id: str | None
    mark: str
    spread: bool
    originals: dict[tuple[str, str], Any]
    joined: bool  # words are one text, not a list


@dataclass(frozen=True)
class Answers:
    r"""What several systems say about the same samples.

    Attributes
    ----------
    names : tuple of str
        Of the systems.
    answers : list of lists of (list or None)
        ``answers[j][i]`` is the answer of system j to sample i; None if there is none.
    ids : list of str
        Of the samples; their numbers, from 1, if the files have none.
    kind : "labels", "words", "single", "fields" or "spans"
        What a list holds: a label for each position, equally many from all systems (None: says
        nothing there); words, any number of them; one label; one label for each of ``fields``;
        spans (start, end, type), end exclusive.
    gold : list of (list or None), or None
        The right answers, for some samples or all.
    fields : tuple of str
        The keys of ``kind="fields"``. The label "" stands for: no value.
    texts : list of (str or None), or None
        The texts of the samples, if the files have them.
    notes : list of str
        What was converted, and what was taken as missing.

    Examples
    --------
    >>> import io
    >>> from trellis.experts import read_answers
    >>> table = io.StringIO("id,gpt,claude,gold\n1,yes,yes,yes\n2,no,,no\n")
    >>> answers = read_answers(table, format="csv", gold="gold")
    >>> answers.names, answers.kind, answers.answers
    (('gpt', 'claude'), 'single', [[['yes'], ['no']], [['yes'], None]])
    >>> answers.notes
    ['claude: 1 of 2 answers missing (empty: 1); first at input, line 3']
    """

    names: tuple[str, ...]
    answers: list[list[list[Any] | None]]
    ids: list[str]
    kind: str
    gold: list[list[Any] | None] | None = None
    fields: tuple[str, ...] = ()
    texts: list[str | None] | None = None
    notes: list[str] = field(default_factory=list)
    _shape: Shape | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of(*KINDS).check("kind", self.kind)
        columns = [*self.answers, *([] if self.gold is None else [self.gold])]
        if len(self.answers) != len(self.names) or any(len(c) != len(self) for c in columns):
            raise DataError("answers must hold a list for each name, with an answer for each id")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def format(self) -> str:
        """The format in which :meth:`write` writes."""
        read = (self._shape or _bare(0)).file.format
        return "trn" if read == "ctm" else read

    @property
    def answered(self) -> list[int]:
        """The samples that can be combined: at least one system says something of them."""
        spans = self.kind == "spans"  # no span is an answer, no label is none
        return [
            i
            for i in range(len(self))
            if any(column[i] or (spans and column[i] == []) for column in self.answers)
        ]

    @property
    def labelled(self) -> list[int]:
        """Those of them whose right answer is known."""
        gold = self.gold
        if gold is None:
            return []
        return [i for i in self.answered if (right := gold[i]) is not None and None not in right]

    def sequences(self, rows: Iterable[int] | None = None) -> list[list[list[Any] | None]]:
        """The answers to some samples (all, by default), as combiners take them.

        Examples
        --------
        >>> answers = Answers(("a", "b"), [[["x"], ["y"]], [["x"], None]], ["1", "2"], "single")
        >>> answers.sequences([1])
        [[['y']], [None]]
        """
        chosen = list(range(len(self)) if rows is None else rows)
        return [[column[i] for i in chosen] for column in self.answers]

    def values(self, combined: Sequence[list[Any] | None]) -> list[Any]:
        """Combined answers as users write them: a label, a list of labels, an object, spans.

        Examples
        --------
        >>> answers = Answers(("a",), [[["3", ""]]], ["1"], "fields", fields=("age", "name"))
        >>> answers.values([["4", ""]])
        [{'age': '4', 'name': None}]
        """
        return [None if answer is None else self._value(answer) for answer in combined]

    def _value(self, answer: Sequence[Any]) -> Any:
        if self.kind == "spans":
            return [{"start": s, "end": e, "type": kind} for s, e, kind in answer]
        if self.kind == "single":
            return self._written("", answer[0])
        if self.kind == "fields":
            pairs = zip(self.fields, answer, strict=True)
            return {key: self._written(key, label) for key, label in pairs}
        if self._shape is not None and self._shape.joined:
            return " ".join(y or self._shape.mark for y in answer)
        return [self._written("", label) for label in answer]

    def _written(self, key: str, label: str | None) -> Any:
        if label is None and self.kind == "fields":  # null would be: no value
            return MARK if self._shape is None else self._shape.mark
        if label is None or label == NO_VALUE:
            return None
        return label if self._shape is None else self._shape.originals.get((key, label), label)

    def write(
        self,
        path: str | os.PathLike[Any],
        combined: Sequence[list[Any] | None],
        confidence: Sequence[Any] | None = None,
        *,
        rows: Iterable[int] | None = None,
    ) -> None:
        r"""Write combined answers in the shape of the first file.

        Files of one system are written with the combined answers in place of its own: the label
        column, or the key. Tables of several systems get a column ``combined``. Files of words
        become lines, with their utterances if they have any. What else is in the file stays.

        Parameters
        ----------
        path : path
        combined : sequence of (list or None)
            Answers in the form of :attr:`answers`; None is written as missing.
        confidence : sequence or None
            How sure each is: a number for each label, word, field or span, or one number for
            ``kind="single"``. It becomes a column or a key ``confidence``, in column files the last
            column, in lines numbers after a tab; spans get a key of their own.
        rows : iterable of int or None
            The samples that ``combined`` is about (all, by default); others are written as missing.

        Raises
        ------
        DataError
            If these are not answers to the samples, or cannot be written.

        Examples
        --------
        >>> import io, pathlib
        >>> from trellis.experts import read_answers
        >>> files = [io.BytesIO(b"The D\ncat N\n\n"), io.BytesIO(b"The D\ncat V\n\n")]
        >>> answers = read_answers(files, format="conll")
        >>> answers.write("merged.txt", [["D", "N"]], confidence=[[1.0, 0.5]])
        >>> pathlib.Path("merged.txt").read_text()
        'The D 1.0000\ncat N 0.5000\n\n'
        >>> pathlib.Path("merged.txt").unlink()
        """
        chosen = list(range(len(self)) if rows is None else rows)
        labels: list[list[Any] | None] = [None] * len(self)
        sure: list[Any] = [None] * len(self)
        for what, values in (("combined", combined), ("confidence", confidence)):
            if values is not None and len(values) != len(chosen):
                raise DataError(f"{what} has {len(values)} entries for {len(chosen)} samples")
        for k, i in enumerate(chosen):
            labels[i] = self._checked(combined[k], i)
            if confidence is not None and labels[i] is not None:
                sure[i] = self._checked_confidence(confidence[k], labels[i] or [], i)
        values = self.values(labels)
        if self.kind == "spans" and confidence is not None:
            for spans, numbers in zip(values, sure, strict=True):
                for span, number in zip(spans or (), numbers or (), strict=True):
                    span["confidence"] = number
        elif self.kind == "fields":
            sure = [c if c is None else dict(zip(self.fields, c, strict=True)) for c in sure]
        shape = self._shape or _bare(len(self))
        what_is_written = Combined(
            self.kind,
            labels,
            values,
            None if confidence is None or self.kind == "spans" else sure,
            shape.rows,
            self.ids,
            shape.key,
            shape.id,
            shape.mark,
            shape.spread,
        )
        write_text(path, shape.file.text(what_is_written))

    def _checked(self, answer: Any, sample: int) -> list[Any] | None:
        """A combined answer of the right kind and length."""
        if answer is None:
            return None
        if not samples.accepts(answer):
            self._refuse(sample, f"expected a list, got {answer!r:.60}")
        if self.kind == "spans":
            if not all(
                samples.accepts(s) and len(s) == 3 and is_whole(s[0]) and is_whole(s[1])
                for s in answer
            ):
                self._refuse(sample, "expected spans (start, end, type)")
            return [(int(start), int(end), str(kind)) for start, end, kind in answer]
        length = {"single": 1, "fields": len(self.fields)}.get(self.kind)
        if self.kind == "labels":
            known = (column[sample] for column in self.answers)
            length = next((len(x) for x in known if x is not None), None)
        if length is not None and len(answer) != length:
            self._refuse(sample, f"{len(answer)} labels, expected {length}")
        if not all(label is None or isinstance(label, str) for label in answer):
            self._refuse(sample, "labels must be strings, or None")
        return list(answer)

    def _refuse(self, sample: int, message: str) -> NoReturn:
        raise DataError(f"the combined answer to sample {self.ids[sample]!r}: {message}")

    def _checked_confidence(self, numbers: Any, answer: list[Any], sample: int) -> Any:
        single = self.kind == "single"
        listed = [numbers] if single and is_number(numbers) else numbers
        if (
            not samples.accepts(listed)
            or len(listed) != len(answer)
            or not all(map(is_number, listed))
        ):
            self._refuse(sample, f"its confidence must be {len(answer)} number(s)")
        rounded = [round(float(number), 4) for number in listed]
        return rounded[0] if single else rounded


def _bare(n: int) -> Shape:
    """The shape of answers that come from no file: JSON lines."""
    file = RecordFile("answers", "jsonl", [], [], [])
    return Shape(file, "answer", [None] * n, "id", MARK, False, {}, joined=False)
