"""CoNLL column files: one token a line, fields in columns, a blank line after each sentence."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from trellis.corpus.columnfile import Source, check_columns, code_column, read_fields
from trellis.corpus.corpus import Corpus
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files import atomic_write

__all__ = ["read_conll", "write_conll"]


def read_conll(
    source: Source,
    columns: Sequence[str],
    label: str | None = None,
    *,
    separator: str | None = None,
    skip: str = "",
) -> Corpus:
    r"""Read a column file.

    Parameters
    ----------
    source : path, "-" or open file
        The file; gzip, bzip2 and xz are recognised by content.
    columns : list of str
        Names of all columns, in order. Every line must have exactly these fields.
    label : str, optional
        The column that holds the label; it becomes the corpus's labels, not a column.
    separator : None or "\t"
        None: fields are separated by runs of spaces or tabs. ``"\t"``: by single tabs, so that
        fields may contain spaces.
    skip : str
        Lines that start with this are ignored (comments, document marks).

    Returns
    -------
    Corpus

    Raises
    ------
    DataError
        Naming the file and the line, if a line has another number of fields, a field is empty or
        the file is not UTF-8 text.

    Examples
    --------
    >>> import io
    >>> from trellis import read_conll
    >>> file = io.BytesIO(b"The DT B-NP\ncat NN I-NP\n\nSat VB B-VP\n")
    >>> corpus = read_conll(file, columns=["word", "pos", "chunk"], label="chunk")
    >>> len(corpus), corpus[0].columns["pos"], corpus.label_lists()
    (2, ['DT', 'NN'], [['B-NP', 'I-NP'], ['B-VP']])
    """
    names = check_columns(columns, label)
    if separator not in (None, "\t"):
        raise DataError(f"separator must be None (spaces or tabs) or a tab, got {separator!r}")
    table = read_fields(source, tabs_only=separator == "\t", skip=skip)
    fields = table.rectangle(len(names), " ".join(names))
    empty = np.flatnonzero(table.first == table.last)
    if empty.size:
        line, which = divmod(int(empty[0]), len(names))
        raise table.fail(line, f"the field {names[which]!r} is empty")
    coded = {name: code_column(table, fields[:, j]) for j, name in enumerate(names)}
    labels = None
    if label is not None:
        column = coded.pop(label)
        labels = Labels.from_codes(column.codes, column.values)
    return Corpus(table.sample_ptr, coded, labels=labels, label_name=label or "label")


def write_conll(
    path: str | os.PathLike[Any],
    corpus: Corpus,
    *,
    labels: Sequence[Sequence[str]] | None = None,
    separator: str = " ",
) -> None:
    """Write a corpus as a column file: its columns, its labels if any, then ``labels`` if given.

    A position that is not annotated is written as ``_``; sets of labels cannot be written. The
    file appears complete or not at all.
    """
    text = format_conll(corpus, labels=labels, separator=separator)
    with atomic_write(path, binary=True) as file:
        file.write(text.encode("utf-8"))


def format_conll(
    corpus: Corpus,
    *,
    labels: Sequence[Sequence[str]] | None = None,
    separator: str = " ",
) -> str:
    """Text that :func:`write_conll` writes."""
    if separator not in (" ", "\t"):
        raise DataError(f"separator must be a space or a tab, got {separator!r}")
    flat = [column.strings() for column in corpus.columns.values()]
    if corpus.labels is not None:
        flat.append([_written(label) for label in corpus.labels.tolist()])
    if labels is not None:
        flat.append([label for sample in labels for label in sample])
    if not flat:
        raise DataError("this corpus has no columns and no labels to write")
    for name, column in corpus.columns.items():
        for value in column.values:
            if not value or set(value) & {"\n", "\r", "\t", *separator}:
                raise DataError(f"column {name!r} holds {value!r}, which a column file cannot")
    lines = [separator.join(row) for row in zip(*flat, strict=True)]
    bounds = corpus.offsets.tolist()
    return "".join(
        "".join(f"{line}\n" for line in lines[a:b]) + "\n" for a, b in itertools.pairwise(bounds)
    )


def _written(label: object) -> str:
    if label is None:
        return "_"
    if not isinstance(label, str):
        raise DataError("a set of allowed labels cannot be written to a column file; use JSONL")
    return label
