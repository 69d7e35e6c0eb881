"""Symbols of columns, for templates: tuples and dicts at positions, dicts of columns.

[("the", "DT"), …]                   with the names of the columns
[{"word": "the", "pos": "DT"}, …]    by name
{"word": ["the", …], "pos": […]}     the columns of a sample, or of all samples
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from trellis.corpus.attributes import as_float, sequence
from trellis.corpus.corpus import FLOAT32_LIMIT, Column, Corpus, bounds
from trellis.corpus.form import Given
from trellis.errors import DataError

__all__ = ["from_column_dicts", "from_mapping", "from_symbols"]


def from_mapping(X: Mapping[str, Any], y: Any, columns: list[str] | None) -> Given:
    """Samples as a dict of columns, each a list of lists; one of them may be the labels."""
    names = [n for n in (X if columns is None else columns) if not (isinstance(y, str) and n == y)]
    missing = [n for n in (*names, y) if isinstance(n, str) and n not in X]
    if missing or not names:
        has = ", ".join(map(str, X)) or "none"
        raise DataError(f"there is no column {(missing or ['word'])[0]!r}; there are {has}")
    corpus = Corpus.from_columns(
        {name: X[name] for name in names}, X[y] if isinstance(y, str) else None
    )
    return Given(corpus, fields=tuple(names))


def from_column_dicts(samples: list[Any], columns: list[str] | None) -> Given:
    """Samples that are dicts of columns: of those named, the ones that the first sample has."""
    first = samples[0]
    if not isinstance(first, Mapping):
        raise DataError("sample 0 is no dict of columns, but others are; give all in one form")
    names = [name for name in first if columns is None or name in columns]
    if not names:
        raise DataError(f"the columns {', '.join(columns or ())} are missing from sample 0")
    for i, sample in enumerate(samples):
        missing = [n for n in names if not isinstance(sample, Mapping) or n not in sample]
        if missing:
            raise DataError(f"sample {i} has no column {missing[0]!r}; sample 0 has")
        single = [n for n in names if not _is_column(sample[n])]
        if single:
            raise DataError(
                f"sample {i} is a dict; expected a list of positions, or a dict of columns, of "
                f"which {single[0]!r} is {sample[single[0]]!r:.60} and no list"
            )
    listed = {name: [sample[name] for sample in samples] for name in names}
    return Given(Corpus.from_columns(listed), fields=tuple(names))


def _is_column(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def from_symbols(samples: list[Any], first: Any, columns: list[str] | None) -> Given:
    """Samples whose positions are tuples or dicts of the symbols of columns."""
    by_name = isinstance(first, Mapping)
    if by_name:
        names = [name for name in (columns or first) if name in first]
        if not names:
            raise DataError(
                f"the columns are {', '.join(columns or ())}, but position 0 of sample 0 has "
                f"{', '.join(map(str, first)) or 'none'}"
            )
    elif columns is None:
        raise DataError(
            "the features are templates over columns: say which column each entry of a position "
            f"is, {first!r:.60} being the first: columns=['word', ...]; or give dicts with the "
            "names of columns"
        )
    else:
        names = columns
    fast = _strings_of_columns(samples, names, by_name)
    if fast is not None:
        return Given(Corpus.from_columns(fast), fields=tuple(names))
    flat: dict[str, list[str]] = {name: [] for name in names}
    lengths, numeric = [], dict.fromkeys(names, True)
    for i, raw in enumerate(samples):
        sample = sequence(raw, i)
        lengths.append(len(sample))
        for t, position in enumerate(sample):
            symbols = _of_names(position, names, by_name, f"sample {i}, position {t}")
            for name, symbol in zip(names, symbols, strict=True):
                is_text = type(symbol) is str
                numeric[name] = numeric[name] and not is_text
                where = f"sample {i}, position {t}"
                flat[name].append(symbol if is_text else _symbol(symbol, name, where))
    coded = {
        name: Column.from_strings(flat[name], numbers=numeric[name] and len(flat[name]) > 0)
        for name in names
    }
    return Given(Corpus(bounds(lengths), coded), fields=tuple(names))


def _strings_of_columns(
    samples: list[Any], names: list[str], by_name: bool
) -> dict[str, list[Any]] | None:
    """The symbols of each column, sample by sample; None if some are missing or no strings."""
    kinds = {dict} if by_name else {tuple, list}
    columns: list[list[Any]] = [[] for _ in names]
    for sample in samples:
        if type(sample) not in (list, tuple) or not set(map(type, sample)) <= kinds:
            return None
        if by_name:
            try:
                parts = [list(map(itemgetter(name), sample)) for name in names]
            except KeyError:
                return None
        elif set(map(len, sample)) <= {len(names)}:
            parts = list(map(list, zip(*sample, strict=True))) or [[] for _ in names]
        else:
            return None
        if not all(set(map(type, part)) <= {str} for part in parts):
            return None
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    return dict(zip(names, columns, strict=True))


def _of_names(position: Any, names: list[str], by_name: bool, where: str) -> Sequence[Any]:
    """The symbols of a position, in the order of the columns."""
    expected = f"a {'dict' if by_name else 'tuple'} of {', '.join(names)}"
    if by_name:
        if not isinstance(position, Mapping):
            raise DataError(f"{where} is {position!r:.60}; expected {expected}")
        missing = [name for name in names if name not in position]
        if missing:
            raise DataError(f"{where} has no {missing[0]!r}; expected {expected}")
        return [position[name] for name in names]
    if isinstance(position, str | bytes | Mapping) or not isinstance(position, Sequence):
        raise DataError(f"{where} is {position!r:.60}; expected {expected}")
    if len(position) != len(names):
        raise DataError(f"{where} has {len(position)} entries; expected {expected}")
    return position


def _symbol(value: Any, name: str, where: str) -> str:
    """A symbol that is not given as a string."""
    if isinstance(value, numbers.Real | np.bool_):
        number = as_float(value)
        if not abs(number) < FLOAT32_LIMIT:
            raise DataError(f"{where}: {name!r} is {number}; must be a finite float32")
        return repr(number)
    if isinstance(value, str):
        return str(value)
    raise DataError(f"{where}: {name!r} is {value!r:.60}; expected a string or a number")
