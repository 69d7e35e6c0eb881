"""Items: what CRFsuite calls the features of a position, and how they become attributes.

An item is a dict or a list; its entries are named attributes with a value:

    ["a", "b"]                   a and b            1
    {"k": "v"}                   k:v                1 (a string, or bytes in UTF-8)
    {"k": 0.5}, {"k": True}      k                  the number; 1 for True, 0 for False
    {"k": {...}}, {"k": [...]}   k: and the names of the inner item (a dict, list or set)

An attribute that is given twice counts twice. Flat dicts of strings and numbers, and lists of
strings, go straight to :func:`trellis.corpus.as_corpus`, which takes a fraction of the time, others
when their inner items are opened; what it calls «k=v» is then renamed. Where a name has a «=» of
its own, or is there twice, items are taken apart altogether.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Labels, as_corpus
from trellis.corpus.corpus import check_lengths
from trellis.errors import DataError

__all__ = [
    "ItemError",
    "ItemSequence",
    "as_items",
    "as_labels",
    "corpus_of",
    "labelled",
    "with_entries",
]

_LISTS = {list, tuple, set, frozenset, type({}.keys())}


class ItemError(DataError, TypeError):
    """An item or a label of a wrong type: a TypeError, as in python-crfsuite."""


class ItemSequence:
    """The items of a sequence with their attributes worked out, for several calls.

    Parameters
    ----------
    pyseq : iterable of items
        An item is a dict ``{name: value}`` or a list of names. Values may be numbers, bools (True
        is 1, False 0), strings (``{"k": "v"}`` is ``{"k:v": 1}``), bytes in UTF-8, and dicts, lists
        or sets of further items, whose names follow «k:».

    Examples
    --------
    >>> from trellis.compat.pycrfsuite import ItemSequence
    >>> ItemSequence([{"w": "the", "around": {"next": ["cat", "N"], "n": 2}}, ["end"]]).items()
    [{'w:the': 1.0, 'around:next:cat': 1.0, 'around:next:N': 1.0, 'around:n': 2.0}, {'end': 1.0}]
    """

    _attributes: list[list[tuple[str, float]]]

    def __init__(self, pyseq: Any) -> None:
        if isinstance(pyseq, ItemSequence):
            self._attributes = pyseq._attributes
        else:
            self._attributes = [list(_attributes(item)) for item in as_items(pyseq)]

    def items(self) -> list[dict[str, float]]:
        """The attributes of each item, by name."""
        return [dict(attributes) for attributes in self._attributes]

    def _summed(self) -> list[dict[str, float]]:
        return [_sums(attributes) for attributes in self._attributes]

    def __len__(self) -> int:
        return len(self._attributes)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def as_items(sequence: Any) -> list[Any]:
    """The items of one sequence: those of an :class:`ItemSequence`, or of any iterable."""
    if isinstance(sequence, ItemSequence):
        return sequence._summed()
    if isinstance(sequence, str | bytes | Mapping) or not isinstance(sequence, Iterable):
        raise ItemError(
            f"a sequence is {sequence!r:.60}; expected a list of items (dicts or lists of strings)"
        )
    items = list(sequence)
    for kind in set(map(type, items)):
        if issubclass(kind, str | bytes) or not issubclass(kind, Iterable):
            bad = next(item for item in items if type(item) is kind)
            raise ItemError(f"an item is {bad!r:.60}; expected a dict or a list of strings")
    return items


def as_labels(labels: Any) -> list[Any]:
    """The labels of a sequence: bytes are decoded; None and sets stay, for partial labels."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise ItemError(f"the labels of a sequence are {labels!r:.60}; expected a list of strings")
    listed = list(labels)
    return listed if set(map(type, listed)) <= {str} else [_label(label) for label in listed]


def _label(label: Any) -> Any:
    if isinstance(label, bytes):
        return _text(label)
    if label is None or isinstance(label, str | Set):
        return label
    raise ItemError(f"a label is {label!r:.60}; expected a string")


# ---------------------------------------------------------------------------- corpora


