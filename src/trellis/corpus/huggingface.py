"""Datasets of Hugging Face as samples: a row a sample, columns of lists.

    tokens, words, …    lists of strings: columns of symbols, under their names
    pos_tags, …         lists of ``ClassLabel``: columns of their names
    ner_tags            the labels, if ``y`` names it, or if no other column is of ``ClassLabel``

Labels are the names of the classes («B-PER»), not their numbers; the number −1 means «not
annotated». Columns of other kinds are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trellis.arrays import as_list
from trellis.corpus.corpus import Corpus, check_lengths, lengths_of
from trellis.corpus.form import LISTS, Form, Given
from trellis.corpus.labels import Labels
from trellis.errors import DataError

__all__ = ["dataset", "is_dataset"]


def is_dataset(value: Any) -> bool:
    """Whether a value is a dataset, or several by name; nothing is imported."""
    return type(value).__module__.split(".")[0] == "datasets" and hasattr(value, "column_names")


class Rows(Form):
    """The rows of a dataset: labels may be a column."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of each row, from a column or from lists."""
        if isinstance(y, str):
            return _labels(self.rows, y)
        return LISTS.label_lists(y, what)


def dataset(X: Any, y: Any, columns: Sequence[str] | None) -> Given:
    """Samples of a dataset, with labels if ``y`` or the dataset says where they are."""
    if isinstance(X, dict):
        raise DataError(f"this is several datasets ({', '.join(X)}); pass one, e.g. X['train']")
    if X.features is None or not hasattr(X, "__len__"):
        raise DataError("a dataset that streams cannot be gone through twice; load it whole")
    text = [name for name, kind in X.features.items() if _inner(kind) == "text"]
    coded = [name for name, kind in X.features.items() if _inner(kind) == "class"]
    label = y if isinstance(y, str) else None
    if y is None:
        candidates = [name for name in coded if name not in (columns or ())]
        label = candidates[0] if len(candidates) == 1 else None
    for name in columns or ():
        if name not in X.column_names:
            known = ", ".join(X.column_names)
            raise DataError(f"the dataset has no column {name!r}; it has {known}")
        if name not in (*text, *coded):
            raise DataError(f"column {name!r} of the dataset is no list of strings or of classes")
    names = [n for n in X.column_names if n in (*text, *coded)] if columns is None else columns
    names = [name for name in names if columns is not None or name != label]
    if not names:
        raise DataError(
            "the dataset has no column of lists of strings to predict from; it has "
            f"{', '.join(X.column_names)}"
        )
    listed = {n: _strings(X, n) if n in text else _labels(X, n, missing="_") for n in names}
    corpus = Corpus.from_columns(listed)
    if label is not None:
        lists = _labels(X, label)
        check_lengths(lengths_of(listed[names[0]], names[0]), lists, names[0], label)
        labels = Labels.from_lists(lists)
        corpus = Corpus(corpus.offsets, corpus.columns, labels=labels, label_name=label)
    return Given(corpus, Rows(X), tuple(names))


def _inner(kind: Any) -> str:
    """What lists of a column hold: "text", "class" or something else."""
    inner = getattr(kind, "feature", kind[0] if isinstance(kind, list) and kind else None)
    if hasattr(inner, "int2str"):
        return "class"
    return "text" if getattr(inner, "dtype", None) in ("string", "large_string") else "other"


def _strings(rows: Any, name: str) -> list[list[str]]:
    return [list(sample) for sample in rows[name]]


def _labels(rows: Any, name: str, missing: Any = None) -> list[list[Any]]:
    """A column of lists of labels; classes by name."""
    if name not in rows.column_names:
        known = ", ".join(rows.column_names)
        raise DataError(f"the dataset has no column {name!r}; it has {known}")
    kind = rows.features[name]
    inner: Any = getattr(kind, "feature", kind[0] if isinstance(kind, list) and kind else None)
    listed = [as_list(sample, f"column {name!r} of row {i}") for i, sample in enumerate(rows[name])]
    if not hasattr(inner, "int2str"):
        return listed
    names = [*inner.names, missing]  # -1 is the last
    return [[names[-1 if code is None else code] for code in sample] for sample in listed]
