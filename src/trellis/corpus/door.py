"""The door: whatever a user calls «X» and «y» becomes a :class:`Corpus`, once.

Accepted samples (all of one kind within a call):

    Sample or Corpus          as they are
    [str, …]                  one symbol a position: becomes the column ``word``
    [[str, …], …]             attributes of each position, all indicators
    [{str: value}, …]         attributes of each position: a string value means the indicator
                              «key=value», a bool an indicator if true, a number the value itself
    (n, d) array              d real-valued attributes a position, named x0 … x(d-1)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus.corpus import (
    FLOAT32_LIMIT,
    Corpus,
    Features,
    Sample,
    bounds,
    check_lengths,
)
from trellis.corpus.labels import Label, Labels
from trellis.errors import DataError

__all__ = ["as_corpus"]


def as_corpus(X: Any, y: Sequence[Sequence[Label]] | None = None) -> Corpus:
    """Turn samples (and labels) in any accepted form into a corpus.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> corpus = as_corpus([[{"w": "the", "cap": False}, {"w": "Cat", "cap": True, "len": 3}]])
    >>> list(corpus.features.names)
    ['w=the', 'w=Cat', 'cap', 'len']
    >>> corpus.features.values
    array([1., 1., 1., 3.], dtype=float32)
    """
    corpus = _samples(X)
    if y is not None:
        y = as_list(y, "samples of y")
        check_lengths(corpus.lengths.tolist(), y, "X", "y")
        corpus = replace(corpus, labels=Labels.from_lists(y))
    return corpus


def _samples(X: Any) -> Corpus:
    if isinstance(X, Corpus):
        return X
    if isinstance(X, Sample):
        return X.corpus.take([X.index])
    try:
        samples = as_list(X, "samples")
    except DataError:
        raise DataError(
            f"expected a corpus or a list of samples, got {type(X).__name__}; "
            "read files with read_conll and its relatives"
        ) from None
    if not samples:
        return Corpus(np.zeros(1, np.int64))
    if all(isinstance(s, Sample) for s in samples):
        return _from_views(samples)
    if any(isinstance(s, np.ndarray) for s in samples):
        return _from_arrays(samples)
    first = next((s[0] for s in samples if isinstance(s, Sequence) and len(s)), None)
    if isinstance(first, str) and not isinstance(samples[0], str):
        return Corpus.from_columns({"word": [_sequence(s, i) for i, s in enumerate(samples)]})
    return _from_attributes(samples)


def _sequence(sample: Any, index: int) -> Sequence[Any]:
    if isinstance(sample, str | bytes | Mapping) or not isinstance(sample, Sequence):
        raise DataError(
            f"sample {index} is {type(sample).__name__}; expected a list of positions "
            "(feature dicts, lists of strings or strings) or an (n, d) array"
        )
    return sample


def _from_views(samples: list[Sample]) -> Corpus:
    parent = samples[0].corpus
    if any(s.corpus is not parent for s in samples):
        raise DataError("samples of different corpora cannot be mixed in one call")
    return parent.take([s.index for s in samples])


def _from_arrays(samples: list[Any]) -> Corpus:
    width = None
    for i, sample in enumerate(samples):
        if not isinstance(sample, np.ndarray) or sample.ndim != 2:
            shape = getattr(sample, "shape", type(sample).__name__)
            raise DataError(f"sample {i} is {shape}; expected an (n, d) array like the others")
        width = sample.shape[1] if width is None else width
        if sample.shape[1] != width:
            raise DataError(f"sample {i} has {sample.shape[1]} columns, sample 0 has {width}")
        if sample.dtype.kind not in "biuf":
            raise DataError(f"sample {i} has dtype {sample.dtype}; expected numbers")
        bad = np.argwhere(~(np.abs(sample.astype(np.float64)) < FLOAT32_LIMIT))
        if len(bad):
            t, j = bad[0]
            raise DataError(
                f"sample {i}, position {t}, column {j} is {sample[t, j]}; must be a finite float32"
            )
    stacked: NDArray[np.float32] = np.concatenate([s.astype(np.float32) for s in samples])
    rows, columns = np.nonzero(stacked)
    values = stacked[rows, columns]
    features = Features(
        bounds(np.bincount(rows, minlength=len(stacked))),
        columns.astype(np.int32),
        None if (values == 1).all() else values,
        [f"x{j}" for j in range(width or 0)],
    )
    return Corpus(bounds([len(s) for s in samples]), features=features)


def _from_attributes(samples: list[Any]) -> Corpus:
    vocabulary: dict[str, int] = {}
    indices: list[int] = []
    values: list[float] = []
    counts: list[int] = []
    lengths: list[int] = []
    for i, raw in enumerate(samples):
        sample = _sequence(raw, i)
        lengths.append(len(sample))
        for t, position in enumerate(sample):
            before = len(indices)
            if isinstance(position, Mapping):
                for key, value in position.items():
                    name, number = _attribute(key, value, i, t)
                    if name is not None:
                        indices.append(vocabulary.setdefault(name, len(vocabulary)))
                        values.append(number)
            elif (
                isinstance(position, Iterable)
                and not isinstance(position, str | bytes)
                and getattr(position, "ndim", True)  # an array without dimensions holds no names
            ):
                # Sets are sorted: their own order differs from run to run.
                for name in sorted(position, key=str) if isinstance(position, Set) else position:
                    if not isinstance(name, str):
                        raise DataError(
                            f"sample {i}, position {t}: attribute {name!r} is not a string"
                        )
                    indices.append(vocabulary.setdefault(name, len(vocabulary)))
                    values.append(1.0)
            else:
                raise DataError(
                    f"sample {i}, position {t} is {position!r}; expected a dict of features "
                    "or a list of strings"
                )
            counts.append(len(indices) - before)
    flat = np.array(values, np.float32)
    features = Features(
        bounds(counts),
        np.array(indices, np.int32),
        None if (flat == 1).all() else flat,
        list(vocabulary),
    )
    return Corpus(bounds(lengths), features=features)


def _attribute(key: Any, value: Any, sample: int, position: int) -> tuple[str | None, float]:
    """Name and value of one dict entry; no name if the entry is False."""
    if not isinstance(key, str):
        raise DataError(f"sample {sample}, position {position}: feature key {key!r} is no string")
    if isinstance(value, str):
        return f"{key}={value}", 1.0
    if isinstance(value, bool | np.bool_):
        return (key, 1.0) if value else (None, 0.0)
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:  # an int of hundreds of digits
            number = math.inf
        if not abs(number) < FLOAT32_LIMIT:
            raise DataError(
                f"sample {sample}, position {position}: feature {key!r} is {number}; "
                "must be a finite float32"
            )
        return key, number
    raise DataError(
        f"sample {sample}, position {position}: feature {key!r} is {value!r}; "
        "expected a string, a bool or a number"
    )
