"""CoNLL-U, the format of Universal Dependencies: ten tab-separated columns and ``#`` comments.

Words become positions. Multiword ranges (``3-4``) and empty nodes (``8.1``) are left out; the heads
become the corpus's edges (dependent, head), one for each word but the root.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.columnfile import FieldTable, Source, code_column, read_fields
from trellis.corpus.corpus import Corpus
from trellis.corpus.labels import Labels
from trellis.errors import DataError
from trellis.files import atomic_write

__all__ = ["read_conllu", "write_conllu"]

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
        label's) and with edges (dependent, head) where heads are given.

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
    ids = code_column(table, fields[:, 0])
    word = np.array([value.isdigit() for value in ids.values], bool)[ids.codes]
    for code, value in enumerate(ids.values):
        if not value.replace("-", "", 1).replace(".", "", 1).isdigit():
            line = int(np.flatnonzero(ids.codes == code)[0])
            raise table.fail(line, f"ID {value!r} is neither a number, a range nor an empty node")
    number = np.array([int(v) if v.isdigit() else 0 for v in ids.values], np.int64)[ids.codes]
    kept_before = np.concatenate([[0], np.cumsum(word)])
    offsets = kept_before[table.sample_ptr].astype(np.int64)
    kept = np.flatnonzero(word)
    within = np.arange(len(kept)) - np.repeat(offsets[:-1], np.diff(offsets))
    wrong = np.flatnonzero(number[kept] != within + 1)
    if wrong.size:
        line = int(kept[wrong[0]])
        raise table.fail(line, f"ID {number[line]}, expected {within[wrong[0]] + 1}")
    columns = {
        name: code_column(table, fields[kept, j]) for j, name in enumerate(_COLUMNS) if j > 0
    }
    edges = _edges(table, columns["head"].strings(), kept, offsets)
    labels = None
    if label is not None:
        column = columns.pop(label)
        labels = Labels.from_codes(column.codes, column.values)
    return Corpus(offsets, columns, labels=labels, edges=edges, label_name=label or "label")


def _edges(
    table: FieldTable, heads: list[str], kept: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    if all(head == "_" for head in heads):
        return None
    lengths = np.diff(offsets)
    base = np.repeat(offsets[:-1], lengths)
    size = np.repeat(lengths, lengths)
    pairs = []
    for t, head in enumerate(heads):
        if head == "_":
            continue
        if not head.isdigit() or int(head) > size[t]:
            raise table.fail(int(kept[t]), f"HEAD {head!r} is not a word of the sentence or 0")
        if int(head) > 0:
            pairs.append((t, int(base[t]) + int(head) - 1))
    return np.array(pairs, np.int64).reshape(-1, 2)


def write_conllu(path: str | os.PathLike[Any], corpus: Corpus) -> None:
    """Write a corpus with CoNLL-U column names; columns it lacks are written as ``_``.

    The labels go to the column named by ``corpus.label_name``. The file appears complete or not
    at all.
    """
    known = {name: column.strings() for name, column in corpus.columns.items()}
    if corpus.labels is not None:
        written = []
        for label in corpus.labels.tolist():
            if label is not None and not isinstance(label, str):
                raise DataError("a set of allowed labels cannot be written to CoNLL-U; use JSONL")
            written.append("_" if label is None else label)
        known[corpus.label_name] = written
    for name in known:
        if name not in _COLUMNS[1:]:
            raise DataError(f"column {name!r} is not one of {', '.join(_COLUMNS[1:])}")
    blank = ["_"] * corpus.n_positions
    rows = list(zip(*(known.get(name, blank) for name in _COLUMNS[1:]), strict=True))
    bounds = corpus.offsets.tolist()
    with atomic_write(path, binary=True) as file:
        for a, b in itertools.pairwise(bounds):
            lines = ["\t".join((str(t - a + 1), *rows[t])) + "\n" for t in range(a, b)]
            file.write(("".join(lines) + "\n").encode("utf-8"))