def corpus_of(sequences: Iterable[Any]) -> Corpus:
    """Sequences of items as a corpus.

    Examples
    --------
    >>> corpus = corpus_of([[{"w": "a", "n": 2}, {"w": {"x"}}], [["w:a"]]])
    >>> list(corpus.features.names)
    ['w:a', 'n', 'w:x']
    """
    samples = [as_items(sequence) for sequence in sequences]
    kinds = set(map(type, chain.from_iterable(samples)))
    fast = None
    if kinds <= {dict}:
        fast = _of_flat_dicts(samples) or _of_flat_dicts(
            [[_opened(item) for item in items] for items in samples]
        )
    elif kinds <= _LISTS:
        fast = _as_they_are(samples)
    if fast is None:
        fast = as_corpus([[_sums(_attributes(item)) for item in items] for items in samples])
    # A value of 0 says nothing, but would count where values are scaled: no matter who wrote it.
    values = None if fast.features is None else fast.features.values
    return fast if values is None or values.all() else with_entries(fast, values != 0)


def with_entries(corpus: Corpus, keep: NDArray[np.bool_]) -> Corpus:
    """The corpus with some of the entries of its attributes."""
    f = corpus.features
    assert f is not None
    item = np.repeat(np.arange(corpus.n_positions), np.diff(f.indptr))
    counts = np.bincount(item[keep], minlength=corpus.n_positions)
    values = None if f.values is None or (f.values[keep] == 1).all() else f.values[keep]
    indptr = np.concatenate([[0], counts.cumsum()])
    fewer = replace(f, indptr=indptr, indices=f.indices[keep], values=values)
    return replace(corpus, features=fewer)


def _opened(item: dict[Any, Any]) -> dict[Any, Any]:
    """The dict with the attributes of inner items in their place, as far as each has one name."""
    flat: dict[Any, Any] = {}
    for key, value in item.items():
        kind = type(value)
        if kind is bytes:
            flat[key] = _text(value)
        elif (kind is list or kind is dict or kind is set) and type(key) is str:
            for name, number in _attributes(value):
                full = f"{key}:{name}"
                if full in flat or full in item:
                    return item  # counted twice: left to those who add
                flat[full] = number
        else:
            flat[key] = value
    return flat


def _of_flat_dicts(samples: list[list[Any]]) -> Corpus | None:
    """Dicts without inner items; None if there are any, or if names could be confused."""
    keys: set[Any] = set().union(*chain.from_iterable(samples))
    if not all(type(key) is str and "=" not in key for key in keys):
        return None
    corpus = _as_they_are(samples)
    if corpus is None or corpus.features is None:
        return corpus
    # No key has a «=», so that the first one in a name is where a key and its value were joined.
    names = [name.replace("=", ":", 1) for name in corpus.features.names]
    if len(set(names)) < len(names):
        return None
    return replace(corpus, features=replace(corpus.features, names=names))


def _as_they_are(samples: list[list[Any]]) -> Corpus | None:
    try:
        return as_corpus(samples)
    except DataError:  # with inner items it is fine; else those who take it apart say what is wrong
        return None


def labelled(corpus: Corpus, y: Iterable[Any]) -> Corpus:
    """The corpus with labels, one for each item."""
    labels = [as_labels(each) for each in y]
    check_lengths(corpus.lengths.tolist(), labels, "X", "y")
    return replace(corpus, labels=Labels.from_lists(labels))


# ---------------------------------------------------------------------------- one item


def _attributes(item: Any) -> Iterator[tuple[str, float]]:
    """Names and values of the attributes of an item, in order."""
    if not isinstance(item, dict):
        # Sets are sorted: their own order differs from run to run.
        for name in sorted(item, key=str) if isinstance(item, Set) else item:
            yield _text(name), 1.0
        return
    for key, value in item.items():
        name = _text(key)
        if isinstance(value, str | bytes):
            yield f"{name}:{_text(value)}", 1.0
        elif isinstance(value, dict | list | set):
            for inner, number in _attributes(value):
                yield f"{name}:{inner}", number
        else:
            yield name, _number(name, value)


def _sums(attributes: Iterable[tuple[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for name, value in attributes:
        total[name] = total.get(name, 0.0) + value
    return total


def _text(name: Any) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise ItemError(f"{name!r:.60} is no text in UTF-8") from None
    raise ItemError(f"the name of an attribute is {name!r:.60}; expected a string")


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ItemError(
            f"the value of {name!r} is {value!r:.60}; expected a string, a number, a bool, or a "
            "dict, list or set"
        ) from None
