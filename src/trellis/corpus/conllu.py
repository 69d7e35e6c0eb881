"""CoNLL-U, the format of Universal Dependencies: ten tab-separated columns and ``#`` comments.

Words become positions. Multiword ranges (``3-4``) and empty nodes (``8.1``) are left out; the heads
become the corpus's edges (dependent, head), one for each word but the root.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.columnfile import (
    FieldTable,
    check_writable,
    code_column,
    joined_samples,
    label_strings,
    read_fields,
)
from trellis.corpus.corpus import Column, Corpus, bounds
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files.text import Source, write_text

__all__ = ["read_conllu", "write_conllu"]

_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE_OR_EMPTY = re.compile(r"[0-9]+[-.][0-9]+")
_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def read_conllu(source: Source, label: str | None = "upos") -> Corpus:
    r"""Read a CoNLL-U file.

    Parameters
    ----------
    source : path, "-" or open file
    label : str or None
        The column that becomes the labels: ``upos`` (default), ``xpos``, ``deprel``, …

    Returns
    -------
    Corpus
        With the columns form, lemma, upos, xpos, feats, head, deprel, deps, misc (without the
        label's) and with edges (dependent, head) where heads are given; their types are the
        relations, unless those are the labels.

    Examples
    --------
    >>> import io
    >>> from trellis import read_conllu
    >>> row = "{}\t{}\t_\t{}\t_\t_\t{}\t_\t_\t_\n"
    >>> text = row.format(1, "Cats", "NOUN", 2) + row.format(2, "sleep", "VERB", 0) + "\n"
    >>> corpus = read_conllu(io.StringIO(text))
    >>> corpus[0].columns["form"], corpus[0].labels, corpus.edges.tolist()
    (['Cats', 'sleep'], ['NOUN', 'VERB'], [[0, 1]])
    """
    if label is not None and label not in _COLUMNS[1:]:
        raise DataError(f"label column {label!r} is not one of {', '.join(_COLUMNS[1:])}")
    table = read_fields(source, tabs_only=True, skip="#")
    fields = table.rectangle(len(_COLUMNS), "the CoNLL-U columns, separated by tabs")
    table.refuse_empty(_COLUMNS)
    ids = code_column(table, fields[:, 0])
    numbers = np.full(len(ids.values), -1, np.int64)  # -1: a range or an empty node
    for code, value in enumerate(ids.values):
        if _NUMBER.fullmatch(value):
            numbers[code] = int(value)
        elif not _RANGE_OR_EMPTY.fullmatch(value):
            line = int(np.flatnonzero(ids.codes == code)[0])
            raise table.fail(line, f"ID {value!r} is neither a number, a range nor an empty node")
    number = numbers[ids.codes]
    word = number >= 0
    offsets = bounds(word)[table.sample_ptr]
    kept = np.flatnonzero(word)
    within = np.arange(len(kept)) - np.repeat(offsets[:-1], np.diff(offsets))
    wrong = np.flatnonzero(number[kept] != within + 1)
    if wrong.size:
        line = int(kept[wrong[0]])
        raise table.fail(line, f"ID {number[line]}, expected {within[wrong[0]] + 1}")
    columns = {
        name: code_column(table, fields[kept, j]) for j, name in enumerate(_COLUMNS) if j > 0
    }
    edges = _edges(table, columns["head"], kept, offsets)
    labels = None
    if label is not None:
        column = columns.pop(label)
        labels = Labels.from_codes(column.codes, column.values)
    types = None
    if edges is not None and "deprel" in columns:
        types = columns["deprel"].take(edges[:, 0])
    return Corpus(
        offsets, columns, labels=labels, edges=edges, label_name=label or "label",
        edge_types=types,
    )  # fmt: skip


def _edges(
    table: FieldTable, heads: Column, kept: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    if all(head == "_" for head in heads.values):
        return None
    numbers = [
        -1 if head == "_" else int(head) if _NUMBER.fullmatch(head) else -2 for head in heads.values
    ]  # -1: none is given; -2: no number
    number = np.array(numbers, np.int64)[heads.codes]
    lengths = np.diff(offsets)
    base, word = np.repeat(offsets[:-1], lengths), np.arange(len(kept))
    head = base + number - 1
    wrong = (
        (number == -2) | (number > np.repeat(lengths, lengths)) | ((number > 0) & (head == word))
    )
    if wrong.any():
        t = int(np.argmax(wrong))
        raise table.fail(
            int(kept[t]),
            f"HEAD {heads.values[heads.codes[t]]!r} is neither another word of the sentence nor 0",
        )
    return np.stack([word, head], axis=1)[number > 0]


def write_conllu(path: str | os.PathLike[Any], corpus: Corpus) -> None:
    """Write a corpus with CoNLL-U column names; columns it lacks are written as ``_``.

    The labels go to the column named by ``corpus.label_name``. The file appears complete or not
    at all.
    """
    known = {name: column.strings() for name, column in corpus.columns.items()}
    if corpus.labels is not None:
        known[corpus.label_name] = label_strings(corpus.labels, "CoNLL-U")
    for name, strings in known.items():
        if name not in _COLUMNS[1:]:
            raise DataError(f"column {name!r} is not one of {', '.join(_COLUMNS[1:])}")
        check_writable(strings, f"column {name!r}", "CoNLL-U", "\t")
    blank = ["_"] * corpus.n_positions
    ids = [str(i) for n in corpus.lengths.tolist() for i in range(1, n + 1)]
    rows = zip(ids, *(known.get(name, blank) for name in _COLUMNS[1:]), strict=True)
    write_text(path, joined_samples(["\t".join(row) for row in rows], corpus.offsets))
