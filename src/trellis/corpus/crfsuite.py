r"""CRFsuite's text format: ``label TAB attribute TAB attribute:value …``, blank lines between.

In an attribute, ``\:`` and ``\\`` stand for a colon and a backslash; a plain colon starts its
value.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from trellis.corpus.columnfile import check_writable, code_column, joined_samples, read_fields
from trellis.corpus.corpus import FLOAT32_LIMIT, Corpus, Features, bounds
from trellis.corpus.label_values import label_name
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files.text import Source, write_text

__all__ = ["read_crfsuite", "write_crfsuite"]

_FILE = "CRFsuite's format"


def read_crfsuite(source: Source) -> Corpus:
    r"""Read a file in CRFsuite's text format: labels and ready-made attributes.

    Examples
    --------
    >>> import io
    >>> from trellis import read_crfsuite
    >>> corpus = read_crfsuite(io.BytesIO(b"N\tw=cat\tlen:3\nV\tw=sat\n\n"))
    >>> corpus.label_lists(), list(corpus.features.names), corpus.features.values
    ([['N', 'V']], ['w=cat', 'len', 'w=sat'], array([1., 3., 1.], dtype=float32))
    """
    table = read_fields(source, tabs_only=True)
    heads = table.line_ptr[:-1]
    empty = np.flatnonzero(table.first[heads] == table.last[heads])
    if empty.size:
        raise table.fail(int(empty[0]), "the label (first field) is empty")
    names = code_column(table, heads)
    is_attribute = table.first < table.last  # stray tabs make empty fields
    is_attribute[heads] = False
    fields = np.flatnonzero(is_attribute)
    raw = code_column(table, fields)
    vocabulary: dict[str, int] = {}
    ids = np.empty(len(raw.values), np.int32)
    values = np.empty(len(raw.values), np.float32)
    for code, text in enumerate(raw.values):
        try:
            name, values[code] = parse_attribute(text)
        except ValueError as error:
            field = fields[np.flatnonzero(raw.codes == code)[0]]
            line = int(np.searchsorted(table.line_ptr, field, side="right")) - 1
            raise table.fail(line, f"attribute {text!r}: {error}") from None
        ids[code] = vocabulary.setdefault(name, len(vocabulary))
    flat = values[raw.codes]
    features = Features(
        bounds(is_attribute)[table.line_ptr],
        ids[raw.codes],
        None if (flat == 1).all() else flat,
        list(vocabulary),
    )
    labels = Labels.from_codes(names.codes, names.values)
    return Corpus(table.sample_ptr, features=features, labels=labels)


def parse_attribute(text: str) -> tuple[str, float]:
    r"""Name and value of an attribute; raises ValueError if the value is no number.

    Examples
    --------
    >>> parse_attribute("len:3"), parse_attribute(r"a\:b")
    (('len', 3.0), ('a:b', 1.0))
    """
    name: list[str] = []
    characters = iter(enumerate(text))
    for i, c in characters:
        if c == "\\" and i + 1 < len(text) and text[i + 1] in ":\\":
            name.append(next(characters)[1])
        elif c == ":":
            number = text[i + 1 :]
            try:
                value = float(number)
            except ValueError:
                raise ValueError(
                    f"{number!r} after the colon is no number (write a literal colon as \\:)"
                ) from None
            if not abs(value) < FLOAT32_LIMIT:
                raise ValueError("the value must be a finite float32")
            return _named("".join(name)), value
        else:
            name.append(c)
    return _named("".join(name)), 1.0


def _named(name: str) -> str:
    if not name:
        raise ValueError("the name is empty")
    return name


def format_attribute(name: str, value: float) -> str:
    r"""What :func:`parse_attribute` reads.

    Examples
    --------
    >>> format_attribute("len", 3.0), format_attribute("a:b", 1.0)
    ('len:3', 'a\\:b')
    """
    text = name.replace("\\", "\\\\").replace(":", "\\:")
    return text if value == 1 else f"{text}:{value:.9g}"


def write_crfsuite(path: str | os.PathLike[Any], corpus: Corpus) -> None:
    """Write features and labels in CRFsuite's text format, whole or not at all."""
    if corpus.features is None or corpus.labels is None:
        raise DataError("CRFsuite's format needs features and labels; this corpus lacks one")
    features = corpus.features
    labels: list[str] = []
    for label in corpus.labels.tolist():
        if label is None or isinstance(label, frozenset):
            raise DataError("CRFsuite's format needs one label at every position")
        labels.append(label_name(label))
    check_writable(labels, "the label column", _FILE, "\t")
    used = np.unique(features.indices)
    check_writable((features.names[i] for i in used), "the list of attributes", _FILE, "\t")
    lines = []
    for t, label in enumerate(labels):
        fields = [label]
        for p in range(features.indptr[t], features.indptr[t + 1]):
            value = 1.0 if features.values is None else float(features.values[p])
            fields.append(format_attribute(features.names[features.indices[p]], value))
        lines.append("\t".join(fields))
    if not all(line.strip(" \t") for line in lines):
        raise DataError("a label of nothing but spaces cannot be written without attributes")
    write_text(path, joined_samples(lines, corpus.offsets))
