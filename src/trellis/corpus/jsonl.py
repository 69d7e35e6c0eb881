"""JSON lines: one sample a line, an object of equally long lists.

    {"word": ["The", "cat"], "pos": ["DT", "NN"], "labels": ["B-NP", "I-NP"]}
    {"features": [{"w": "The"}, {"w": "cat", "len": 3}], "labels": ["D", null]}

Lists of strings are columns, ``features`` is a list of feature dicts or attribute lists, and
``labels`` may hold strings, numbers, null (not annotated) or a list of allowed labels.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trellis.corpus.corpus import Corpus, Features, check_lengths, split
from trellis.corpus.door import as_corpus
from trellis.corpus.label_values import in_order, label_in_json
from trellis.corpus.labels import Label, Labels
from trellis.errors import DataError
from trellis.files.text import Source, read_text, write_text

__all__ = ["read_jsonl", "write_jsonl"]

_SURROGATE = re.compile("[\ud800-\udfff]")


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
    name, text = read_text(source)
    records: list[dict[str, list[Any]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = _record(line, label)
            if records and set(record) != set(records[0]):
                first = ", ".join(records[0])
                raise DataError(f"keys {', '.join(record)}; the first line has {first}")
        except DataError as error:
            raise DataError(f"{name}, line {number}: {error}") from None
        records.append(record)
    if not records:
        return Corpus(np.zeros(1, np.int64))
    columns = {key: [record[key] for record in records] for key in records[0]}
    labels = columns.pop(label, None)
    if "features" in columns:
        try:
            corpus = as_corpus(columns["features"])
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
    else:
        corpus = Corpus.from_columns(columns)
    if labels is None:
        return corpus
    return replace(corpus, labels=Labels.from_lists(labels), label_name=label)


def _record(line: str, label: str) -> dict[str, list[Any]]:
    """One line as lists of equal length, each checked; the messages lack the place."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON ({error})") from None
    if not isinstance(record, dict) or not all(isinstance(v, list) for v in record.values()):
        raise DataError("expected an object of lists")
    if "\\u" in line and _SURROGATE.search(json.dumps(record, ensure_ascii=False)):
        raise DataError("a string holds half of a surrogate pair, which is not valid text")
    columns = [key for key in record if key != label]
    if not columns:
        raise DataError(f"expected columns or features beside {label!r}")
    if "features" in columns and len(columns) > 1:
        extra = ", ".join(key for key in columns if key != "features")
        raise DataError(f"'features' and columns ({extra}) cannot stand together")
    lengths = {key: len(value) for key, value in record.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"lists of different lengths {lengths}")
    for key in columns:
        kinds, expected = (
            ((dict, list), "objects or lists of strings") if key == "features" else (str, "strings")
        )
        for entry in record[key]:
            if not isinstance(entry, kinds):
                raise DataError(f"{key!r} holds {entry!r}; expected {expected}")
    if label in record:
        record[label] = [_label(entry) for entry in record[label]]
    return record


def _label(entry: Any) -> Label:
    if entry is None or _is_single(entry):
        return entry  # type: ignore[no-any-return]  # it is a label
    if isinstance(entry, list) and entry and all(map(_is_single, entry)):
        return frozenset(entry)
    raise DataError(f"label {entry!r}; expected a string, a number, null or a list of these")


def _is_single(entry: Any) -> bool:
    return isinstance(entry, str | int | float) and entry == entry  # noqa: PLR0124 (no NaN)


def write_jsonl(
    path: str | os.PathLike[Any],
    corpus: Corpus,
    *,
    predicted: Sequence[Sequence[Any]] | None = None,
) -> None:
    """Write a corpus (and predictions, under ``predicted``) as JSON lines, whole or not at all."""
    write_text(path, "".join(f"{line}\n" for line in jsonl_lines(corpus, predicted)))


def jsonl_lines(corpus: Corpus, predicted: Sequence[Sequence[Any]] | None = None) -> list[str]:
    """Lines that :func:`write_jsonl` writes."""
    lists: list[tuple[str, list[list[Any]]]] = []
    for name, column in corpus.columns.items():
        lists.append((name, split(column.strings(), corpus.offsets)))
    if corpus.features is not None:
        lists.append(("features", split(_feature_dicts(corpus.features), corpus.offsets)))
    if not lists and len(corpus):
        raise DataError("this corpus has no columns and no features to write")
    if corpus.labels is not None:
        name = "labels" if corpus.label_name == "label" else corpus.label_name
        lists.append((name, split(list(map(_written, corpus.labels.tolist())), corpus.offsets)))
    if predicted is not None:
        check_lengths(corpus.lengths.tolist(), predicted, "corpus", "predicted")
        lists.append(("predicted", [list(map(_written, sample)) for sample in predicted]))
    keys = [key for key, _ in lists]
    if len(set(keys)) != len(keys):
        raise DataError(f"two of the lists to write have the same name: {', '.join(keys)}")
    lines = []
    for i in range(len(corpus)):
        line = json.dumps({key: samples[i] for key, samples in lists}, ensure_ascii=False)
        if _SURROGATE.search(line):
            raise DataError(f"sample {i} holds half of a surrogate pair, which is not valid text")
        lines.append(line)
    return lines


def _written(label: Label) -> Any:
    if isinstance(label, frozenset):
        return [label_in_json(member) for member in in_order(label)]
    return None if label is None else label_in_json(label)


def _feature_dicts(features: Features) -> list[dict[str, float | bool]]:
    """The attributes of each position; one that stands there twice is written as the sum."""
    dicts = []
    for a, b in itertools.pairwise(features.indptr.tolist()):
        entry: dict[str, float] = {}
        for p in range(a, b):
            name = features.names[features.indices[p]]
            value = 1.0 if features.values is None else float(features.values[p])
            entry[name] = entry.get(name, 0.0) + value
        dicts.append({name: True if value == 1 else value for name, value in entry.items()})
    return dicts
