"""CoNLL column files: one token a line, fields in columns, a blank line after each sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trellis.corpus.columnfile import (
    check_columns,
    check_writable,
    code_column,
    joined_samples,
    label_strings,
    read_fields,
)
from trellis.corpus.corpus import Corpus, check_lengths
from trellis.corpus.label_values import label_name
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files.text import Source, write_text

__all__ = ["read_conll", "write_conll"]

Fields = Sequence[Sequence[str]]
"""A field for each position of each sample."""


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
    table.refuse_empty(names)
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
    labels: Fields | None = None,
    separator: str = " ",
) -> None:
    """Write a corpus as a column file: its columns, its labels if any, then ``labels`` if given.

    A position that is not annotated is written as ``_``; sets of labels cannot be written, and a
    sample without positions leaves no trace when the file is read. The file appears complete or
    not at all.
    """
    write_text(path, format_conll(corpus, labels=labels, separator=separator))


def format_conll(corpus: Corpus, labels: Fields | None = None, separator: str = " ") -> str:
    """Text that :func:`write_conll` writes."""
    if separator not in (" ", "\t"):
        raise DataError(f"separator must be a space or a tab, got {separator!r}")
    written = {f"column {name!r}": column.strings() for name, column in corpus.columns.items()}
    if corpus.labels is not None:
        written["the label column"] = label_strings(corpus.labels, "a column file")
    for what, strings in written.items():
        check_writable(strings, what, "a column file", f"\t{separator}")
    flat = list(written.values())
    if labels is not None:
        check_lengths(corpus.lengths.tolist(), labels, "corpus", "labels")
        flat.append([label_name(label) for sample in labels for label in sample])
        check_writable(flat[-1], "labels", "a column file", "")
    if not flat:
        raise DataError("this corpus has no columns and no labels to write")
    lines = [separator.join(row) for row in zip(*flat, strict=True)]
    if not all(line.strip(" \t") for line in lines):
        raise DataError("a line of nothing but spaces would end a sample; write it as JSONL")
    return joined_samples(lines, corpus.offsets)
