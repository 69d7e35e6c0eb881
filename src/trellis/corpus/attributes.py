"""Ready-made features: at each position a dict of attributes, or a list of names.

{"w": "the"}     the indicator «w=the»
{"cap": True}    the indicator «cap»; False: nothing
{"len": 3}       the number
["w=the", …]     indicators
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import known
from trellis.corpus.corpus import FLOAT32_LIMIT, Corpus, Features, bounds
from trellis.errors import DataError

__all__ = ["as_float", "from_attributes", "sequence"]

_NUMBERS = frozenset({int, np.float32, np.float64, np.int32, np.int64})


def sequence(sample: Any, index: int) -> Sequence[Any]:
    """The positions of a sample; refuses what is no list of them."""
    if type(sample) is list:
        return sample
    if isinstance(sample, str | bytes | Mapping) or not isinstance(sample, Sequence):
        raise DataError(
            f"sample {index} is {type(sample).__name__}; expected a list of positions "
            "(feature dicts, lists of strings or strings) or an (n, d) array"
        )
    return sample


def from_attributes(samples: list[Any]) -> Corpus:
    """Samples whose positions are dicts of attributes or lists of names."""
    # Exact types first, and in place: a call, or a question to an abstract class, for each of
    # millions of attributes would take longer than all else. Any other type goes the long way.
    names = _Names()
    pairs, valued = names.pairs, names.valued
    indices: list[int] = []  # −1 − number of the attribute where it has a value
    values: list[float] = []
    ends, lengths = [0], []
    add, add_value = indices.append, values.append
    for i, raw in enumerate(samples):
        sample = sequence(raw, i)
        lengths.append(len(sample))
        for t, position in enumerate(sample):
            given_as = type(position)
            if given_as is dict or (given_as is not list and isinstance(position, Mapping)):
                for key, value in position.items():
                    kind = type(value) if type(key) is str else None
                    if kind is str:
                        try:
                            known_values = pairs[key]
                        except KeyError:
                            known_values = pairs[key] = {}
                        attribute = known_values.get(value)
                        if attribute is None:
                            attribute = known_values[value] = names.of_pair(key, value)
                        add(attribute)
                        continue
                    if kind is bool:
                        if value:
                            add(names[key])
                        continue
                    name, number = key, value
                    if kind is float or kind in _NUMBERS:
                        number = value if kind is float else as_float(value)
                        if not -FLOAT32_LIMIT < number < FLOAT32_LIMIT:
                            raise _not_finite(key, number, i, t)
                    else:
                        name, number = _attribute(key, value, i, t)
                        if name is None:
                            continue
                    add_value(number)
                    try:
                        add(valued[name])
                    except KeyError:
                        add(names.of_valued(name))
            elif given_as is list or _holds_names(position):
                listed = position if given_as is list else _in_order(position)
                try:
                    "".join(listed)  # nothing asks faster whether all are strings
                except TypeError:
                    _check_strings(listed, i, t)
                indices += map(names.__getitem__, listed)
            else:
                raise DataError(
                    f"sample {i}, position {t} is {position!r}; expected a dict of features "
                    "or a list of strings"
                )
            ends.append(len(indices))
    features = known(
        Features,
        indptr=np.array(ends, np.int64),
        **_with_values(np.array(indices, np.int32), values),
        names=names.by_number,
    )
    return Corpus(bounds(lengths), features=features)


def _with_values(indices: NDArray[np.int32], given: list[float]) -> dict[str, Any]:
    """Numbers and values of attributes; ``given`` are the values of those below 0."""
    if not given:
        return {"indices": indices, "values": None}
    values = np.ones(len(indices), np.float32)
    values[indices < 0] = given
    indices = np.where(indices < 0, ~indices, indices)
    return {"indices": indices, "values": None if (values == 1).all() else values}


class _Names(dict[str, int]):
    """Names of attributes and their numbers, in order of first appearance.

    An attribute is found under what it was given as: its name, a key and a string, so that
    «key=string» is put together once and not at each position, or a key with a value.
    """

    def __init__(self) -> None:
        self.by_number: list[str] = []
        self.pairs: dict[str, dict[str, int]] = {}
        self.valued: dict[str, int] = {}

    def __missing__(self, name: str) -> int:
        number = None
        if self.pairs and "=" in name:
            key, _, value = name.partition("=")
            number = self.pairs.get(key, {}).get(value)
        if number is None:
            number = len(self.by_number)
            self.by_number.append(name)
        self[name] = number
        return number

    def of_pair(self, key: str, value: str) -> int:
        """Number of «key=value», which is not yet found under its key."""
        name = f"{key}={value}"
        if "=" in key:  # only then may another pair have the same name
            return self[name]
        number = self.get(name)
        if number is None:
            number = len(self.by_number)
            self.by_number.append(name)
        return number

    def of_valued(self, name: str) -> int:
        """What stands for an attribute with a value, the first time that it has one."""
        self.valued[name] = mark = ~self[name]
        return mark


def _holds_names(position: Any) -> bool:
    return (
        isinstance(position, Iterable)
        and not isinstance(position, str | bytes)
        and getattr(position, "ndim", 1) != 0  # an array without dimensions holds no names
    )


def _in_order(names: Iterable[Any]) -> list[Any]:
    # Sets are sorted: their own order differs from run to run.
    return sorted(names, key=str) if isinstance(names, Set) else list(names)


def _check_strings(names: list[Any], sample: int, position: int) -> None:
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"sample {sample}, position {position}: attribute {name!r} is not a string"
            )


def _attribute(key: Any, value: Any, sample: int, position: int) -> tuple[str | None, float]:
    """Name and value of one dict entry; no name if the entry is False."""
    if not isinstance(key, str):
        raise DataError(f"sample {sample}, position {position}: feature key {key!r} is no string")
    if isinstance(value, str):
        return f"{key}={value}", 1.0
    if isinstance(value, bool | np.bool_):
        return (key, 1.0) if value else (None, 0.0)
    if isinstance(value, numbers.Real):
        number = as_float(value)
        if not abs(number) < FLOAT32_LIMIT:
            raise _not_finite(key, number, sample, position)
        return key, number
    raise DataError(
        f"sample {sample}, position {position}: feature {key!r} is {value!r}; "
        "expected a string, a bool or a number"
    )


def as_float(value: Any) -> float:
    """A number as a float, infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:  # an int of hundreds of digits
        return math.inf


def _not_finite(key: str, number: float, sample: int, position: int) -> DataError:
    return DataError(
        f"sample {sample}, position {position}: feature {key!r} is {number}; "
        "must be a finite float32"
    )
