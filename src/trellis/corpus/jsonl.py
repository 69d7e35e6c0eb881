"""JSON lines: one sample a line, an object of equally long lists.

    {"word": ["The", "cat"], "pos": ["DT", "NN"], "labels": ["B-NP", "I-NP"]}
    {"features": [{"w": "The"}, {"w": "cat", "len": 3}], "labels": ["D", null]}

Lists of strings are columns, ``features`` is a list of feature dicts or attribute lists, and
``labels`` may hold null (not annotated) or a list of allowed labels at any position.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from trellis.corpus.columnfile import Source
from trellis.corpus.corpus import Corpus
from trellis.corpus.door import as_corpus
from trellis.corpus.labels import Label, Labels
from trellis.errors import DataError
from trellis.files import atomic_write, display_name, open_text_bytes

__all__ = ["read_jsonl", "write_jsonl"]


def read_jsonl(source: Source, label: str = "labels") -> Corpus:
    """Read samples from JSON lines.

    Parameters
    ----------
    source : path, "-" or open file
    label : str
        The key that holds the labels; it may be missing from all lines.

    Examples
    --------
    >>> import io
    >>> from trellis import read_jsonl
    >>> line = '{"word": ["the", "cat"], "labels": ["D", ["N", "V"]]}'
    >>> corpus = read_jsonl(io.StringIO(line))
    >>> corpus[0].columns, sorted(corpus[0].labels[1])
    ({'word': ['the', 'cat']}, ['N', 'V'])
    """
    name = display_name(source) if isinstance(source, str | os.PathLike) else "input"
    columns: dict[str, list[Any]] = {}
    labels: list[list[Label]] = []
    keys: list[str] | None = None
    try:
        text = open_text_bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 text ({error.reason})") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON ({error})") from None
        if not isinstance(record, dict) or not all(isinstance(v, list) for v in record.values()):
            raise DataError(f"{place}: expected an object of lists")
        if keys is None:
            keys = list(record)
            columns = {key: [] for key in keys if key != label}
            if not columns:
                raise DataError(f"{place}: expected columns or features beside {label!r}")
        if set(record) != set(keys):
            raise DataError(
                f"{place}: keys {', '.join(record) or 'none'}; the first line has {', '.join(keys)}"
            )
        lengths = {key: len(value) for key, value in record.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{place}: lists of different lengths {lengths}")
        for key in columns:
            columns[key].append(record[key])
        if label in record:
            labels.append([_label(entry, place) for entry in record[label]])
    if keys is None:
        return Corpus(np.zeros(1, np.int64))
    given = labels if label in keys else None
    if "features" in columns:
        if len(columns) > 1:
            extra = ", ".join(key for key in columns if key != "features")
            raise DataError(f"{name}: 'features' and columns ({extra}) cannot stand together")
        return as_corpus(columns["features"], given)
    corpus = Corpus.from_columns(columns)
    if given is None:
        return corpus
    return Corpus(corpus.offsets, corpus.columns, labels=Labels.from_lists(given), label_name=label)


def _label(entry: Any, place: str) -> Label:
    if entry is None or isinstance(entry, str):
        return entry
    if isinstance(entry, list) and entry and all(isinstance(e, str) for e in entry):
        return frozenset(entry)
    raise DataError(f"{place}: label {entry!r}; expected a string, null or a list of strings")


def write_jsonl(
    path: str | os.PathLike[Any],
    corpus: Corpus,
    *,
    predicted: Sequence[Sequence[str]] | None = None,
) -> None:
    """Write a corpus (and predictions, under ``predicted``) as JSON lines, whole or not at all."""
    with atomic_write(path, binary=True) as file:
        for line in jsonl_lines(corpus, predicted):
            file.write((line + "\n").encode("utf-8"))


def jsonl_lines(corpus: Corpus, predicted: Sequence[Sequence[str]] | None = None) -> list[str]:
    """Lines that :func:`write_jsonl` writes."""
    lines = []
    labels = None if corpus.labels is None else corpus.label_lists()
    for i, sample in enumerate(corpus):
        record: dict[str, Any] = dict(sample.columns)
        if corpus.features is not None:
            record["features"] = _feature_dicts(corpus, i)
        if labels is not None:
            record[corpus.label_name if corpus.label_name != "label" else "labels"] = [
                sorted(entry) if isinstance(entry, frozenset) else entry for entry in labels[i]
            ]
        if predicted is not None:
            record["predicted"] = list(predicted[i])
        lines.append(json.dumps(record, ensure_ascii=False))
    return lines


def _feature_dicts(corpus: Corpus, sample: int) -> list[dict[str, float | bool]]:
    features = corpus.features
    assert features is not None
    dicts = []
    for t in range(corpus.offsets[sample], corpus.offsets[sample + 1]):
        entry: dict[str, float | bool] = {}
        for p in range(features.indptr[t], features.indptr[t + 1]):
            value = True if features.values is None else float(features.values[p])
            entry[features.names[features.indices[p]]] = True if value == 1 else value
        dicts.append(entry)
    return dicts
