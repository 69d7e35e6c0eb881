"""One answer, whatever it looks like: labels, words, a label, the fields of an object, spans.

    kind      written as                                        held as
    labels    ["B", "I", "O"], one for each position            the list
    words     ["the", "cat"], "the cat"; of any length          the list
    single    "yes", 3, true                                    a list of one label
    fields    {"name": "Ann", "age": 3}                         one label a key, keys sorted
    spans     [[0, 3, "PER"]], [{"start": 0, "end": 3, ...}]    (start, end, type), end exclusive

Labels are text: 3, 3.0 and "3" are all "3", true is "true". In ``labels``, None is a position about
which nothing is said. A key that an object leaves out, or holds null or "", has no value there,
which is an answer as good as others: the label "". An answer that cannot be read so is
:class:`Missing`, with the reason.

Language models and data frames write lists and objects as text: as JSON, as JSON between the marks
of a Markdown block, or as Python prints them. Such text is read as what it says if most answers
are lists or objects.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trellis.domains import is_whole

__all__ = [
    "KINDS",
    "NO_VALUE",
    "Missing",
    "Reading",
    "Span",
    "forms",
    "is_plain",
    "label_text",
    "most_common_form",
    "said",
    "structure",
]

KINDS = ("labels", "words", "single", "fields", "spans")
NO_VALUE = ""
"""The label of a field that has no value."""

Span = tuple[int, int, str]

_FENCED = re.compile(r"```[A-Za-z]*\s*\n(.*?)\n\s*```", re.DOTALL)
_TYPE_KEYS = ("type", "label", "tag", "entity", "entity_group")
_EXACT = 2.0**53  # up to here every whole number is a float
_LONGEST = 2**31  # characters of a text
# How forms are called in messages; in order of preference where as many answers have the one as
# the other.
_WORDS = {
    "spans": "a list of spans",
    "list": "a list of labels",
    "object": "an object",
    "text": "text",
    "empty": "an empty list",
    "odd": "a list of something else",
}
_EXPECTED = {
    "labels": "a list of labels",
    "words": "a list of words",
    "single": "one label",
    "fields": "an object",
    "spans": "a list of spans",
}


@dataclass(frozen=True)
class Missing:
    """There is no answer, for a reason that completes «an answer is missing: ...»."""

    reason: str


def is_plain(value: object) -> bool:
    """Whether a JSON value is text, a number or a truth value."""
    return isinstance(value, (str, int, float))


def label_text(value: Any) -> str | None:
    """The label that a plain value is; None for null, NaN, and text that is not Unicode.

    Examples
    --------
    >>> [label_text(x) for x in (3, 3.0, " 3 ", 0.5, True, None)]
    ['3', '3', '3', '0.5', 'true', None]
    """
    if isinstance(value, str):
        return value.strip() if value.isascii() or _is_unicode(value) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value is None or math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates, which JSON can write
        return False
    return True


# ---------------------------------------------------------------------------- forms


def structure(value: Any) -> Any:
    """The list or the object that a text writes out; anything else as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    fenced = _FENCED.search(text) if "```" in text else None
    if fenced:
        text = fenced[1].strip()
    if not text.startswith(("[", "{")):
        return value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes
            found = ast.literal_eval(text)
        # NumPy prints lists without commas, which Python would join to one string.
        same = isinstance(found, (list, dict)) and repr(found) == text
        return _as_json(found) if same else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def _as_json(value: Any) -> Any:
    """A value as JSON would have given it: tuples are lists, keys are text."""
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    return value if value is None or is_plain(value) else str(value)


def form_of(value: Any) -> str:
    """How an answer is written: text, object, list (of labels), spans, empty (list) or odd."""
    if is_plain(value):
        return "text"
    if isinstance(value, dict):
        return "object"
    if not value:
        return "empty"
    if all(item is None or is_plain(item) for item in value):
        return "list"
    return "spans" if any(_span(item) is not None for item in value) else "odd"


def forms(values: Iterable[Any]) -> Counter[str]:
    """How many answers are written how; missing ones do not count."""
    return Counter(form_of(value) for value in values if said(value))


def said(value: Any) -> bool:
    """Whether there is something that might be an answer."""
    return not (
        value is None
        or isinstance(value, Missing)
        or (isinstance(value, str) and not value.strip())
        or (isinstance(value, float) and math.isnan(value))
    )


def most_common_form(counts: Counter[str]) -> str:
    """The form that answers are meant to have: what most are."""
    return max(("spans", "list", "object", "text"), key=lambda form: counts[form])


# ---------------------------------------------------------------------------- reading


class Reading:
    """How values, lists and objects among them, are read as answers of one kind.

    Parameters
    ----------
    kind : one of KINDS
    form : str
        What most values are: with ``"text"``, sequences are split at spaces.
    marks : sequence of str
        What stands where nothing is said.
    fields : sequence of str
        The keys, for ``kind="fields"``.
    """

    def __init__(
        self, kind: str, form: str, marks: Sequence[str] = (), fields: Sequence[str] = ()
    ) -> None:
        self.kind = kind
        self.form = form
        self.marks = frozenset(marks)
        self.fields = tuple(fields)
        self.originals: dict[tuple[str, str], Any] = {}  # (field, label) -> the value as written
        self.bad_spans = 0

    def __call__(self, value: Any, length: int | None = None) -> list[Any] | Missing:
        """The answer that a value is; ``length`` is that of the text, if spans are of a text."""
        if isinstance(value, Missing):
            return value
        if not said(value):
            return Missing("null" if value is None else "empty")
        if isinstance(value, str) and value.strip() in self.marks:
            return Missing(f"marked {value.strip()!r}")
        form = form_of(value)
        if self.kind == "spans":
            return self._spans(value, length) if form in ("spans", "empty") else self._not(form)
        if self.kind == "fields":
            return self._object(value) if form == "object" else self._not(form)
        if self.kind == "single":
            if form == "list" and len(value) == 1:
                return self._labels(value)
            return self._labels([value]) if form == "text" else self._not(form)
        if self.form == "text":
            text = label_text(value) if form == "text" else None
            return self._labels(text.split()) if text else self._not(form)
        return self._labels(value) if form in ("list", "empty") else self._not(form)

    def _not(self, form: str) -> Missing:
        if form == "text" and self.form == "text":
            return Missing("not valid text")
        sentence = self.form == "text" and self.kind in ("labels", "words")
        expected = "text" if sentence else _EXPECTED[self.kind]
        return Missing(f"{_WORDS[form]} instead of {expected}")

    def _labels(self, values: list[Any]) -> list[Any] | Missing:
        labels = [self._label(value) for value in values]
        if labels and all(label is None for label in labels):
            return Missing("marked as missing" if any(map(said, values)) else "nothing but nulls")
        return labels

    def _label(self, value: Any, field: str = "") -> str | None:
        label = label_text(value)
        if not label or label in self.marks:
            return None
        self.originals.setdefault((field, label), value)
        return label

    def _object(self, record: dict[str, Any]) -> list[Any] | Missing:
        labels: list[str | None] = []
        for field in self.fields:
            value = record.get(field)
            if not said(value) or (not is_plain(value) and not value):
                labels.append(NO_VALUE)
            elif is_plain(value):
                labels.append(self._label(value, field))
            else:
                labels.append(self._written_out(value, field))
        if labels and all(label is None for label in labels):
            return Missing("marked as missing")
        return labels

    def _written_out(self, value: Any, field: str) -> str | None:
        """A list or an object inside a field: its JSON is its label."""
        try:
            label = json.dumps(value, ensure_ascii=False, sort_keys=True)
        except (RecursionError, TypeError):
            return None
        if not _is_unicode(label):
            return None
        self.originals.setdefault((field, label), value)
        return label

    def _spans(self, values: list[Any], length: int | None) -> list[Any] | Missing:
        spans = [span for span in map(_span, values) if span is not None]
        spans = [s for s in spans if length is None or s[1] <= length]
        self.bad_spans += len(values) - len(spans)
        if values and not spans:
            return Missing("no valid span")
        return sorted(set(spans))


def _span(value: Any) -> Span | None:
    """A span as JSON writes it; None if it is none."""
    if isinstance(value, dict):
        kinds = [value[key] for key in _TYPE_KEYS if key in value]
        parts: list[Any] = [value.get("start"), value.get("end"), kinds[0] if kinds else None]
    elif isinstance(value, list) and len(value) == 3:
        parts = value
    else:
        return None
    start, end = (int(x) if isinstance(x, float) and x.is_integer() else x for x in parts[:2])
    if not (is_whole(start) and is_whole(end) and 0 <= start < end < _LONGEST):
        return None
    text = label_text(parts[2]) if is_plain(parts[2]) else None
    return (start, end, text) if text else None
